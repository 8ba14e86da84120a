"""Nobody gets in: what a remote, a data folder or a cache holds is read, and never run."""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import os
import pickle
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from brittle import plugins
from brittle.core import store
from brittle.core.errors import BadInput
from brittle.core.stage import run
from brittle.cross import plugins as cross_plugins
from brittle.tools.graph import stages
from brittle.tools.verify import _cached
from brittle.worlds import sources
from conftest import ENV, MODULES, ROOT, Repo
from tiny import SMALL, TINY, set_params

STAGES = stages()
FILES = sorted((ROOT / "src/brittle").rglob("*.py"))


class Trap:
    """An object whose pickle makes a folder when it is loaded."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[..., None], tuple[str]]:
        return os.mkdir, (str(self.folder),)


def trap(folder: Path) -> bytes:
    return pickle.dumps(Trap(folder))


def test_the_trap_works(tmp_path: Path) -> None:
    pickle.loads(trap(tmp_path / "sprung"))  # noqa: S301
    assert (tmp_path / "sprung").is_dir()


# What a safetensors file may say of itself


def tensors(header: bytes | dict[str, Any], data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(begin: int, end: int, shape: list[int], dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


HOSTILE = {
    "a header of 2^64 bytes": b"\xff" * 8 + b"{}",
    "a header of 100 MB that is not there": struct.pack("<Q", 99_999_999) + b"{}",
    "tensors that overlap": tensors({"x": entry(0, 8, [2]), "y": entry(4, 12, [2])}, b"\0" * 12),
    "a tensor beyond the end": tensors({"x": entry(0, 2**40, [2**38])}, b"\0" * 8),
    "a tensor that ends before it begins": tensors({"x": entry(8, 0, [2])}, b"\0" * 8),
    "a shape beyond all numbers": tensors({"x": entry(0, 8, [2**62, 2**62])}, b"\0" * 8),
    "a header nested 100000 deep": tensors(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "a key twice": tensors(
        b'{"x":%b,"x":%b}' % (json.dumps(entry(0, 8, [2])).encode(), json.dumps(entry(8, 12, [1])).encode()), b"\0" * 12
    ),
    "objects for numbers": tensors({"x": entry(0, 8, [1], "O")}, b"\0" * 8),
    "bytes that no tensor covers": tensors({"x": entry(0, 8, [2])}, b"\0" * 100),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_safetensors_header_is_refused_in_one_line(tmp_path: Path, what: str) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(HOSTILE[what])
    with pytest.raises(BadInput, match="is not a complete safetensors file") as refusal:
        store.load_tensors(path, {"x": "..."})
    assert str(refusal.value).startswith(f"{path}: ")
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3"])
def test_numbers_that_numpy_does_not_know_are_refused_in_one_line(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(tensors({"x": entry(0, 8, [4 if dtype == "BF16" else 8], dtype)}, b"\0" * 8))
    with pytest.raises(BadInput, match="is not a complete safetensors file"):
        store.load_tensors(path, {"x": "..."})


# Every stage that reads tensors


def cell(stage: str) -> list[Any]:
    """The first cell of the stage's matrix, if it has one."""
    first = STAGES[stage].cells(SMALL)[0]
    return [] if first is None else [first]


def reads(stage: str) -> list[str]:
    """The files of tensors that dvc.yaml says a stage reads, in its first cell."""
    deps = [dep for dep in STAGES[stage].inputs if dep.endswith(".safetensors")]
    for value in cell(stage):
        deps = [dep.replace(f"${{item.{STAGES[stage].axis[0]}}}", str(value)) for dep in deps]
    return deps


# These read a table or a folder first, which is not there: they stop before they come to the hostile file.
LATER = {"cross_data", "recipes_probe", "noisy_probe", "adversarial_probe", "mnist_cifar_figures", "cifar10_figures"}
READERS = [stage for stage in STAGES if reads(stage) and stage not in LATER]


@pytest.mark.parametrize("kind", ["a pickle", "a header of 2^64 bytes"])
@pytest.mark.parametrize("stage", READERS)
def test_a_stage_refuses_a_hostile_file_in_one_line(
    stage: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "params.yaml", tmp_path)
    set_params(tmp_path / "params.yaml", TINY | {"d": 8, "width": 20, "seeds": [0]})
    for name in reads(stage):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(trap(tmp_path / "sprung") if kind == "a pickle" else HOSTILE[kind])
    module = importlib.import_module(MODULES[stage])
    monkeypatch.setattr(sys, "argv", ["stage", *map(str, cell(stage))])
    with pytest.raises(SystemExit) as end:
        run(module.main, getattr(module, module.main.__annotations__["params"]))
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.split(": ")[0] in reads(stage)
    assert "is not a complete safetensors file" in line
    assert not (tmp_path / "sprung").exists()


def test_the_stages_above_are_most_of_those_that_there_are() -> None:
    assert {"margin_train", "margin_attack", "sweep_attack"} < set(READERS)
    assert len(READERS) >= 20


def test_a_pickle_from_a_remote_is_fetched_and_refused(
    small: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By someone who owns the remote and has changed dvc.lock to match."""
    monkeypatch.setitem(ENV, "DVC_SITE_CACHE_DIR", str(tmp_path / "site"))
    repo = small.copy(tmp_path / "brittle")
    pipeline = YAML().load(repo.path / "dvc.yaml")
    pipeline["stages"] = {name: pipeline["stages"][name] for name in ("margin_data", "margin_train")}
    YAML().dump(pipeline, repo.path / "dvc.yaml")
    (repo.path / "data/params.checked").write_text("checked\n")
    repo.run("dvc", "repro", "margin_data")

    evil = trap(tmp_path / "sprung")
    md5 = hashlib.md5(evil).hexdigest()
    planted = tmp_path / "remote/files/md5" / md5[:2] / md5[2:]
    planted.parent.mkdir(parents=True)
    planted.write_bytes(evil)
    lock = YAML().load(repo.path / "dvc.lock")
    lock["stages"]["margin_data"]["outs"][0] |= {"md5": md5, "size": len(evil)}
    YAML().dump(lock, repo.path / "dvc.lock")
    shutil.rmtree(repo.path / ".dvc/cache")
    (repo.path / "data/margin.safetensors").unlink()
    repo.run("dvc", "remote", "add", "--default", "storage", str(tmp_path / "remote"))
    repo.run("dvc", "pull", "margin_data")
    assert (repo.path / "data/margin.safetensors").read_bytes() == evil

    out = repo.run("dvc", "repro", "margin_train", fails=True)
    assert out.count("data/margin.safetensors: is not a complete safetensors file") == 1
    assert "exited with 2" in out
    assert "Traceback" not in out
    assert not (tmp_path / "sprung").exists()


# Nothing in the source could


# Modules that build objects from bytes as the bytes ask for it, or start a shell …
BANNED = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "code", "pty"}
# … and functions.
CALLS = {"eval", "exec", "compile", "__import__", "execfile"}
METHODS = {"read_pickle", "to_pickle", "unsafe_load", "full_load", "system", "popen", "load_state_dict_from_url"}
OWNERS = {("torch", "load"), ("torch", "save"), ("np", "load"), ("numpy", "load"), ("yaml", "load"), ("hub", "load")}


def suspects(text: str) -> list[str]:
    """Whatever in a source could run what it reads."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.split(".")[0] in BANNED]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in BANNED:
            found.append(str(node.module))
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in CALLS:
                found.append(called.id)
            elif isinstance(called, ast.Attribute):
                owner = getattr(called.value, "id", getattr(called.value, "attr", ""))
                if called.attr in METHODS or (owner, called.attr) in OWNERS:
                    found.append(f"{owner}.{called.attr}")
            safe = {"typ": "safe"}
            given = {word.arg: getattr(word.value, "value", None) for word in node.keywords}
            if getattr(called, "id", "") == "YAML" and not safe.items() <= given.items():
                found.append("YAML")
            found += [word for word in ("shell", "allow_pickle") if given.get(word)]
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT / "src/brittle")))
def test_no_module_but_the_loader_of_plugins_runs_what_it_reads(file: Path) -> None:
    allowed = ["exec", "compile"] if file == ROOT / "src/brittle/plugins.py" else []
    assert suspects(file.read_text()) == allowed


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from joblib import load",
        "torch.load(f)",
        "np.load(f, allow_pickle=True)",
        "eval(text)",
        "yaml.load(text)",
        "YAML(typ='unsafe').load(text)",
        "pd.read_pickle(f)",
        "subprocess.run(text, shell=True)",
        "os.system(text)",
    ],
)
def test_what_could_is_noticed(line: str) -> None:
    assert suspects(line)


def test_every_download_has_a_pinned_sha256_of_all_its_arrays() -> None:
    for data in sources.SETS.values():
        assert set(data.digests) == {"train_x", "train_y", "test_x", "test_y"}
        assert all(len(bytes.fromhex(digest)) == 32 for digest in data.digests.values())


# Plugins


def remedy(name: str, folder: Path) -> str:
    """A plugin that makes a folder as it is read."""
    made = f"import os\nos.makedirs({str(folder / name)!r})\n"
    return f"{made}from brittle.plugins import remedy\n@remedy\ndef {name}(task):\n    return task.fit()\n"


def test_plugins_are_loaded_from_the_folder_that_is_named_and_from_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = tmp_path / "ran"
    named = tmp_path / "mine"
    elsewhere = [
        tmp_path,
        *(tmp_path / name for name in ("plugins", "data", "models", ".dvc/cache/files/md5/ab", "mine/deeper", "mine2")),
    ]
    for i, folder in enumerate(elsewhere):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"other{i}.py").write_text(remedy(f"other{i}", ran))
    (named / "wanted.py").write_text(remedy("wanted", ran))
    (named / "wanted.pyc").write_bytes(b"\0")
    (named / "notes.txt").write_text("not Python")
    try:
        assert [each.name for each in plugins.load_files(cross_plugins.files("mine"))] == ["wanted"]
    finally:
        plugins.forget()
    assert [path.name for path in ran.iterdir()] == ["wanted"]


def test_no_stage_but_cross_plugin_loads_plugins() -> None:
    def loads(file: Path) -> bool:
        calls = [node.func for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        return any(
            isinstance(f, ast.Attribute) and f.attr == "load_files" and getattr(f.value, "id", "") == "plugins"
            for f in calls
        )

    assert [file.name for file in FILES if loads(file)] == ["plugins.py"]


def test_a_list_of_a_folder_that_names_files_outside_of_it_is_named(tmp_path: Path) -> None:
    """DVC would write them there (3.67.1): whoever writes to a storage is trusted by whoever pulls from it."""
    for name in ("adversarial.safetensors", "../../plugins/evil.py", "/etc/evil"):
        content = json.dumps([{"md5": "0" * 32, "relpath": name}]).encode()
        md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
        store.save_bytes(tmp_path / md5[:2] / f"{md5[2:]}.dir", content)
    told = sorted(line.split(": ", 1)[1] for line in _cached(tmp_path))
    why = "outside of its folder: the storage is not to be trusted"
    assert told == [f"lists ../../plugins/evil.py, {why}", f"lists /etc/evil, {why}"]
