"""Every probe on one network in one world: what all three papers would measure on it (X2).

A probe that does not apply leaves its number out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from brittle.attacks.evaluation import attacked
from brittle.attacks.minimum_norm_pgd import minimal
from brittle.attacks.nearest_boundary import minimum
from brittle.core.rng import rng
from brittle.nets.modules import Relu, as_two_layer, first_layer
from brittle.plugins import Plugin
from brittle.probes import certify, kkt, off_subspace
from brittle.probes.image_statistics import densities, spread
from brittle.probes.margin import NotSeparated
from brittle.probes.randomised import randomised, scores
from brittle.probes.theta import theta
from brittle.worlds.common import World

SUPPORT = 300  # samples with the smallest margins, on which the KKT residual is computed
EFFORTS = (4, 40)  # optimisation steps of certificates: few are enough for most samples
FAR, HALVINGS = 8.0, 6  # bisection for the smallest perturbation of any network: it starts at this × the radius


@dataclass(frozen=True)
class Attacked:
    delta: Tensor  # (n, d) what the first attack adds
    kept: dict[str, Tensor]  # (n,) which samples each attack leaves correct; "all": those that every attack does


def under_attack(net: nn.Module, world: World, n: int, by: Sequence[Plugin]) -> Attacked:
    """The first n test samples under each attack, within the world's radius."""
    x, y = world.x_test[:n], world.y_test[:n]
    moved = {attack.name: attacked(attack, net, x, y, world.radius) for attack in by}
    with torch.no_grad():
        kept = {name: y * net(there) > 0 for name, there in moved.items()}
    return Attacked(moved[by[0].name] - x, kept | {"all": torch.stack(list(kept.values())).all(0)})


def reliance(net: nn.Module, world: World, permutations: int) -> dict[str, float]:
    """The AUC as is, with S and with the rest taken from other samples (SB §3.2), and the share that depends on S."""
    x, y = world.x_test, world.y_test
    if world.simple is None:
        with torch.no_grad():
            return {"accuracy": scores(net(x), y).accuracy}
    s = world.on_simple(x)
    rest = x - s

    def f(owners: Tensor) -> Tensor:
        """Scores of mixed samples, given as pairs: whose S, and whose rest."""  # (n, 2) -> (n,)
        return net(s[owners[:, 0].long()] + rest[owners[:, 1].long()])

    owners = torch.arange(len(x), device=x.device, dtype=torch.float64)[:, None].expand(-1, 2)
    first = owners.new_tensor([[1.0, 0.0]])
    versions = randomised(f, owners, y, first, rng(0, "cross donors"), permutations, ("s", "rest"))
    accuracy = versions["standard"].mean.accuracy
    auc, auc_s, auc_rest = (versions[name].mean.auc_roc for name in ("standard", "s", "rest"))
    lost = (auc - auc_s) / (auc - 0.5) if auc > 0.55 else math.nan  # a network that guesses has nothing to lose
    relies = min(max(lost, 0.0), 1.0) if lost == lost else lost
    return {"accuracy": accuracy, "auc": auc, "auc_s": auc_s, "auc_rest": auc_rest, "reliance": relies}


def proved(net: nn.Module, world: World, kept: Tensor) -> dict[str, float]:
    """The share of the attacked samples that provably no perturbation within the radius flips.

    Only samples that withstood the attacks (`kept`) can be among them, and only networks with one hidden layer of ReLUs
    have certificates.
    """  # (n,)
    known, left = as_two_layer(net), kept.nonzero()[:, 0]
    if known is None:
        return {}
    sure = 0
    for steps in EFFORTS:
        if len(left):
            x, y = world.x_test[left].cpu().double(), world.y_test[left].cpu().double()
            safe = (certify.certified(known, x, y, steps).radius > world.radius).to(left.device)
            sure, left = sure + int(safe.sum()), left[~safe]
    return {"certified": sure / len(kept)}


def bracket(net: nn.Module, world: World, n: int) -> dict[str, float]:
    """The bracket certified ≤ smallest perturbation ≤ attacked: medians over the first n test samples."""
    known = as_two_layer(net)
    x, y = world.x_test[:n], world.y_test[:n]
    if n == 0:
        return {}
    if known is None:
        found = minimal(net, x, y, "l2", FAR * world.radius, steps=10, halvings=HALVINGS).size
        return {"radius_attacked": float(found.median())}
    x, y = x.cpu().double(), y.cpu().double()
    return {
        "radius_certified": float(certify.certified(known, x, y).radius.median()),
        "radius_attacked": float(minimum(known, x, y, steps=30, restarts=1).size.median()),
    }


def off_the_span(net: nn.Module, world: World, basis: Tensor, n: int) -> dict[str, float]:
    """The smallest perturbation orthogonal to all training samples: the median over the first n test samples.

    It has no meaning where the training samples span the whole space.
    """
    if n == 0 or len(basis) == world.x.shape[1]:
        return {}
    return {"off_span": off_subspace.smallest(net, world.x_test[:n], world.y_test[:n], basis, FAR * world.radius)}


def kkt_residual(net: nn.Module, world: World) -> dict[str, float]:
    """The residual of VYS Eq 3 on the samples nearest to the margin, for VYS's networks that separate their data."""
    if not isinstance(net, Relu):
        return {}
    x, y = world.x.cpu().double(), world.y.cpu().double()
    known = net.two_layer()
    outputs = torch.cat([known(part[None])[0] for part in x.split(1 << 12)]) * y
    near = outputs.argsort()[:SUPPORT]
    try:
        return {"kkt": kkt.residuals(known, x[near], y[near]).stationarity}
    except NotSeparated:
        return {}


def purity(net: nn.Module, clean: nn.Module, world: World, delta: Tensor) -> dict[str, float]:
    """How similar the neurons are to those of plain SGD (FP's θ), and how dense they and the perturbations δ are.

    Density is ‖·‖₁/(√D ‖·‖₂) in the world's own features: 1/√D for a single feature, 1 if all have the same size.
    """  # delta: (n, d)
    w, before, row = first_layer(net), first_layer(clean), {}
    if w is not None and before is not None and w.shape == before.shape and clean is not net:
        row["theta"] = float(theta(w, before).median())
    delta = delta[delta.norm(dim=1) > 0]
    if world.basis is not None:
        if w is not None and w.shape[1] == len(world.basis):
            weight = w.norm(dim=1)
            row["density"] = float((spread(w @ world.basis) * weight).sum() / weight.sum())
        if len(delta):
            row["density_delta"] = float(spread(delta @ world.basis).median())
    elif len(world.shape) == 3 and len(delta) and all(side & (side - 1) == 0 for side in world.shape[1:]):
        row["density_delta"] = densities(delta.view(-1, *world.shape))["haar"]
    return row
