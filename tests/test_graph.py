"""dvc.yaml tells the truth: a stage depends on exactly the modules it imports, the keys and the files it reads."""

from __future__ import annotations

import ast
import hashlib
import importlib
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from brittle import store
from brittle.params.base import load
from brittle.params.reads import Reads
from brittle.stages.progress import FOLDER
from conftest import ROOT, write_example
from tiny import TINY, few_pictures, set_params

SRC = ROOT / "src"
STAGES: dict[str, dict[str, Any]] = YAML(typ="safe", pure=True).load(ROOT / "dvc.yaml")["stages"]
# Each room imports only from rooms to its left.
ROOMS = [
    "params",
    "machine",
    "store",
    "rng",
    "device",
    "vision",
    "plugins",
    "worlds",
    "nets",
    "train",
    "attacks",
    "probes",
    "claims",
    "figures",
]
ROOMS += ["report", "stages", "scale"]
ASSETS = {".css", ".html", ".js"}
MODULES = sorted((SRC / "brittle").rglob("*.py"))


def file_of(module: str) -> Path | None:
    """The file of a module of ours; of the packages only the first has code of its own."""
    path = SRC / module.replace(".", "/")
    return next(filter(Path.is_file, (path.with_suffix(".py"), path / "__init__.py")), None)


@cache
def imported(file: Path) -> frozenset[Path]:
    """The modules of ours that a file imports, at its top or inside a function."""
    names = {"brittle"}  # whose own code runs before that of any module in it
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(filter(None, (file_of(name) for name in names if name.split(".")[0] == "brittle")))


def closure(file: Path) -> set[Path]:
    found, todo = set(), [file]
    while todo:
        if (file := todo.pop()) not in found:
            found.add(file)
            todo += imported(file)
    return found


def keys(entries: list[Any]) -> set[str]:
    """The names in a dvc.yaml list, whose entries are names or {name: options}."""
    return {next(iter(entry)) if isinstance(entry, dict) else entry for entry in entries}


def outputs(stage: str) -> set[str]:
    return set().union(*(keys(STAGES[stage].get(kind, [])) for kind in ("outs", "metrics", "plots")))


def difference(stage: str, what: str, declared: set[str], true: set[str]) -> str:
    add = [f"dvc.yaml: stage {stage}: add `- {line}` to {what}" for line in sorted(true - declared)]
    remove = [f"dvc.yaml: stage {stage}: remove `- {line}` from {what}" for line in sorted(declared - true)]
    return "\n".join(add + remove)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_exactly_the_modules_it_imports(stage: str) -> None:
    cell = "".join(f" ${{item.{axis}}}" for axis in STAGES[stage].get("matrix", {}))
    assert STAGES[stage]["cmd"] == f"PYTHONPATH=src python -m brittle.stages.{stage}{cell}"
    declared = {dep for dep in keys(STAGES[stage]["deps"]) if dep.startswith("src/")}
    modules = closure(SRC / f"brittle/stages/{stage}.py")
    # Who reads what lies beside it in the package depends on that, too.
    beside = {path for file in modules if "importlib.resources" in file.read_text() for path in file.parent.iterdir()}
    true = {str(path.relative_to(ROOT)) for path in modules | {path for path in beside if path.suffix in ASSETS}}
    assert declared == true, difference(stage, "deps", declared, true)


def cells(stage: str) -> list[list[int]]:
    """The arguments of each run of a stage: one per cell of its matrix, or none."""
    if "matrix" not in STAGES[stage]:
        return [[]]
    ((_, values),) = STAGES[stage]["matrix"].items()
    section, key = values.strip("${}").split(".")
    return [[value] for value in TINY[f"{section}.{key}"]]


def spelled_out(stage: str, names: set[str]) -> set[str]:
    """The names in every cell of the stage's matrix."""
    if "matrix" not in STAGES[stage]:
        return names
    ((axis, _),) = STAGES[stage]["matrix"].items()
    return {name.replace(f"${{item.{axis}}}", str(cell)) for (cell,) in cells(stage) for name in names}


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, set[str]]]:
    """Run every stage at a tiny scale, twice; what each read of params.yaml and of the files, and what it wrote."""
    folder = tmp_path_factory.mktemp("observed")
    shutil.copy(ROOT / "params.yaml", folder)
    shutil.copytree(ROOT / "docs/paper-scale", folder / "docs/paper-scale")
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    write_example(folder / "plugins")
    headline = {"d": 8, "width": 20, "seeds": [0, 1], "figures.dpi": 50}
    set_params(folder / "params.yaml", TINY | headline)

    seen: dict[str, dict[str, set[str]]] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("brittle.stages.fetch.obtain", few_pictures)  # test_sources.py fetches the real ones
        true_existing, true_replacing = store.existing, store.replacing
        for stage in STAGES:  # dvc.yaml lists them in the order of the chain
            module = importlib.import_module(f"brittle.stages.{stage}")
            read: set[str] = set()
            written: set[str] = set()
            patch.setattr(store, "existing", lambda path, r=read: (r.add(str(path)), true_existing(path))[1])
            patch.setattr(store, "replacing", lambda path, w=written: (w.add(str(path)), true_replacing(path))[1])
            schema = module.main.__annotations__["params"]
            params = Reads(load(getattr(module, schema)))
            digests = []
            for _ in range(2):  # again, to see whether it writes the same
                for cell in cells(stage):
                    module.main(params, *cell)
                outputs = {
                    path for path in written if not path.startswith(str(FOLDER))
                }  # a checkpoint is not an output
                digests.append({path: hashlib.sha256(Path(path).read_bytes()).hexdigest() for path in outputs})
            changed = {path for path, digest in digests[0].items() if digests[1][path] != digest}
            seen[stage] = {"params": params.keys, "read": read, "written": outputs, "changed": changed}
    shutil.rmtree(folder)
    return seen


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_writes_the_same_bytes_again(stage: str, observed: dict) -> None:
    assert observed[stage]["written"]
    assert observed[stage]["changed"] == set()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_declares_exactly_the_parameters_it_reads(stage: str, observed: dict) -> None:
    declared, true = set(STAGES[stage].get("params", [])), observed[stage]["params"]
    if "params.yaml" in STAGES[stage]["deps"]:
        true = set()  # it depends on every parameter already
    assert declared == true, difference(stage, "params", declared, true)


def test_every_parameter_is_declared_by_a_stage() -> None:
    def leaves(section: dict[str, Any], prefix: str = "") -> set[str]:
        parts = [leaves(v, f"{prefix}{k}.") if isinstance(v, dict) else {prefix + k} for k, v in section.items()]
        return set().union(*parts)

    declared = {key for stage in STAGES.values() for key in stage.get("params", [])}
    shapes = {values.strip("${}") for stage in STAGES.values() for values in stage.get("matrix", {}).values()}
    assert leaves(YAML(typ="safe", pure=True).load(ROOT / "params.yaml")) - declared - shapes == set()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_declares_exactly_the_files_it_reads_and_writes(stage: str, observed: dict) -> None:
    # data/params.checked is there for the order alone; params.yaml is read whole by the stage that checks it.
    for_order = {"data/params.checked", "params.yaml"}
    declared = {dep.replace("${cross.plugins}", "plugins") for dep in keys(STAGES[stage]["deps"])}
    declared = {dep for dep in declared if not dep.startswith("src/")} - for_order
    declared = spelled_out(stage, declared)
    # A dependency on a folder is a dependency on what is in it, and a folder of a matrix's tables, which are in Git,
    # stands for all that its cells made. What a stage has written itself it may read back.
    stands: dict[str, set[str]] = {}
    for other in (other for other in STAGES if "matrix" in STAGES[other]):
        folders = {str(Path(out).parent) for out in outputs(other)} & declared
        stands |= dict.fromkeys(spelled_out(other, outputs(other)), folders) if folders else {}
    read: set[str] = set()
    for path in observed[stage]["read"] - observed[stage]["written"]:
        read |= stands.get(path) or {str(Path(path).parent) if str(Path(path).parent) in declared else path}
    assert declared == read, difference(stage, "deps", declared, read)
    # And a folder as an output holds what is written into it.
    outs = spelled_out(stage, outputs(stage))
    written = {
        str(Path(path).parent) if str(Path(path).parent) in outs else path for path in observed[stage]["written"]
    }
    assert outs == written, difference(stage, "outs", outs, written)


def test_only_the_whole_package_has_code_of_its_own() -> None:
    # An __init__.py is imported by every module beside it, and so a dependency of every stage that uses one.
    assert [file for file in MODULES if file.name == "__init__.py"] == [SRC / "brittle/__init__.py"]


def test_every_chain_begins_after_the_parameters_are_checked() -> None:
    made = {
        out for stage in STAGES.values() for kind in ("outs", "metrics", "plots") for out in keys(stage.get(kind, []))
    }
    for name, stage in STAGES.items():
        if name != "params":
            deps = keys(stage["deps"]) | {str(Path(dep).parent) for dep in keys(stage["deps"])}  # a file in a folder
            after = deps & (made | {str(Path(out).parent) for out in made if "$" in out})
            assert after, f"stage {name} runs before its parameters are checked"


def test_metrics_and_plots_are_in_git_and_not_in_the_cache() -> None:
    for stage in STAGES.values():
        for entry in stage.get("metrics", []) + stage.get("plots", []):
            (options,) = entry.values()
            assert options["cache"] is False


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(SRC / "brittle")))
def test_a_module_imports_only_from_its_own_room_and_rooms_to_its_left(file: Path) -> None:
    def room(path: Path) -> int:
        if path.name == "__init__.py":
            return -1 if path != file else len(ROOMS)  # it comes before all others, by calling one of them
        return ROOMS.index(path.relative_to(SRC / "brittle").parts[0].removesuffix(".py"))

    for other in imported(file):
        assert room(other) <= room(file), f"{file.name} imports {other.relative_to(SRC)}, which is to its right"


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(SRC / "brittle")))
def test_nothing_is_pickled_and_only_the_store_opens_files(file: Path) -> None:
    text = file.read_text()
    for word in ("import pickle", "torch.save(", "torch.load(", "np.load(", "np.save(", "joblib"):
        assert word not in text, f"{file.name} has {word}"
    if file.name not in ("store.py", "base.py", "sources.py"):  # the last reads the files of others
        for word in ("open(", ".write_text(", ".write_bytes(", "to_csv(", "read_csv("):
            assert word not in text.replace("Popen(", ""), f"{file.name} writes or reads files past store.py"
