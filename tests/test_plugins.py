"""A file of yours: entered by one decorator, tried on everything; and one line when something is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from brittle import plugins
from brittle.core.errors import BadInput
from brittle.core.params import load
from brittle.cross import (
    data as cross_data,
)
from brittle.cross import (
    figures as cross_figures,
)
from brittle.cross import (
    networks as cross,
)
from brittle.cross import (
    plugins as cross_plugins,
)
from brittle.cross import (
    probe as cross_probe,
)
from brittle.cross import (
    train as cross_train,
)
from brittle.cross.params import CrossParams
from brittle.drawing.params import FigureParams
from brittle.plugins import ARGUMENTS
from conftest import ROOT
from tiny import TINY, set_params, write_plugins

HEADER = """
import torch
from torch import nn
from brittle.plugins import attack, net, remedy, world
from brittle.worlds.common import World

def good(**changes):
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    y = x[:, 0].sign()
    parts = dict(x=x[:20], y=y[:20], x_test=x[20:], y_test=y[20:], radius=0.1)
    return World(**(parts | changes))
"""


@pytest.fixture(autouse=True)
def _nothing_of_yours() -> Iterator[None]:
    yield
    plugins.forget()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which our own remedies are trained and probed at a tiny scale, in two worlds."""
    folder = tmp_path_factory.mktemp("cross")
    (folder / "params.yaml").write_text((ROOT / "params.yaml").read_text())
    set_params(folder / "params.yaml", TINY | {"cross.worlds": ["sphere", "lms-5"], "figures.dpi": 50})
    (folder / "plugins").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for world in ("sphere", "lms-5"):
            cross_data.main(load(cross_data.Params), world)
            cross_train.main(load(CrossParams), world)
        cross_probe.main(load(CrossParams))
    return folder


@pytest.fixture
def yours(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of plugins in there, empty."""
    monkeypatch.chdir(trained)
    for file in (trained / "plugins").iterdir():
        file.unlink()
    yield trained / "plugins"
    for file in trained.glob("plots/cross_plugin_*"):
        file.unlink()


def run() -> dict[str, pd.DataFrame]:
    """The stages that a new plugin runs; the tables that they end in."""
    cross_plugins.main(load(CrossParams))
    cross_figures.main(load(FigureParams))
    names = ("vectors", "probes", "remedies", "attacks")
    return {name: pd.read_csv(f"plots/cross_{name}.csv") for name in names}


def test_without_plugins_the_tables_are_ours_alone(yours: Path) -> None:
    tables = run()
    assert set(tables["remedies"]["remedy"]) == set(TINY["cross.remedies"])
    assert not tables["remedies"]["yours"].any()
    assert Path("plots/cross_plugin_networks.csv").read_text().count("\n") == 1


def test_the_examples_of_the_docs_get_every_probe_and_their_rows(yours: Path) -> None:
    before = run()
    assert write_plugins(yours) == ["gaussian_noise.py", "xor.py", "three_layers.py", "random_walk.py"]
    after = run()

    board = after["remedies"].set_index(["world", "net", "remedy"])
    for world in ("sphere", "lms-5", "xor"):  # the remedy in every world
        assert board.loc[(world, "two_layer", "gaussian_noise"), "yours"] == 1
    for remedy in TINY["cross.remedies"]:  # the world with every remedy
        net = remedy if remedy == "power_relu" else "two_layer"  # which brings a network of its own
        assert board.loc[("xor", net, remedy), "accuracy"] >= 0
    for world in ("sphere", "lms-5", "xor"):  # the network with and without an attacker
        assert {"nothing", "adversarial"} <= set(board.loc[(world, "three_layers")].index)
    assert ("all worlds", "each world's own", "gaussian_noise") in board.index

    probes = after["probes"].set_index(["world", "net", "training"])
    assert probes.loc[("xor", "two_layer", "nothing"), ["accuracy", "certified", "attacked", "universal"]].notna().all()
    assert (
        probes.loc[("lms-5", "three_layers", "adversarial"), ["reliance", "attacked", "theta", "density"]].notna().all()
    )
    assert {"z", "T2"} <= set(after["vectors"].query("world == 'xor'")["vector"])

    tried = after["attacks"][after["attacks"]["attack"] == "random_walk"]
    assert set(tried["remedy"]) == {*TINY["cross.remedies"], "gaussian_noise"}  # the attack on every network
    assert set(tried["world"]) == {"sphere", "lms-5", "xor"}

    # Ours are as they were, and nothing that was trained before was trained again.
    key = ["world", "net", "remedy"]
    both = before["remedies"].merge(after["remedies"], on=key, suffixes=("", "_after"))
    both = both[both["world"] != "all worlds"]
    assert len(both) == len(before["remedies"].query("world != 'all worlds'"))
    assert (both["accuracy"] == both["accuracy_after"]).all()
    assert (both["robust_after"] <= both["robust"]).all()


WRONG = {
    "a syntax error": ("def f(:", "cannot be read: SyntaxError"),
    "an import that fails": ("import no_such_module", "cannot be read: ModuleNotFoundError: No module named 'no_such"),
    "no decorator": ("x = 1", "registers nothing; put one of @world, @net, @remedy, @attack before a function"),
    "the name of one of ours": ("@remedy\ndef sam(task): pass", "remedy sam() has the name of one of our own"),
    "a name that is taken": ("@attack\ndef all(net, x, y, radius): pass", "attack all() has a reserved name"),
    "too few arguments": ("@attack\ndef a(net, x): pass", "attack a() must be a function a(net, x, y, radius)"),
    "a class": ("@net\nclass Big: pass", "net Big() must be a function Big(shape, seed)"),
    "an exception": (
        "@remedy\ndef r(task):\n    return 1 / 0",
        "remedy r() raised ZeroDivisionError: division by zero",
    ),
    "a remedy without a network": ("@remedy\ndef r(task): pass", "remedy r() must return a torch module, not NoneType"),
    "two scores": (
        "@remedy\ndef r(task): return nn.Linear(task.x.shape[1], 2)",
        "remedy r() made a network with scores",
    ),
    "scores that are not finite": (
        "@remedy\ndef r(task):\n    n = task.net()\n    n.last.weight.data[:] = torch.nan\n    return n",
        "remedy r() made a network whose scores are not finite",
    ),
    "a network for other inputs": (
        "@net\ndef n(shape, seed): return nn.Linear(3, 1)",
        "net n() made a network that fails",
    ),
    "a network that is none": ("@net\ndef n(shape, seed): return 3", "net n() must return a torch module, not int"),
    "a world that is none": ("@world\ndef w(seed): return 3", "world w() must return a brittle.worlds.common.World"),
    "a world of another shape": (
        "@world\ndef w(seed): return good(y_test=torch.ones(20, 1))",
        "world w() has y_test of the shape (20, 1); must be (20,)",
    ),
    "a world of one label": ("@world\ndef w(seed): return good(y=torch.ones(20))", "world w() has labels y other than"),
    "a world for no network": ("@world\ndef w(seed): return good(net='resnet')", "world w() has the network 'resnet'"),
    "an attack too far": ("@attack\ndef a(net, x, y, radius): return x + 9", "attack a() moved a sample by"),
    "an attack of another shape": (
        "@attack\ndef a(net, x, y, radius): return x[:1]",
        "attack a() must return inputs of",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_plugin_is_said_in_one_line_and_nothing_is_written(yours: Path, what: str) -> None:
    body, words = WRONG[what]
    (yours / "mine.py").write_text((HEADER if "(" in words else "") + body)
    with pytest.raises(BadInput) as error:
        cross_plugins.main(load(CrossParams))
    line = str(error.value)
    assert line.startswith("plugins/mine.py: ")
    assert words in line
    assert "\n" not in line
    assert not list(Path("plots").glob("cross_plugin_*"))


def test_an_error_names_the_line_of_the_file(yours: Path) -> None:
    (yours / "mine.py").write_text(
        "from brittle.plugins import remedy\n\n@remedy\ndef r(task):\n    return undefined\n"
    )
    with pytest.raises(BadInput, match=re.escape("raised NameError: name 'undefined' is not defined (line 5)")):
        cross_plugins.main(load(CrossParams))


def test_two_files_may_not_enter_the_same_name(yours: Path) -> None:
    for name in ("a.py", "b.py"):
        (yours / name).write_text("from brittle.plugins import remedy\n\n@remedy\ndef r(task): pass\n")
    with pytest.raises(BadInput, match=re.escape("plugins/b.py: remedy r() has the name of plugins/a.py")):
        cross_plugins.main(load(CrossParams))


def test_a_folder_that_is_not_there_is_named(yours: Path) -> None:
    with pytest.raises(BadInput, match=r"^params.yaml: cross.plugins = 'elsewhere': is not a folder here"):
        cross_plugins.files("elsewhere")


def test_a_world_may_bring_a_network_of_yours(yours: Path) -> None:
    (yours / "mine.py").write_text(
        HEADER
        + """
@net
def flat(shape, seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(shape[0], 1), nn.Flatten(0)) if shape == (4,) else None

@world
def w(seed): return good(net="flat")
"""
    )
    rows = run()["remedies"].query("world == 'w'")
    assert set(rows["net"]) == {"flat", "power_relu"}  # a remedy that brings a network of its own
    assert set(rows.query("net == 'flat'")["remedy"]) == {*TINY["cross.remedies"]} - {"power_relu"}


def test_only_the_folder_that_is_named_is_run(yours: Path) -> None:
    (yours.parent / "evil.py").write_text("raise RuntimeError('ran')")
    (yours / "deeper").mkdir()
    (yours / "deeper/evil.py").write_text("raise RuntimeError('ran')")
    try:
        assert cross_plugins.files("plugins") == {}
    finally:
        (yours / "deeper/evil.py").unlink()
        (yours / "deeper").rmdir()


def test_every_kind_is_documented() -> None:
    text = (ROOT / "docs/plugins.md").read_text()
    for kind in ARGUMENTS:
        assert f"\n@{kind}\n" in text


def test_our_own_are_entered_in_the_same_way() -> None:
    assert {each.name for each in plugins.built_in("net")} == {"two_layer", "power_relu", "symmetric", "cnn"}
    assert {each.name for each in plugins.built_in("attack")} == {"pgd", "nearest"}
    assert cross.plugins.named("remedy", "sam").title == "remedy sam"
    with pytest.raises(BadInput, match="is not a remedy; must be one of nothing, "):
        plugins.named("remedy", "prayer")
