"""`python -m brittle.scale.restore [--pull] FILE`: let DVC restore into the workspace what workers have run.

FILE holds the stages in the order of `dvc repro`, each with the entry of dvc.lock that its worker's DVC wrote. This is
`dvc repro --single-item` for each, as if dvc.lock already had that entry: DVC then takes exactly these results from its
cache (with --pull: from the remote), whatever dvc.lock says about an earlier run. The pipeline is read only once for
all stages, and each lock file is written once.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dvc.exceptions import DvcException
from dvc.logger import setup as show_log
from dvc.repo import Repo, locked
from dvc.repo.scm_context import scm_context
from dvc.stage import PipelineStage
from dvc.stage.loader import StageLoader


@locked
@scm_context
def restore(repo: Repo, entries: dict[str, dict[str, Any]], pull: bool) -> None:
    stages = {stage.name: stage for stage in repo.index.stages if isinstance(stage, PipelineStage)}
    restored: list[PipelineStage] = []
    try:
        for name, entry in entries.items():
            stage = stages[name]
            stage.cmd_changed = entry["cmd"] != stage.cmd
            StageLoader.fill_from_lock(stage, entry)
            for made in stage.get_used_objs().values() if pull else ():
                repo.cloud.pull(made)
            stage.reproduce(interactive=False)
            restored.append(stage)
    finally:
        for file in {stage.path: stage.dvcfile for stage in restored}.values():
            file.dump_stages([stage for stage in restored if stage.path == file.path], update_pipeline=False)


if __name__ == "__main__":
    show_log()
    try:
        with Repo() as repo:
            restore(repo, json.loads(Path(sys.argv[-1]).read_text(encoding="utf-8")), "--pull" in sys.argv)
    except DvcException as error:
        sys.exit(f"{error}{f': {error.__cause__}' if error.__cause__ else ''}")
