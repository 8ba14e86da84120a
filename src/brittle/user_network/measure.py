"""Everything that is measured on a user's network: the pipeline's attacks, probes and certificates, on k classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from brittle.attacks.evaluation import pgd
from brittle.attacks.image_pgd import fixed
from brittle.attacks.minimum_norm_pgd import minimal
from brittle.attacks.nearest_boundary import minimum
from brittle.attacks.universal import z_direction
from brittle.core.rng import rng
from brittle.nets.two_layer import TwoLayer
from brittle.probes import battery, certify, certify_deep, one_vector
from brittle.probes.image_statistics import densities, spread
from brittle.probes.one_vector import Vector
from brittle.user_network.subject import Ahead, Subject, Versus
from brittle.worlds.common import World

STEPS, HALVINGS = 20, 10  # of PGD, and of the bisection for the smallest perturbation
LIKELY, RIVALS = 10, 3  # other classes that are looked at, and that each sample is driven to
RADII = 12  # in the table, beside 0
CLASSES = 20  # for which one-against-the-rest is measured, at most: the most frequent ones
PERMUTATIONS = 5  # draws of the donors
HUGE = 1e6  # a radius where no perturbation was found
EFFORT = 4  # optimisation steps of a certificate


@dataclass(frozen=True)
class Measured:
    accuracy: float
    robust: pd.DataFrame  # a row for each radius: the shares that withstand each attack, and all of them
    samples: pd.DataFrame  # a row for each attacked sample: the bracket certified ≤ attacked
    universal: pd.DataFrame  # a row for each class: one perturbation for all samples, one class against the rest
    curves: pd.DataFrame  # the same by size
    reliance: pd.DataFrame  # a row for each group of coordinates
    density: pd.DataFrame  # a row for each basis


def measured(of: Subject, radius: float | None, samples: int) -> Measured:
    """Run every probe: attacks and certificates on so many samples, up to `radius` or to what flips most of them."""
    with fixed(of.logits):
        right = torch.cat(
            [Ahead(of.logits, y)(x) > 0 for x, y in zip(of.x.split(1 << 10), of.label.split(1 << 10), strict=True)]
        )
        some = rng(0, "user network samples").permutation(len(of.x))[:samples]
        x, label = of.x[some], of.label[some]
        delta, size = smallest(of, x, label)
        found = size[size.isfinite() & (size > 0)]
        typical = float(found.median()) if len(found) else float(x.norm(dim=1).mean())
        most = radius or (float(found.quantile(0.95)) if len(found) else typical)
        proved = certified(of, x, label, size)
        problems = [each for each in (one_against_rest(of, c, typical) for c in asked(of)) if each]
        rows, curves = universal(of, problems)
        return Measured(
            accuracy=float(right.double().mean()),
            robust=robust(of, x, label, size, proved, most),
            samples=pd.DataFrame({"sample": some, "label": label, "attacked": size, "certified": proved}),
            universal=rows,
            curves=curves,
            reliance=reliance(of, problems),
            density=density(of, delta),
        )


def smallest(of: Subject, x: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """The smallest perturbation found for each sample, and its l2 size: 0 if it is wrong already, ∞ if none is found.

    Bisection with PGD for any network, against all other classes and against each of the nearest; with one hidden
    layer of ReLUs then the nearest point of the boundary to the class that this has led to, by exact line searches,
    which masked gradients do not mislead.
    """  # (n, d), (n,) -> (n, d), (n,)
    high = 2 * float((x - x.mean(0)).norm(dim=1).max())  # from any sample to any other
    ahead: list[nn.Module] = [Ahead(of.logits, label)]
    if of.classes > 2:
        ahead += [Versus(of.logits, label, rival) for rival in rivals(of, x, label).T]
    found = [minimal(f, x, torch.ones_like(x[:, 0]), "l2", high, STEPS, HALVINGS) for f in ahead]
    size, which = torch.stack([each.size for each in found]).min(0)
    delta = torch.stack([each.delta for each in found])[which, torch.arange(len(x))]
    if of.mlp is not None and len(of.mlp.weights) == 2:
        with torch.no_grad():
            led = of.logits(x + delta).scatter(1, label[:, None], -torch.inf).argmax(1)
        for rows, own, rival in pairs(label, one_hot(led, of.classes).bool()):
            near = minimum(
                of.mlp.pair(own, rival), x[rows].double(), torch.ones(len(rows), dtype=torch.float64), STEPS, 0
            )
            nearer = near.size < size[rows]
            size[rows] = torch.where(nearer, near.size.float(), size[rows])
            delta[rows] = torch.where(nearer[:, None], near.delta.float(), delta[rows])
    return delta, size


def rivals(of: Subject, x: Tensor, label: Tensor) -> Tensor:
    """The other classes that seem nearest by the gradient at the sample, of those with the largest outputs."""
    x = x.detach().requires_grad_()  # (n, d), (n,) -> (n, RIVALS at most)
    out, far = of.logits(x), []
    likely = out.detach().scatter(1, label[:, None], -torch.inf).topk(min(LIKELY, of.classes - 1)).indices
    for rival in likely.T:
        ahead = out.gather(1, label[:, None])[:, 0] - out.gather(1, rival[:, None])[:, 0]
        (g,) = torch.autograd.grad(ahead.sum(), x, retain_graph=True)
        far.append(ahead.detach() / g.norm(dim=1).clamp(min=1e-12))
    return likely.gather(1, torch.stack(far, 1).argsort(1)[:, :RIVALS])


def pairs(label: Tensor, wanted: Tensor) -> list[tuple[Tensor, int, int]]:
    """For every two classes, the samples of the first of which the second is a wanted rival."""  # (n,), (n, classes)
    places = {
        (own, rival)
        for own, rival in zip(label[wanted.nonzero()[:, 0]].tolist(), wanted.nonzero()[:, 1].tolist(), strict=True)
    }
    return [((wanted[:, rival] & (label == own)).nonzero()[:, 0], own, rival) for own, rival in sorted(places)]


def robust(of: Subject, x: Tensor, label: Tensor, size: Tensor, proved: Tensor | None, most: float) -> pd.DataFrame:
    """The shares of the samples that withstand all perturbations tried within each radius, and those proved to."""
    rows, left, ones = [], size > 0, torch.ones_like(x[:, 0])
    for radius in torch.linspace(0, most, RADII + 1).tolist():
        if radius:
            now = left.nonzero()[:, 0]  # what has been flipped by less stays flipped
            ahead = Ahead(of.logits, label[now])
            left = left.index_put((now,), ahead(pgd(ahead, x[now], ones[now], radius)) > 0)
        beyond = size > radius
        row = {"radius": radius, "pgd": left, "nearest": beyond, "all": left & beyond}
        rows.append({name: float(v.double().mean()) if isinstance(v, Tensor) else v for name, v in row.items()})
        if proved is not None:
            rows[-1]["certified"] = float((proved > radius).double().mean())
    return pd.DataFrame(rows)


def certified(of: Subject, x: Tensor, label: Tensor, size: Tensor) -> Tensor | None:
    """Radii within which no perturbation changes the class, for ReLU MLPs; None for other networks."""
    if of.mlp is None:
        return None
    x, size = x.double(), size.double()
    radius = certify_deep.certified(of.mlp, x, label, size)
    if len(of.mlp.weights) == 2:
        # A class that CROWN rules out up to a perturbation that succeeds is not the one that decides.
        open_ = certify_deep.lead(of.mlp, x, label, size.clamp(max=HUGE)) <= 0
        least = torch.full_like(radius, torch.inf)
        for rows, own, rival in pairs(label, open_):
            least[rows] = least[rows].minimum(quadratic(of.mlp.pair(own, rival), x[rows]))
        radius = radius.maximum(least.minimum(size))
    return radius


def quadratic(net: TwoLayer, x: Tensor) -> Tensor:
    """The radius by the quadratic bound alone: CROWN's lines have been tried for all classes at once."""  # -> (n,)
    a, v, w = net.preactivations(x[None])[0], net.v[0].expand(len(x), -1), net.w[0]
    wrong = (x.shape[1] + 2) * torch.finfo(a.dtype).eps * (x.abs() @ w.abs().T + net.b[0].abs())  # a is rounded
    return certify.quadratic(a, v, w, EFFORT, give=(v.abs() * wrong).sum(1))


def asked(of: Subject) -> list[int]:
    """The classes to set against the rest: of two only the second, of many the most frequent ones."""
    counts = of.label.bincount(minlength=of.classes)
    return [1] if of.classes == 2 else sorted(counts.argsort(descending=True, stable=True)[:CLASSES].tolist())


@dataclass(frozen=True)
class Problem:
    """One class against the rest."""

    name: int
    ahead: Ahead
    world: World  # as many samples of the class as of all others together; one half to find vectors, the other to test


def one_against_rest(of: Subject, c: int, radius: float) -> Problem | None:
    """The problem of telling class c; None if there are too few samples of it, or of others."""
    draws, own = rng(0, "user network one against the rest"), (of.label == c).numpy()
    each = min(own.sum(), (~own).sum()) // 2  # in each half
    if each < 2:
        return None
    halves = [[], []]
    for place in (own.nonzero()[0], (~own).nonzero()[0]):
        drawn = draws.permutation(place)
        halves[0].append(drawn[:each])
        halves[1].append(drawn[each : 2 * each])
    first, second = (torch.from_numpy(draws.permutation([*half[0], *half[1]])) for half in halves)
    y = torch.where(of.label == c, 1.0, -1.0)
    world = World(x=of.x[first], y=y[first], x_test=of.x[second], y_test=y[second], radius=radius)
    return Problem(c, Ahead(of.logits, c), world)


def universal(of: Subject, problems: list[Problem]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One perturbation for all samples: by ascent, z = Σ yᵢxᵢ, and a random direction (X1, class by class)."""
    rows, curves = [], []
    for each in problems:
        ascent, chance = one_vector.by_ascent(each.ahead, each.world), one_vector.random(each.world)
        z = Vector("z", "the data", z_direction(each.world.x, each.world.y))
        row = {"class": each.name, "samples": len(each.world.y), "cosine": z.cosine(ascent.direction)}
        for vector in (ascent, z, chance):
            curve = vector.curve(each.ahead, each.world)
            row[f"{vector.name}_half"] = one_vector.halves_at(each.world, curve)
            curves += [
                {"class": each.name, "vector": vector.name, "size": size * each.world.radius, "accuracy": accuracy}
                for size, accuracy in zip(one_vector.SIZES, curve, strict=True)
            ]
        rows.append(row)
    return pd.DataFrame(rows), pd.DataFrame(curves)


def reliance(of: Subject, problems: list[Problem]) -> pd.DataFrame:
    """What is left of the AUC when a group of coordinates, or all others, come from other samples (SB §3.2).

    Means over the classes, each against the rest.
    """
    rows = []
    for name, mask in of.groups.items():
        found = [battery.reliance(p.ahead, replace(p.world, simple=mask), PERMUTATIONS) for p in problems]
        if found:
            means = pd.DataFrame(found)[["auc", "auc_s", "auc_rest", "reliance"]].mean()
            rows.append({"group": name, "coordinates": int(mask.sum()), **means})
    return pd.DataFrame(rows, columns=["group", "coordinates", "auc", "auc_s", "auc_rest", "reliance"])


def density(of: Subject, delta: Tensor) -> pd.DataFrame:
    """How many coordinates perturbations are spread over, and for pictures how many waves and wavelets (FP §5.1)."""
    delta = delta[delta.norm(dim=1) > 0]
    found = {}
    if len(delta) and len(of.shape) == 3 and all(side & (side - 1) == 0 for side in of.shape[1:]):
        found = densities(delta.unflatten(1, of.shape))
    elif len(delta):
        found = {"coordinates": float(spread(delta).median())}
    return pd.DataFrame(found.items(), columns=["basis", "density"])
