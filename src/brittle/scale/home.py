"""`python -m brittle.scale.home [--pull] FILE`: into the workspace, by DVC, what workers have run.

FILE holds the stages in the order of `dvc repro`, each with the entry of dvc.lock that its worker's DVC wrote. This is
`dvc repro --single-item` of each, as if dvc.lock had that entry already: DVC then takes the results from its cache
(with --pull: from the remote), and these results, whatever dvc.lock says of an earlier run. dvc.yaml is read once for
all of them and dvc.lock is written once: with a hundred stages either takes seconds, which `dvc repro` spends at every
stage.
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
def bring(repo: Repo, entries: dict[str, dict[str, Any]], pull: bool) -> None:
    stages = {stage.name: stage for stage in repo.index.stages if isinstance(stage, PipelineStage)}
    brought: list[PipelineStage] = []
    try:
        for name, entry in entries.items():
            stage = stages[name]
            stage.cmd_changed = entry["cmd"] != stage.cmd
            StageLoader.fill_from_lock(stage, entry)
            for made in stage.get_used_objs().values() if pull else ():
                repo.cloud.pull(made)
            stage.reproduce(interactive=False)
            brought.append(stage)
    finally:
        if brought:
            brought[0].dvcfile.dump_stages(brought, update_pipeline=False)


if __name__ == "__main__":
    show_log()
    try:
        with Repo() as repo:
            bring(repo, json.loads(Path(sys.argv[-1]).read_text(encoding="utf-8")), "--pull" in sys.argv)
    except DvcException as error:
        sys.exit(f"{error}{f': {error.__cause__}' if error.__cause__ else ''}")
