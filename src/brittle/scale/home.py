"""`python -m brittle.scale.home [--pull] STAGE…`: `dvc repro --single-item` of stages that workers have run.

DVC takes them from its run cache into the workspace, and writes dvc.lock once for all of them: with a hundred stages in
it that takes seconds, which `dvc repro` spends at every stage.
"""

from __future__ import annotations

import sys
from typing import Any

from dvc.exceptions import DvcException
from dvc.logger import setup as show_log
from dvc.repo import Repo
from dvc.stage import PipelineStage


def main(names: list[str], pull: bool) -> None:
    brought: list[PipelineStage] = []

    def reproduced(stage: PipelineStage, **options: Any) -> PipelineStage | None:
        last = True  # if it fails
        try:
            done = stage.reproduce(**options)
            brought.extend([done] if done else [])
            last = stage.name == names[-1]
        finally:
            if last and brought:
                stage.dvcfile.dump_stages(brought, update_pipeline=False)
        return done

    with Repo() as repo:
        repo.reproduce(names, single_item=True, pull=pull, repro_fn=reproduced)


if __name__ == "__main__":
    show_log()
    try:
        main([word for word in sys.argv[1:] if word != "--pull"], "--pull" in sys.argv)
    except DvcException as error:
        sys.exit(f"{error}{f': {error.__cause__}' if error.__cause__ else ''}")
