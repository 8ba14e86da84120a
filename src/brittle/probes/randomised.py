"""How far a network relies on a set S of features: its scores when S, or the rest, is from other samples (SB §3.2).

Features are seen through a rotation: feature i is the component along q[i], a row of an orthogonal matrix, and S is
given by its rows `q_s`. All features of a set come from the same donor, so that the set keeps its joint distribution
and only its tie to the label, and to the other set, is cut. A donor is any sample (randomised) or one of the other
label (swapped), so that the two sets contradict each other on every sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import astuple, dataclass

import numpy as np
import torch
from scipy.stats import ks_2samp
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from brittle.core.errors import BadInput

ROWS = 1 << 13  # samples evaluated at a time: what a layer of some thousand neurons can hold in memory


def randomise_s(x: Tensor, donors: Tensor, q_s: Tensor) -> Tensor:
    """x with the features S taken from its donors."""  # (n, d), (n, d), (|S|, d) -> (n, d)
    return x + (donors - x) @ q_s.T @ q_s


def randomise_rest(x: Tensor, donors: Tensor, q_s: Tensor) -> Tensor:
    """x with all features but S taken from its donors."""  # (n, d), (n, d), (|S|, d) -> (n, d)
    return randomise_s(donors, x, q_s)


def shuffled(y: Tensor, rng: np.random.Generator) -> Tensor:
    """A donor for every sample, of any label: D̄ of SB §3.2; each sample serves once."""  # (n,) -> (n,) indices
    return torch.from_numpy(rng.permutation(len(y))).to(y.device)


def swapped(y: Tensor, rng: np.random.Generator) -> Tensor:
    """A donor of the other label for every sample; the donors of a label serve equally often, up to one."""  # (n,)
    positive = y.cpu().numpy() > 0
    if positive.all() or not positive.any():
        raise BadInput("all samples have the same label, so there is nothing to swap; both labels are needed")
    index = np.empty(len(y), dtype=np.int64)
    for takers, givers in ((positive, ~positive), (~positive, positive)):
        index[takers] = rng.permutation(np.resize(rng.permutation(np.flatnonzero(givers)), takers.sum()))
    return torch.from_numpy(index).to(y.device)


# Which features are exchanged, and with which donors.
Exchange = Callable[[Tensor, Tensor, Tensor], Tensor]
Match = Callable[[Tensor, np.random.Generator], Tensor]
VERSIONS: dict[str, tuple[Exchange, Match]] = {
    "s": (randomise_s, shuffled),
    "rest": (randomise_rest, shuffled),
    "s_swapped": (randomise_s, swapped),
    "rest_swapped": (randomise_rest, swapped),
}


@dataclass(frozen=True)
class Scores:
    """How well one vector of scores predicts the labels."""

    accuracy: float  # Definition 1 of SB; a score of 0 is wrong
    auc_pr: float  # Definition 2 of SB: the area under the precision-recall curve; chance is the share of positives
    auc_roc: float  # the share of pairs (positive, negative) in the right order; chance is 1/2


def scores(values: Tensor, y: Tensor) -> Scores:
    """The quality of the values f(x), which have the sign of the label where they are right."""  # (n,), (n,)
    truth, ranks = (y > 0).cpu().numpy(), values.cpu().numpy()
    auc_pr, auc_roc = (float(auc(truth, ranks)) for auc in (average_precision_score, roc_auc_score))
    return Scores(float((y * values > 0).double().mean()), auc_pr, auc_roc)


def ks(a: Tensor, b: Tensor) -> float:
    """The Kolmogorov–Smirnov distance of two samples of logits: the largest gap of their distribution functions."""
    return float(ks_2samp(a.cpu().numpy(), b.cpu().numpy(), method="asymp").statistic)  # (n,), (m,)


def evaluate(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """f(x), one part at a time and without gradients."""  # (n, d) -> (n,)
    with torch.no_grad():
        return torch.cat([f(part) for part in x.split(ROWS)])


@dataclass(frozen=True)
class Drawn:
    """A network's scores on one version of the samples, over draws of the donors."""

    values: Tensor  # (n,) f at the first draw
    mean: Scores
    error: Scores  # the standard errors of the means; nan for a single draw


def randomised(
    f: Callable[[Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    q_s: Tensor,
    rng: np.random.Generator,
    permutations: int,
    versions: Sequence[str] = tuple(VERSIONS),
) -> dict[str, Drawn]:
    """SB Definitions 1 and 2, Table 1 and Fig 3(a): "standard" and each of VERSIONS, `permutations` draws each."""
    drawn = {"standard": _over_draws([evaluate(f, x)], y)}  # (n, d), (n,), (|S|, d)
    for name in versions:
        exchange, match = VERSIONS[name]
        draws = [evaluate(f, exchange(x, x[match(y, rng)], q_s)) for _ in range(permutations)]
        drawn[name] = _over_draws(draws, y)
    return drawn


def _over_draws(draws: list[Tensor], y: Tensor) -> Drawn:
    table = np.array([astuple(scores(values, y)) for values in draws])  # (draws, 3)
    error = table.std(0, ddof=1) / len(draws) ** 0.5 if len(draws) > 1 else np.full(3, np.nan)
    return Drawn(draws[0], Scores(*table.mean(0).tolist()), Scores(*error.tolist()))


@dataclass(frozen=True)
class Single:
    """What randomising one feature alone does, for each feature."""

    auc_roc: Tensor  # (d,) float64
    change: Tensor  # (d,) mean |Δf|

    def most_influential(self, s: Collection[int]) -> int:
        """The feature outside S that moves the logit most: the second axis of SB Fig 3(c)."""
        rest = [i for i in range(len(self.change)) if i not in s]
        if not rest:
            raise BadInput(f"S holds all {len(self.change)} features; at least one must be outside")
        return max(rest, key=self.change.tolist().__getitem__)


def single(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, q: Tensor, rng: np.random.Generator) -> Single:
    """Each feature randomised alone, all with the same donors, so that features are compared on equal terms."""
    before, shift = evaluate(f, x), (x[shuffled(y, rng)] - x) @ q.T  # (n, d), (n,), (d, d) -> (n,), (n, d)
    auc, change = [], []
    together = max(1, ROWS // len(x))
    for moves, directions in zip(shift.T.split(together), q.split(together), strict=True):  # (k, n), (k, d)
        moved = x + moves[:, :, None] * directions[:, None]  # (k, n, d)
        after = evaluate(f, moved.flatten(0, 1)).unflatten(0, moved.shape[:2])
        auc += [scores(values, y).auc_roc for values in after]
        change.append((after - before).abs().mean(1))
    return Single(torch.tensor(auc, dtype=torch.float64), torch.cat(change))
