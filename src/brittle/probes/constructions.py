"""What VYS proves about hand-built networks: those of Thm 3.1 and §5.1, and a KKT point on orthogonal samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from brittle.attacks.nearest_boundary import best
from brittle.nets.kkt_point import kkt_point
from brittle.nets.robust_construction import largest_cosine, thm31, thm31_bound, without_biases
from brittle.nets.two_layer import TwoLayer, squared_norm
from brittle.probes.certify import certified
from brittle.probes.margin import probe

DIGITS = 12  # errors of the order of rounding are written as 0


@dataclass(frozen=True)
class Thm31:
    """Thm 3.1's network on one dataset; radii are those of the least robust sample."""

    cosine: float  # the theorem's c
    bound: float  # the radius that it promises
    smallest_output: float  # y N(x)
    certified: float
    exact: float  # share of the certificates that are tight
    attacked: float
    beaten: int  # samples attacked below their certificate


def robust_network(x: Tensor, y: Tensor) -> Thm31:
    """Certify the network of Thm 3.1 on its own data, and attack it."""  # (m, d), (m,) in float64
    net = thm31(x, y)
    radius, attack = certified(net, x, y), best(net, x, y)
    return Thm31(
        cosine=largest_cosine(x),
        bound=thm31_bound(x),
        smallest_output=float((y * net(x[None])[0]).min()),
        certified=float(radius.radius.min()),
        exact=float(radius.exact.double().mean()),
        attacked=float(attack.size.min()),
        beaten=int((attack.size < radius.radius).sum()),
    )


@dataclass(frozen=True)
class Example51:
    """How far the numbers are from what §5.1 says of N and of its bias-free twin N'.

    Both label every sample with margin 1. N survives √d/2; ‖z‖ = 2√2 takes N' to -1, although N' maximises the margin
    better: its normalised margin, min y N(x) / ‖θ‖², is the larger one (‖θ‖² is 2d + 4 for N and d + 1 for N').
    """

    certified: float
    certified_error: float
    output_error: float  # max |y N(x) - 1| over the samples and both networks
    z_norm_error: float
    twin_error: float
    margin: float  # the normalised one, of N …
    twin_margin: float  # … and of N'


def worked_example(x: Tensor, y: Tensor) -> Example51:
    """Both networks of §5.1 on d orthogonal samples, of which half are positive."""  # (d, d), (d,) in float64
    d = x.shape[1]
    biased, twin = thm31(x, y), without_biases(x, y)
    outputs = [y * net(x[None])[0] for net in (biased, twin)]
    z = 4 / d * x[y < 0].sum(0)  # against every positive sample
    radius, after = certified(biased, x, y).radius, twin((x[y > 0] + z)[None])[0]
    return Example51(
        certified=float(radius.min()),
        certified_error=float((radius - math.sqrt(d) / 2).abs().max()),
        output_error=max(float((q - 1).abs().max()) for q in outputs),
        z_norm_error=abs(float(z.norm()) - 2 * math.sqrt(2)),
        twin_error=float((after + 1).abs().max()),
        margin=float(outputs[0].min()) / squared_norm(biased),
        twin_margin=float(outputs[1].min()) / squared_norm(twin),
    )


@dataclass(frozen=True)
class ExactPoint:
    """How exactly the network of docs/kkt-point.md is a KKT point, and the c = √(d/m) at which z flips it."""

    residual: float  # of VYS Eq. (3) and (4), relative to ‖θ‖
    output_error: float  # max |y N(x) - 1|
    c: float  # by exact crossing
    c_error: float


def exact_kkt_point(x: Tensor, y: Tensor) -> ExactPoint:
    """The KKT point on orthogonal samples of norm √d, equally many of each label."""  # (m, d), (m,) in float64
    point = kkt_point(x, y)
    found, size = probe(point.net, x, y, slack=1.1), math.sqrt(x.shape[1] / len(x))
    own = y[:, None] * point.net.v[0] > 0  # (m, 2): the others' preactivations are 0, where σ' may be anything
    slopes = own.to(x.dtype) + point.kink * (~own).to(x.dtype)
    return ExactPoint(
        residual=round(_left(point.net, x, point.multiplier * y, slopes), DIGITS),
        output_error=round(float((found.outputs - 1).abs().max()), DIGITS),
        c=found.c,
        c_error=round(abs(found.c - size), DIGITS),
    )


def _left(net: TwoLayer, x: Tensor, pull: Tensor, slopes: Tensor) -> float:
    """‖θ - Σ λ_i y_i ∇N(x_i)‖ / ‖θ‖ of VYS Eq. (3) and (4), with λ_i y_i and σ'_ij."""  # (m, d), (m,), (m, k)
    each = pull[:, None] * slopes * net.v[0]  # (m, k) λ_i y_i σ'_ij v_j
    expected = TwoLayer((each.T @ x)[None], each.sum(0)[None], (pull @ net.preactivations(x[None])[0].relu())[None])
    left = TwoLayer(net.w - expected.w, net.b - expected.b, net.v - expected.v)
    return math.sqrt(squared_norm(left) / squared_norm(net))
