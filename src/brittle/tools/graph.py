"""Keep dvc.yaml correct by a program: the modules that each stage imports and the parameters that it reads.

    python -m brittle.tools.graph            # say which dvc.yaml is wrong; the exit code is 1 if one is
    python -m brittle.tools.graph --write    # put it right

A stage's `deps` list the files and folders that it reads, which are written by hand, and then the source files that it
imports, directly or indirectly, which this program writes. Its `params` are written by this program alone: every stage
is run at a tiny scale (presets/tiny.yaml), in a temporary folder, while each key that it reads is recorded.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from brittle.core.errors import BadInput
from brittle.core.params import read
from brittle.params import leaves

ROOT = Path(__file__).parents[3]
SRC = ROOT / "src"
CORE = SRC / "brittle/core"  # listed as a single dependency if a stage imports all of it
ASSETS = {".css", ".html", ".js"}
WIDTH = 220  # maximal length of a line in dvc.yaml


# --- The pipeline


@dataclass(frozen=True)
class Stage:
    """A stage as dvc.yaml defines it; one with a matrix stands for all of its cells."""

    name: str
    file: Path  # the dvc.yaml
    definition: dict[str, Any]

    @property
    def module(self) -> str:
        """The module that the stage runs: the word after -m."""
        return re.search(r"python -m (\S+)", self.definition["cmd"])[1]

    @property
    def deps(self) -> list[str]:
        return names(self.definition["deps"])

    @property
    def inputs(self) -> list[str]:
        """The files and folders that the stage reads, besides source files."""
        return [dep for dep in self.deps if not dep.startswith("src/")]

    @property
    def outputs(self) -> list[str]:
        return [out for kind in ("outs", "metrics", "plots") for out in names(self.definition.get(kind, []))]

    @property
    def axis(self) -> tuple[str, str] | None:
        """The name of the matrix's axis and the parameter that lists its cells; None without a matrix."""
        if "matrix" not in self.definition:
            return None
        ((name, values),) = self.definition["matrix"].items()
        return name, values.strip("${}")

    def cells(self, values: dict[str, Any]) -> list[Any]:
        """The cells of the matrix, given the values of all parameters by dotted name; [None] without a matrix."""
        return values[self.axis[1]] if self.axis else [None]


def names(entries: Iterable[Any]) -> list[str]:
    """The names in a list of dvc.yaml, whose entries are names or {name: options}."""
    return [next(iter(entry)) if isinstance(entry, dict) else entry for entry in entries]


def files(root: Path = ROOT) -> list[Path]:
    return [root / "dvc.yaml", *sorted(root.glob("pipelines/*/dvc.yaml"))]


def stages(root: Path = ROOT) -> dict[str, Stage]:
    """Every stage by its name, which is unique over all files, in an order in which they can run."""
    found: dict[str, Stage] = {}
    for file in files(root):
        for name, definition in (read(file).get("stages") or {}).items():
            _check(file.relative_to(root), name, definition)
            if name in found:
                raise BadInput(
                    f"{file.relative_to(root)}: stage {name} is also in {found[name].file.relative_to(root)}"
                )
            found[name] = Stage(name, file, definition)
    return _in_order(found)


def _check(file: Path, name: str, definition: Any) -> None:
    """Raise BadInput if a stage lacks what this project asks of every stage."""

    def wrong(words: str) -> BadInput:
        return BadInput(f"{file}: stage {name}: must have {words}")

    if not isinstance(definition, dict) or not isinstance(definition.get("deps"), list):
        raise wrong("a list of `deps`; one that reads nothing but parameters depends on data/params.checked")
    if not re.search(r"python -m \S+", str(definition.get("cmd"))):
        raise wrong("a `cmd` like `PYTHONPATH=src python -m brittle.CHAPTER.NAME`")
    matrix = definition.get("matrix", {"": "${}"})
    if len(matrix) != 1 or not str(next(iter(matrix.values()))).startswith("${"):
        raise wrong('a `matrix` of one axis, over a list of params.yaml: {d: "${sweep.ds}"}')


def _in_order(found: dict[str, Stage]) -> dict[str, Stage]:
    """Sort the stages so that each comes after those whose outputs (or whose matrix's folder of tables) it reads."""
    made = {out: stage.name for stage in found.values() for out in stage.outputs}
    made |= {str(Path(out).parent): maker for out, maker in made.items() if "${" in out}
    ordered: dict[str, Stage] = {}

    def enter(stage: Stage, after: tuple[str, ...] = ()) -> None:
        if stage.name in after:
            raise BadInput(f"dvc.yaml: {' needs '.join([*after, stage.name])}: stages must not wait for each other")
        if stage.name not in ordered:
            for dep in stage.inputs:
                if dep in made:
                    enter(found[made[dep]], (*after, stage.name))
            ordered[stage.name] = stage

    for stage in found.values():
        enter(stage)
    return ordered


# --- The modules that a stage imports


def file_of(module: str) -> Path | None:
    """The source file of a module or package of brittle; None if there is none."""
    path = SRC / module.replace(".", "/")
    return next(filter(Path.is_file, (path.with_suffix(".py"), path / "__init__.py")), None)


@cache
def imported(file: Path) -> frozenset[Path]:
    """The modules of brittle that a file imports, at its top or inside a function."""
    found = {"brittle"}  # a package's own code runs before that of its modules
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise BadInput(f"{file}: has a relative import")
            found |= {str(node.module)} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(filter(None, (file_of(name) for name in found if name.split(".")[0] == "brittle")))


def closure(file: Path) -> set[Path]:
    """The file and all modules that it imports, directly or indirectly."""
    found: set[Path] = set()
    todo = [file]
    while todo:
        if (file := todo.pop()) not in found:
            found.add(file)
            todo += imported(file)
    return found


def sources(stage: Stage) -> list[str]:
    """What a stage depends on in src/: modules, the assets they read, and core/ as a whole if it imports all of it."""
    file = file_of(stage.module)
    if file is None:
        raise BadInput(f"{stage.file.relative_to(ROOT)}: stage {stage.name}: there is no module {stage.module}")
    modules = closure(file)
    beside = {path for each in modules if "importlib.resources" in each.read_text() for path in each.parent.iterdir()}
    found = modules | {path for path in beside if path.suffix in ASSETS}
    core = set(CORE.glob("*.py"))
    if core <= found:
        found = found - core | {CORE}
    return sorted(str(path.relative_to(ROOT)) for path in found)


def reach(every: Iterable[Stage], values: dict[str, Any]) -> float:
    """How many stages (every cell counted) an edit of one module re-runs, on average over all modules."""
    modules = sorted((SRC / "brittle").rglob("*.py"))
    runs = 0
    for stage in every:
        covered = sum(len(list((ROOT / dep).rglob("*.py"))) if (ROOT / dep).is_dir() else 1 for dep in sources(stage))
        runs += covered * len(stage.cells(values))
    return runs / len(modules)


# --- The parameters that it reads


def grouped(keys: set[str], values: dict[str, Any]) -> list[str]:
    """The keys, with a group in place of its members if all of them are read."""
    groups = {key.rpartition(".")[0] for key in values} - {""}
    groups |= {group[: m.start()] for group in groups for m in re.finditer(r"\.", group)}
    found = set(keys)
    for group in sorted(groups, key=lambda name: -name.count(".")):  # the innermost first
        members = {key for key in values if key.startswith(f"{group}.")}
        if members <= keys:
            found = {key for key in found if not key.startswith(f"{group}.")} | {group}
    return sorted(found)


def ungrouped(declared: Iterable[str], values: dict[str, Any]) -> set[str]:
    """All keys that these keys and groups stand for."""
    return {key for name in declared for key in values if key == name or key.startswith(f"{name}.")}


# --- dvc.yaml, rewritten


def listed(key: str, first: Iterable[str], rest: Iterable[str] = ()) -> list[str]:
    """A list in YAML's flow style, wrapped; `rest` begins on a new line."""
    groups = [[quoted(name) for name in group] for group in (list(first), list(rest)) if group]
    lines, line, begun = [], f"    {key}: [", False
    for number, group in enumerate(groups):
        for i, name in enumerate(group):
            last = number == len(groups) - 1 and i == len(group) - 1
            word = f"{name}{']' if last else ','}"
            if (number and not i) or len(line) + 1 + len(word) > WIDTH:
                lines.append(line)
                line, begun = f"      {word}", True
            else:
                line += f" {word}" if begun else word
                begun = True
    return [*lines, line]


def quoted(name: str) -> str:
    return f'"{name}"' if "{" in name else name


def rewritten(text: str, wanted: dict[str, tuple[list[str], list[str], list[str]]]) -> str:
    """The text of a dvc.yaml in which these stages have these inputs, sources and parameters.

    All else stays as it is, comments included, but for comments inside the lists themselves.
    """
    out, stage, skipping = [], None, False
    for line in text.split("\n"):
        if found := re.match(r"  ([^\s#:]+):\s*(#.*)?$", line):
            stage = found[1]
        if skipping and line.strip() and not re.match(r"    [\w#]|  \S|\S", line):
            continue  # the rest of the old list
        skipping = stage in wanted and bool(re.match(r"    (deps|params):", line))
        if not skipping:
            out.append(line)
        elif line.startswith("    deps:"):
            inputs, code, keys = wanted[stage]
            out += listed("deps", inputs, code) + (listed("params", keys) if keys else [])
    text = "\n".join(out)
    _check_written(text, wanted)
    return text


def _check_written(text: str, wanted: dict[str, tuple[list[str], list[str], list[str]]]) -> None:
    """Raise BadInput unless every stage has exactly its own lists, whatever form the old ones had."""
    try:
        found = YAML(typ="safe", pure=True).load(text)["stages"]
    except YAMLError as error:
        raise BadInput(
            f"dvc.yaml: cannot be rewritten ({getattr(error, 'problem', error)}); write `deps: [a, b]`"
        ) from None
    for name in found.keys() & wanted.keys():
        inputs, code, keys = wanted[name]
        if (names(found[name]["deps"]), found[name].get("params", [])) != ([*inputs, *code], keys):
            raise BadInput(f"dvc.yaml: stage {name}: cannot be rewritten; write `deps: [a, b]` on a line of its own")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m brittle.tools.graph", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="correct what is wrong")
    write = parser.parse_args().write
    from brittle.tools.observe import observe  # imported here because it imports torch

    every = stages()
    values = dict(leaves(YAML(typ="safe", pure=True).load(ROOT / "params.yaml")))
    with tempfile.TemporaryDirectory() as folder:
        seen = observe(every, Path(folder))
    wanted = {
        name: (stage.inputs, sources(stage), [] if "params.yaml" in stage.deps else grouped(seen[name].keys, values))
        for name, stage in every.items()
    }
    stale = []
    for file in files():
        text = file.read_text(encoding="utf-8")
        if (right := rewritten(text, wanted)) != text:
            stale.append(str(file.relative_to(ROOT)))
            if write:
                file.write_text(right, encoding="utf-8")
    cells = sum(len(stage.cells(values)) for stage in every.values())
    print(f"{cells} stages; an edit of one module re-runs {reach(every.values(), values):.1f} of them on average")
    if stale:
        print(f"{'written' if write else 'not what the code needs'}: {', '.join(stale)}")
    return int(bool(stale) and not write)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadInput as error:
        print(error, file=sys.stderr)
        sys.exit(2)
