"""How old the code behind a table of evidence is: which modules have changed since it was made."""

from __future__ import annotations

import subprocess
from functools import cache

from brittle.tools.graph import ROOT, SRC, sources, stages


@cache
def changed_since(commit: str, stage: str) -> list[str]:
    """The modules that a stage imports and that have changed since the commit; all of them if it is not known here."""
    every = stages()
    name = stage.partition("@")[0]
    if name not in every:
        return [f"{name} (a stage that is no more)"]
    makers = {out: each for each in every.values() for out in each.outputs}
    seen: set[str] = set()
    todo = [every[name]]
    while todo:
        each = todo.pop()
        if each.name not in seen:
            seen.add(each.name)
            todo += [maker for path in each.inputs for out, maker in makers.items() if _feeds(out, path)]
    files = sorted({file for each in seen if each != "params" for file in sources(every[each])})
    command = ["git", "diff", "--name-only", commit, "--", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    found = files if done.returncode else done.stdout.split("\n")
    return [name.removeprefix(f"{SRC.relative_to(ROOT)}/brittle/") for name in found if name.endswith(".py")]


def _feeds(out: str, path: str) -> bool:
    return out == path or out.startswith(f"{path}/")
