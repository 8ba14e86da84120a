"""The proof of VYS Thm 4.1 (Appendix C), line by line: both sides of its inequalities on one network.

The proof speaks of a KKT point, whose weights are w̃_j = v_j Σ_i λ_i σ'_ij y_i x̃_i (VYS Eq. 9, 10). With the pulls
λ_i σ'_ij, exact or fitted (probes/kkt.py), each line has a number on either side. As in Appendix C:

    J± the neurons with v_j ≥ 0 and < 0, I± the samples of either label, u = Σ_l y_l x_l, z = (η₁ + η₂) u,
    U_j = |v_j| Σ_i λ_i σ'_ij, and A_i = Σ_j v_j² λ_i σ'_ij over the neurons of one sign.

C.3, C.4 and C.6 are stated neuron by neuron; here they are summed over the neurons of one sign with the weights |v_j|,
which is how C.7 and C.8 use them. So a neuron that hardly matters, and is far from (9) for that reason, hardly counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from brittle.attacks.universal import thm41
from brittle.nets.two_layer import TwoLayer
from brittle.probes.margin import along, separated


@dataclass(frozen=True)
class Line:
    """One inequality of the proof, lhs ≤ rhs, where it is tightest: of all samples, and of both signs of neurons."""

    lemma: str
    says: str
    lhs: float
    rhs: float

    @property
    def tightness(self) -> float:
        """1 where nothing is given away, small where much is, above 1 where the line does not hold."""
        return self.lhs / self.rhs if self.rhs else math.inf


@dataclass(frozen=True)
class Loss:
    """One of the factors between the size of z that flips all samples and the theorem's bound on it."""

    lemma: str
    says: str
    factor: float


@dataclass(frozen=True)
class Proof:
    lines: list[Line]
    losses: list[Loss]  # their product is bound / size

    def rows(self) -> list[dict[str, str | float]]:
        """A table: the lines with both sides, and the losses as what is kept of 1."""
        lines = [{"part": "line"} | vars(line) | {"tightness": line.tightness} for line in self.lines]
        losses = [{"part": "loss", "lemma": loss.lemma, "says": loss.says, "lhs": 1.0, "rhs": loss.factor}
                  | {"tightness": 1 / loss.factor} for loss in self.losses]  # fmt: skip
        return lines + losses


@dataclass(frozen=True)
class Constants:
    """What Appendix C defines from the data alone, for m samples of norm √d."""

    m: int
    d: int
    p: float  # max_{i≠l} |⟨x_i, x_l⟩|
    c: float  # the share of the rarer label
    c1: float  # c', with m = c'(d + 1)/(p + 1); the theorem assumes ≤ ⅓
    eta1: float  # with it, z activates every neuron of the other sign
    eta2: float  # with it, z then moves the output by 2
    mass: float  # Lemma C.2's lower bound on Σ_i A_i

    @classmethod
    def of(cls, x: Tensor, y: Tensor) -> Constants:
        m, d = x.shape
        p = float((x @ x.T).abs().fill_diagonal_(0.0).max())
        c = min(float((y > 0).sum()), float((y < 0).sum())) / m
        c1 = m * (p + 1) / (d + 1)
        mass = m * c / ((c * c1 + 1) * (d + 1))
        return cls(m, d, p, c, c1, (p + 1) / (d - m * p), 2 / (mass * (d - m * p)), mass)


def proof(net: TwoLayer, x: Tensor, y: Tensor, pulls: Tensor) -> Proof:
    """Evaluate the proof on a single network, with λ_i σ'_ij of the network scaled to margin 1; float64.

    The data must be what the theorem assumes, `thm41(x, y).applies`.
    """  # (m, d), (m,), (m, k)
    size = math.sqrt(separated(net, x, y).min())
    net = TwoLayer(net.w / size, net.b / size, net.v / size)  # homogeneous of degree 2
    of = Constants.of(x, y)
    halves = [_half(net, x, y, pulls, of, sign) for sign in (1.0, -1.0)]
    lines = [_tightest(pair) for pair in zip(*halves, strict=True)]
    lines = sorted([*lines, *_ends(x, y, of)], key=lambda line: line.lemma[:3])  # C.1, …, C.9
    return Proof(lines, _losses(net, x, y, pulls, of))


def _half(net: TwoLayer, x: Tensor, y: Tensor, pulls: Tensor, of: Constants, sign: float) -> list[Line]:
    """The lines about the neurons of one sign, J. Where the paper has J⁻, what is negative there is positive here."""
    d, p, room = of.d, of.p, of.d - of.m * of.p
    on, own, opposite = sign * net.v[0] > 0, y == sign, y != sign
    v, a = net.v[0, on].abs(), net.preactivations(x[None])[0][:, on]  # (n,), (m, n)
    mass, pull = (pulls[:, on] * v**2).sum(1), (pulls[:, on] * v).sum(0)  # (m,) A_i, (n,) U_j
    other, u = mass.sum() - mass, y @ x  # (m,) Σ_{l≠i} A_l
    towards = v @ (sign * (net.w[0, on] @ u))  # of |w_j·u|
    active, below = (v * a.relu()).sum(1), (v * (-a).relu()).sum(1)  # (m,)
    before, after = (y * net(points[None])[0] for points in (x, x - y[:, None] * (of.eta1 + of.eta2) * u))

    def line(lemma: str, says: str, lhs: Tensor | float, rhs: Tensor | float) -> Line:
        lhs, rhs = torch.broadcast_tensors(*(torch.as_tensor(side, dtype=x.dtype) for side in (lhs, rhs)))
        worst = int((lhs / rhs).argmax())
        return Line(lemma, says, float(lhs.reshape(-1)[worst]), float(rhs.reshape(-1)[worst]))

    return [
        line("C.1", "y N(x) ≤ 1", before, 1.0),
        line("C.1, case 1", "(d+1) A_r ≤ (p+1) Σ_{i≠r} A_i, r of the other label",
             (d + 1) * mass[opposite], (p + 1) * other[opposite]),
        line("C.1, (13)", "(d+1) A_r ≤ Σ_J v_j (w_j·x_r + b_j) + (p+1) Σ_{i≠r} A_i, r of the same label",
             (d + 1) * mass[own], ((v * a).sum(1) + (p + 1) * other)[own]),
        line("C.1, (14)", "Σ_J v_j σ(w_j·x_r + b_j) ≤ (p+1) Σ_{i≠r} A_i, r of the other label",
             active[opposite], (p + 1) * other[opposite]),
        line("C.1, end", "(d+1)(1-2c') max A ≤ 1", (d + 1) * (1 - 2 * of.c1) * mass.max(), 1.0),
        line("C.2, (15) or (16)", "1 ≤ (p+1) Σ_{l≠i} A_l + (d+1) A_i, i of the same label",
             1.0, ((p + 1) * other + (d + 1) * mass)[own]),
        line("C.2", "mc/((cc'+1)(d+1)) ≤ Σ A", of.mass, mass.sum()),
        line("C.3", "-(w_j·x_i + b_j) ≤ (p+1) U_j", below, (p + 1) * (v @ pull)),
        line("C.4", "(d-mp) U_j ≤ |w_j·u|", room * (v @ pull), towards),
        line("C.6", "-(w_j·x_i + b_j) ≤ η₁ |w_j·u|", below, of.eta1 * towards),
        line("C.7, C.8", "η₂ (d-mp) Σ A ≤ what z moves y N by, for samples of the other label",
             of.eta2 * room * mass.sum(), (before - after)[opposite]),
        line("C.7, C.8, end", "1 ≤ -y N(x - y z)", 1.0, -after[opposite]),
    ]  # fmt: skip


def _tightest(pair: tuple[Line, Line]) -> Line:
    return max(pair, key=lambda line: line.tightness)


def _ends(x: Tensor, y: Tensor, of: Constants) -> list[Line]:
    """The lines about the data alone."""
    u, z = (y @ x).norm(), thm41(x, y)
    return [
        Line("C.5", "d/3 ≤ d - mp", of.d / 3, of.d - of.m * of.p),
        Line("C.9, ‖u‖", "‖u‖² ≤ md + m²p", float(u) ** 2, of.m * of.d + of.m**2 * of.p),
        Line("C.9", "‖z‖ ≤ 18√2 √(d/(c²m))", float(z.z.norm()), z.bound),
    ]


def _losses(net: TwoLayer, x: Tensor, y: Tensor, pulls: Tensor, of: Constants) -> list[Loss]:
    """Where the theorem's bound on ‖z‖ loses against the size at which z flips all samples."""
    u, z = y @ x, thm41(x, y)
    direction = u / u.norm()
    flips = along(net, x, y, direction).all_at_once()
    beyond = max(_reaches(net, x[y == s], y[y == s], direction) for s in (1.0, -1.0))
    mass, moved = [], []
    for sign in (1.0, -1.0):
        on = sign * net.v[0] > 0
        v = net.v[0, on].abs()
        mass.append(float((pulls[:, on] * v**2).sum()))
        moved.append(float(v @ (sign * (net.w[0, on] @ u))))
    least = 2 / min(moved)  # in place of η₂, if the true w_j·u were used
    smallest = min(mass) or math.nan  # 0 only where nothing is fitted, far from a KKT point
    return [
        Loss("Thm 4.1", "it asks for -1, where 0 flips", beyond / flips),
        Loss("C.7, C.8", "the neurons of one sign are taken not to move", least * float(u.norm()) / beyond),
        Loss("C.4", "inner products are bounded by p", min(moved) / ((of.d - of.m * of.p) * smallest)),
        Loss("C.2", "Σ A is bounded by its smallest value", smallest / of.mass),
        Loss("C.6", "η₁ activates every neuron first", (of.eta1 + of.eta2) / of.eta2),
        Loss("C.9", "‖z‖ is bounded in terms of d, c and m", z.bound / float(z.z.norm())),
    ]


def _reaches(net: TwoLayer, x: Tensor, y: Tensor, u: Tensor) -> float:
    """The smallest size at which u takes all samples, which have the same label, to y N = -1 at once.

    y N(x) ≤ -1 where N + y is flipped: the network with one more neuron, that is 1 everywhere.
    """
    one = net.v.new_ones(1, 1)
    w, b, v = (torch.cat(pair, 1) for pair in ((net.w, 0 * net.w[:, :1]), (net.b, one), (net.v, y[0] * one)))
    return along(TwoLayer(w, b, v), x, y, u).all_at_once()
