"""The pipeline's definition tells the truth: a stage depends on exactly what it imports and reads, and no more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from brittle.core.errors import BadInput
from brittle.tools.graph import (
    CORE,
    ROOT,
    SRC,
    WIDTH,
    Stage,
    files,
    grouped,
    imported,
    listed,
    reach,
    rewritten,
    sources,
    stages,
    ungrouped,
)
from brittle.tools.observe import Observed, observe
from tiny import SMALL, VALUES

STAGES = stages()
MODULES = sorted((SRC / "brittle").rglob("*.py"))
# Each package or module imports only from those to its left, and chapters not from each other.
LIBRARY = [
    "core",
    "processes",
    "plugins",
    "worlds",
    "nets",
    "train",
    "attacks",
    "probes",
    "drawing",
    "long_runs",
    "verdicts",
]
CHAPTERS = ["margin", "slabs", "sparse", "pictures", "after"]
LAYERS = [
    *LIBRARY,
    CHAPTERS,
    "cross",
    "params",
    "report",
    "claims",
    "arguments",
    "user_network",
    "probe",
    "compare",
    "scale",
    "tools",
    "evidence",
]


def difference(stage: str, what: str, declared: set[str], true: set[str]) -> str:
    advice = "run `python -m brittle.tools.graph --write`"
    add = [f"stage {stage}: {what} lacks {name}; {advice}" for name in sorted(true - declared)]
    remove = [f"stage {stage}: {what} has {name} for nothing; {advice}" for name in sorted(declared - true)]
    return "\n".join(add + remove)


def spelled_out(stage: Stage, names: list[str]) -> set[str]:
    """The names in every cell of the stage's matrix, at the tiny scale."""
    axis = stage.axis[0] if stage.axis else ""
    return {name.replace(f"${{item.{axis}}}", str(cell)) for cell in stage.cells(SMALL) for name in names}


# --- Source files


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_depends_on_exactly_the_modules_it_imports(stage: str) -> None:
    declared, true = {dep for dep in STAGES[stage].deps if dep.startswith("src/")}, set(sources(STAGES[stage]))
    assert declared == true, difference(stage, "deps", declared, true)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_a_module_of_its_chapter_that_runs_in_the_root(stage: str) -> None:
    each = STAGES[stage]
    cell = f" ${{item.{each.axis[0]}}}" if each.axis else ""
    assert each.definition["cmd"] == f"PYTHONPATH=src python -m {each.module}{cell}"
    if each.file == ROOT / "dvc.yaml":
        assert "wdir" not in each.definition
    else:
        chapter = {"theory": "margin"}.get(each.file.parent.name, each.file.parent.name)
        assert each.definition["wdir"] == "../.."
        assert each.module in (f"brittle.{chapter}.{stage}", f"brittle.{chapter}.{stage.removeprefix(f'{chapter}_')}")


def test_an_edit_re_runs_no_more_stages_than_the_modules_that_import_it() -> None:
    """core/ is one dependency only of stages that import all of it, so nothing is declared that is not imported."""
    inside = {str(path.relative_to(ROOT)) for path in CORE.glob("*.py")}
    for stage in STAGES.values():
        assert not ("src/brittle/core" in stage.deps and inside & set(stage.deps))
    # Where one dvc.yaml listed every file it was 7.94 of 82 stages.
    cells = sum(len(stage.cells(VALUES)) for stage in STAGES.values())
    assert reach(STAGES.values(), VALUES) / cells <= 7.94 / 82


def test_editing_how_figures_look_re_runs_no_computation() -> None:
    drawing = {str(path.relative_to(ROOT)) for path in (SRC / "brittle/drawing").glob("*.py")}
    plotting = {str(path.relative_to(ROOT)) for path in (SRC / "brittle").glob("*/plot*.py")}
    for stage in STAGES.values():
        if (drawing | plotting) & set(stage.deps):
            assert stage.name.endswith("_figures") or stage.name in ("params", "report"), stage.name
        if stage.name.endswith("_figures"):
            assert not any(out.endswith((".safetensors", ".csv")) for out in stage.outputs if "cross_" not in out)


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(SRC / "brittle")))
def test_a_module_imports_only_from_its_own_package_and_those_to_its_left(file: Path) -> None:
    def layer(path: Path) -> tuple[int, str]:
        name = path.relative_to(SRC / "brittle").parts[0].removesuffix(".py")
        if name == "__init__":
            return (len(LAYERS) if path == file else -1), name  # it comes before all others, by calling one of them
        return next(i for i, each in enumerate(LAYERS) if name == each or (name in CHAPTERS and each is CHAPTERS)), name

    own, package = layer(file)
    for other in imported(file):
        at, theirs = layer(other)
        assert at < own or theirs == package, f"{file.name} imports {other.relative_to(SRC)}, which is to its right"


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(SRC / "brittle")))
def test_no_module_is_long(file: Path) -> None:
    assert len(file.read_text().splitlines()) <= 400


def test_only_the_whole_package_has_code_of_its_own() -> None:
    # An __init__.py is imported by every module beside it, and so a dependency of every stage that uses one.
    assert [file for file in MODULES if file.name == "__init__.py"] == [SRC / "brittle/__init__.py"]


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(SRC / "brittle")))
def test_nothing_is_pickled_and_only_the_store_opens_files(file: Path) -> None:
    text = file.read_text()
    for word in ("import pickle", "torch.save(", "torch.load(", "np.load(", "np.save(", "joblib"):
        assert word not in text, f"{file.name} has {word}"
    # sources.py reads the files of others, processes.py and preloaded.py write to the kernel; tools, scale and evidence
    # work on this repository.
    allowed = ("core/store.py", "core/params.py", "worlds/sources.py", "tools/graph.py", "tools/observe.py")
    allowed += ("evidence/run.py", "scale/local.py", "scale/preloaded.py", "processes.py")
    name = str(file.relative_to(SRC / "brittle"))
    if name not in allowed:
        for word in ("open(", ".write_text(", ".write_bytes(", "to_csv(", "read_csv("):
            assert word not in text.replace("Popen(", ""), f"{file.name} writes or reads files past store.py"
    # What is read past store.py is not seen by `observe`: source code, README, params.yaml as a whole, plugins, a
    # workspace that is compared.
    reading = (
        "core/progress.py",
        "report/build.py",
        "report/page.py",
        "claims.py",
        "cross/plugins.py",
        "compare/sides.py",
    )
    if name not in (*allowed, *reading) and file.parent.name not in ("tools", "scale"):
        for word in (".read_text(", ".read_bytes("):
            assert word not in text, f"{file.name} reads files past store.py"


# --- Parameters and files, seen while every stage runs


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Observed]:
    return observe(STAGES, tmp_path_factory.mktemp("observed"), twice=True)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_writes_the_same_bytes_again(stage: str, observed: dict[str, Observed]) -> None:
    assert observed[stage].written
    assert observed[stage].changed == set()


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_declares_exactly_the_parameters_it_reads(stage: str, observed: dict[str, Observed]) -> None:
    declared, true = set(STAGES[stage].definition.get("params", [])), set(grouped(observed[stage].keys, VALUES))
    if "params.yaml" in STAGES[stage].deps:
        true = set()  # it depends on every parameter already
    assert declared == true, difference(stage, "params", declared, true)


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_declares_exactly_the_files_it_reads_and_writes(stage: str, observed: dict[str, Observed]) -> None:
    # data/params.checked is there for the order alone; params.yaml is read whole by the stage that checks it.
    for_order = {"data/params.checked", "params.yaml"}
    declared = spelled_out(STAGES[stage], [dep.replace("${cross.plugins}", "plugins") for dep in STAGES[stage].inputs])
    declared -= for_order
    # A dependency on a folder is a dependency on what is in it, and a folder of a matrix's tables, which are in Git,
    # stands for all that its cells made. What a stage has written itself it may read back.
    stands: dict[str, set[str]] = {}
    for other in (other for other in STAGES.values() if other.axis):
        folders = {str(Path(out).parent) for out in other.outputs} & declared
        stands |= dict.fromkeys(spelled_out(other, other.outputs), folders) if folders else {}
    read: set[str] = set()
    for path in observed[stage].read - observed[stage].written:
        above = (str(folder) for folder in Path(path).parents if str(folder) in declared)
        read |= stands.get(path) or {next(above, path)}
    # Long runs may not be there yet. Then nothing is read of them, but what is drawn depends on them all the same.
    declared -= {"evidence"} - read
    assert declared == read, difference(stage, "deps", declared, read)
    outs = spelled_out(STAGES[stage], STAGES[stage].outputs)
    assert outs == observed[stage].written, difference(stage, "outs", outs, observed[stage].written)


def test_every_parameter_is_declared_by_a_stage() -> None:
    declared = {key for stage in STAGES.values() for key in stage.definition.get("params", [])}
    cells = {stage.axis[1] for stage in STAGES.values() if stage.axis}
    assert set(VALUES) - ungrouped(declared, VALUES) - cells == set()


# --- The graph


def test_no_stage_depends_on_a_folder_that_is_not_in_git() -> None:
    """Its list would be in DVC's cache alone, and a fresh clone could not tell whether it has changed."""
    for stage in STAGES.values():
        for dep in stage.inputs:
            assert Path(dep).suffix or dep.startswith(("plots/", "evidence", "${")), (
                f"{stage.name} depends on the folder {dep}"
            )
        for out in stage.outputs:
            assert Path(out).suffix, f"{stage.name} has the folder {out} as an output"


def test_every_chain_begins_after_the_parameters_are_checked() -> None:
    made = {out for stage in STAGES.values() for out in stage.outputs}
    for name, stage in STAGES.items():
        after = set(stage.inputs) & (made | {str(Path(out).parent) for out in made if "$" in out})
        assert after or name == "params", f"stage {name} runs before its parameters are checked"


def test_plain_dvc_repro_reaches_every_stage() -> None:
    """It runs the stages of the dvc.yaml at the root, and all that they need."""
    made = {out: stage for stage in STAGES.values() for out in stage.outputs}
    made |= {str(Path(out).parent): stage for out, stage in made.items() if "$" in out}
    todo, reached = [stage for stage in STAGES.values() if stage.file == ROOT / "dvc.yaml"], set()
    while todo:
        stage = todo.pop()
        reached.add(stage.name)
        todo += [made[dep] for dep in stage.inputs if dep in made and made[dep].name not in reached]
    assert reached == set(STAGES)


def test_metrics_and_plots_are_in_git_and_not_in_the_cache() -> None:
    for stage in STAGES.values():
        for entry in stage.definition.get("metrics", []) + stage.definition.get("plots", []):
            (options,) = entry.values()
            assert options["cache"] is False


def test_the_definition_can_be_read() -> None:
    lengths = {file: len(file.read_text().splitlines()) for file in files()}
    assert sum(lengths.values()) <= 1250
    assert max(lengths.values()) <= 260
    for file in files():
        assert all(len(line) <= 250 for line in file.read_text().splitlines()), file


def test_lock_files_are_short_and_know_no_stage_that_does_not_exist() -> None:
    for file in files():
        text = file.with_name("dvc.lock").read_text()
        assert len(text.splitlines()) <= 2700, file
        here = [stage for stage in STAGES.values() if stage.file == file]
        cells = {f"{each.name}@{cell}" if each.axis else each.name for each in here for cell in each.cells(VALUES)}
        assert set(YAML(typ="safe", pure=True).load(text)["stages"]) == cells, file


# --- The program that writes it


def test_groups_are_named_where_all_of_their_keys_are_read() -> None:
    values = dict.fromkeys(["d", "a.x", "a.b.y", "a.b.z", "c.x"])
    assert grouped({"a.x", "a.b.y", "a.b.z"}, values) == ["a"]
    assert grouped({"d", "a.b.y", "a.b.z"}, values) == ["a.b", "d"]
    assert grouped({"a.b.y", "c.x"}, values) == ["a.b.y", "c"]
    assert ungrouped(["a.b", "d"], values) == {"a.b.y", "a.b.z", "d"}


def test_lists_are_wrapped_and_read_back_as_they_were() -> None:
    first, rest = ["data/${item.d}.csv", "plots/x.csv"], [f"src/brittle/module_{i}.py" for i in range(30)]
    lines = listed("deps", first, rest)
    assert max(map(len, lines)) <= WIDTH
    assert YAML(typ="safe", pure=True).load("\n".join(lines)) == {"deps": first + rest}


def test_a_wrong_list_is_put_right_and_the_rest_left_alone() -> None:
    for file in files():
        text = file.read_text()
        own = {
            s.name: (s.inputs, sources(s), s.definition.get("params", [])) for s in STAGES.values() if s.file == file
        }
        assert rewritten(text, own) == text
        wrong = re.sub(r"src/brittle/core(?=[,\]])", "src/brittle/nothing.py", text)
        wrong = re.sub(r"    params: \[[^\]]*\]\n", "    params: [nothing]\n", wrong, count=1)
        assert wrong != text
        assert rewritten(wrong, own) == text


def pipeline(folder: Path, **definitions: str) -> Path:
    """A project whose dvc.yaml files have these stages: `root` and chapters by name."""
    for name, text in definitions.items():
        file = folder / ("dvc.yaml" if name == "root" else f"pipelines/{name}/dvc.yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"stages:\n{text}")
    return folder


SAME = "  same:\n    cmd: python -m brittle.claims\n    deps: [x]\n"


@pytest.mark.parametrize(
    ("definitions", "line"),
    [
        ({"root": SAME, "a": SAME}, "pipelines/a/dvc.yaml: stage same is also in dvc.yaml"),
        ({"root": SAME.replace("    deps: [x]\n", "")}, "dvc.yaml: stage same: must have a list of `deps`"),
        ({"root": SAME.replace("python -m", "sh")}, "dvc.yaml: stage same: must have a `cmd` like "),
        ({"root": SAME + "    matrix: {d: [1, 2]}\n"}, "dvc.yaml: stage same: must have a `matrix` of one axis"),
        ({"root": SAME + "    outs: [x]\n"}, "dvc.yaml: same needs same: stages must not wait for each other"),
        ({"root": "  same: [\n"}, "dvc.yaml: is not valid YAML at line"),
    ],
)
def test_a_wrong_definition_is_told_in_one_line(definitions: dict[str, str], line: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as wrong:
        stages(pipeline(tmp_path, **definitions))
    assert str(wrong.value).startswith(line)
    assert "\n" not in str(wrong.value)


def test_a_project_without_chapters_has_the_stages_of_its_root(tmp_path: Path) -> None:
    assert list(stages(pipeline(tmp_path, root=SAME))) == ["same"]
    assert stages(pipeline(tmp_path, root="")) == {}


@pytest.mark.parametrize("form", ["  my-stage:", "  b:  # a comment"])
def test_names_and_comments_do_not_mislead_the_writer(form: str) -> None:
    text = f"stages:\n  a:\n    deps: [x]\n\n{form}\n    deps: [y]\n    params: [p]\n"
    assert rewritten(text, {"a": (["x"], ["src/a.py"], [])}) == text.replace("[x]", "[x,\n      src/a.py]")


OTHER_FORMS = ["    deps: [\n      x\n    ]", "    deps:\n    - x\n    - y: {z: 1}", "    deps:\n      - x"]


@pytest.mark.parametrize("old", OTHER_FORMS)
def test_lists_in_other_forms_are_replaced_whole_or_refused(old: str) -> None:
    text = f"stages:\n  a:\n    # why\n{old}\n    outs: [z]\n"
    new = rewritten(text, {"a": (["x"], ["src/a.py"], ["d"])})
    assert new == "stages:\n  a:\n    # why\n    deps: [x,\n      src/a.py]\n    params: [d]\n    outs: [z]\n"
