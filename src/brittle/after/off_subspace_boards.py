"""The two pictures of Melamed, Yehudai & Vardi: boundaries on a diagonal and around a chess board, and two remedies."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.after.off_subspace_params import Board, Boards, OffSubspaceParams
from brittle.core import store
from brittle.core.stage import run
from brittle.nets.fcn import Fcn
from brittle.train.sgd import Member, SgdPlan, SgdState, initial, train
from brittle.worlds import subspace

TRAININGS = ("plain", "small", "decay")


def main(params: OffSubspaceParams) -> None:
    p = params.off_subspace.boards
    tables, points = [], []
    for name, (x, y), board in (
        ("diagonal", subspace.diagonal(), p.diagonal),
        ("chess", subspace.chess_board(), p.chess),
    ):
        shown = x[:, 1] == 0.5 if name == "chess" else np.ones(len(x), dtype=bool)  # one row of the board
        f = trained(p, board, x, y)
        a, b, plane = cut(name, p.grid)
        for i, training in enumerate(TRAININGS):
            scores, right = f(plane)[i], f(torch.from_numpy(x))[i].numpy() * y > 0
            tables.append(pd.DataFrame({"board": name, "training": training, "a": a, "b": b, "score": scores.numpy()}))
            cell = {"board": name, "training": training, "accuracy": right.mean()}
            points.append(pd.DataFrame(cell | {"a": x[shown, 0], "b": x[shown, -1], "y": y[shown]}))
    store.save_table("plots/off_subspace_boards.csv", pd.concat(tables))
    store.save_table("plots/off_subspace_points.csv", pd.concat(points))


def trained(p: Boards, board: Board, x: np.ndarray, y: np.ndarray) -> Callable[[Tensor], Tensor]:
    """The three networks as one function from points to scores, (n, d) -> (3, n)."""
    scales, decays = torch.tensor([1.0, board.small, 1.0]), (0.0, 0.0, board.decay)
    net = Fcn(x.shape[1], board.width, 1)
    members = [Member(p.seed, 0, board.lr, 0.9, decay) for decay in decays]
    start = SgdState.start((initial(net, members) * scales[:, None]).double())
    data = (torch.from_numpy(each)[None] for each in (x, y))
    theta = train(net, members, *data, SgdPlan(board.epochs, batch=len(y), target=p.target), state=start).theta
    return lambda points: net(theta, points[None].expand(3, -1, -1))


def cut(name: str, grid: int) -> tuple[np.ndarray, np.ndarray, Tensor]:
    """A grid on the plane that is drawn: all of R², or the one that stands on the middle row of the board."""
    low, high, bottom, top = (-1.6, 1.6, -1.6, 1.6) if name == "diagonal" else (-0.2, 1.2, -0.5, 1.5)
    a, b = (each.ravel() for each in np.meshgrid(np.linspace(low, high, grid), np.linspace(bottom, top, grid)))
    columns = [a, b] if name == "diagonal" else [a, np.full_like(a, 0.5), b]
    return a, b, torch.from_numpy(np.stack(columns, axis=1))


if __name__ == "__main__":
    run(main, OffSubspaceParams)
