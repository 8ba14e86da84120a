"""The stages of O and A as functions, at the tiny scale: what they train, and what their rows say."""

from __future__ import annotations

import math

import pytest
import torch

from brittle.after import geometry_margins, geometry_reliance, off_subspace, off_subspace_boards
from brittle.after.geometry_params import GeometryParams
from brittle.after.off_subspace_params import OffSubspaceParams
from brittle.core.errors import BadInput
from brittle.core.params import validated
from brittle.params import at_scale
from brittle.train.losses import ln_loss
from brittle.worlds import subspace
from conftest import ROOT

TINY = ROOT / "presets/tiny.yaml"
GEOMETRY = at_scale(GeometryParams, TINY, ROOT / "params.yaml").geometry
OFF = at_scale(OffSubspaceParams, TINY, ROOT / "params.yaml").off_subspace
CPU = torch.device("cpu")


@pytest.mark.parametrize("kind", GEOMETRY.networks)
def test_networks_are_measured_where_the_loss_falls_below_each_level(kind: str) -> None:
    seen = []
    for level, net, x, y in geometry_margins.trained(GEOMETRY, kind, "muon", CPU):
        seen.append(level)
        assert type(net) is geometry_margins.NETWORKS[kind]
        ln = ln_loss(y * net(x), "exponential")[0]
        assert bool((ln <= level * math.log(10)).all())
        assert bool((ln > 3 * level * math.log(10)).all())  # and not far below
    assert seen == [-1, -3]


def test_too_few_steps_are_said_in_one_line() -> None:
    few = GEOMETRY.model_copy(update={"max_steps": 1})
    with pytest.raises(
        BadInput, match=r"^geometry_margins: relu, gd: stopped at .*; a larger geometry.max_steps may help$"
    ):
        list(geometry_margins.trained(few, "relu", "gd", CPU))


def test_every_world_rate_and_seed_of_the_reliance_has_a_row() -> None:
    worlds = {name: geometry_reliance.draw(GEOMETRY.reliance, name, CPU) for name in GEOMETRY.reliance.worlds}
    rows = geometry_reliance.trained(GEOMETRY, "fcn-100-1", "muon", worlds)
    assert [(row["world"], row["lr"], row["seed"]) for row in rows] == [
        (world, 0.01, seed) for world in ("lms-5", "ms-5-7") for seed in (0, 1)
    ]
    assert all(0 <= row[area] <= 1 for row in rows for area in ("accuracy", "auc_standard", "auc_s", "auc_rest"))
    world = worlds["lms-5"]
    signed = world.y_test * (world.x_test @ world.q_s[0])  # the linear coordinate tells the label
    assert float(signed.min()) > 0


def test_networks_off_the_subspace_are_as_they_are_derived() -> None:
    plain, decayed = off_subspace.groups(OFF)
    assert {(case.codimension, case.scale) for case in plain} == {(3, 1.0), (6, 1.0), (6, 0.5)}
    assert {(case.codimension, case.scale, case.decay) for case in decayed} == {(6, 1.0, 0.01), (6, 1.0, 0.02)}
    for row in off_subspace.trained(OFF, plain):
        assert row["moved"] < 1e-12
        assert row["left"] == pytest.approx(1)
        assert row["updates"] % 2 == 0  # batches of three of six samples
    for row in off_subspace.trained(OFF, decayed):
        assert row["left"] == pytest.approx((1 - 0.1 * row["decay"]) ** 20)
        assert row["moved"] < 1e-12


def test_a_smaller_start_has_the_same_data_and_smaller_weights() -> None:
    large, small = (off_subspace.Case(6, scale, 0.0, seed=1) for scale in (1.0, 0.5))
    assert all(torch.equal(a, b) for a, b in zip(large.data(OFF), small.data(OFF), strict=True))
    torch.testing.assert_close(large.initial(OFF), 2 * small.initial(OFF))


@pytest.mark.parametrize(("name", "board"), [("diagonal", OFF.boards.diagonal), ("chess", OFF.boards.chess)])
def test_the_cut_contains_the_points_that_are_drawn(name: str, board: object) -> None:
    x, y = subspace.diagonal() if name == "diagonal" else subspace.chess_board()
    a, b, plane = off_subspace_boards.cut(name, 5)
    assert plane.shape == (25, x.shape[1])
    assert (plane[:, 0].numpy() == a).all()
    assert (plane[:, -1].numpy() == b).all()
    assert (a.min() < x[:, 0].min()) & (a.max() > x[:, 0].max())
    assert (b.min() < x[:, -1].min()) & (b.max() > x[:, -1].max())
    assert off_subspace_boards.trained(OFF.boards, board, x, y)(plane).shape == (3, 25)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"codimensions": [12]}, "must be below d = 12"),
        ({"lr": 60.0}, "must be below 1 / lr, which is 0.0166667"),
    ],
)
def test_parameters_that_do_not_fit_together_are_refused(change: dict[str, object], line: str) -> None:
    with pytest.raises(BadInput, match=line):
        validated(OffSubspaceParams, {"device": "cpu", "off_subspace": OFF.model_dump() | change}, "params.yaml")
