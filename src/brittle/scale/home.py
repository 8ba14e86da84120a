"""`python -m brittle.scale.home [--pull] STAGE…`: `dvc repro --single-item` of stages that workers have run.

DVC takes them from its run cache into the workspace. It reads dvc.yaml once for all of them and writes dvc.lock once:
with a hundred stages either takes seconds, which `dvc repro` spends at every stage.
"""

from __future__ import annotations

import sys

from dvc.exceptions import DvcException
from dvc.logger import setup as show_log
from dvc.repo import Repo, locked
from dvc.repo.scm_context import scm_context
from dvc.stage import PipelineStage


@locked
@scm_context
def bring(repo: Repo, names: list[str], pull: bool) -> None:
    """In this order."""
    if pull:
        repo.stage_cache.pull(None)
    stages = {stage.name: stage for stage in repo.index.stages if isinstance(stage, PipelineStage)}
    brought: list[PipelineStage] = []
    try:
        for name in names:
            if stages[name].reproduce(interactive=False, pull=pull):
                brought.append(stages[name])
    finally:
        if brought:
            brought[0].dvcfile.dump_stages(brought, update_pipeline=False)


if __name__ == "__main__":
    show_log()
    try:
        with Repo() as repo:
            bring(repo, [word for word in sys.argv[1:] if word != "--pull"], "--pull" in sys.argv)
    except DvcException as error:
        sys.exit(f"{error}{f': {error.__cause__}' if error.__cause__ else ''}")
