"""Run every probe on the networks of one world and collect the results in tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch
from torch import nn

from brittle import plugins
from brittle.cross.kept import Kept, T
from brittle.cross.measured import COMPARED, Row, Tables
from brittle.cross.networks import OWN_NETWORK, TrainedRemedy
from brittle.cross.params import Cross
from brittle.probes import battery, off_subspace, one_vector
from brittle.probes.one_vector import Vector
from brittle.worlds.common import World


def settings(p: Cross) -> tuple[int, ...]:
    """The parameters that the tables depend on, besides the world and the networks."""
    return p.measure.attacked, p.measure.bracketed, p.measure.permutations


def measure(
    p: Cross,
    there: World,
    trained: Sequence[TrainedRemedy],
    tables: Tables,
    beside: Sequence[TrainedRemedy] = (),
    kept: Kept | None = None,
) -> Iterable[None]:
    """Run every probe on the networks of one world and fill the tables; yields after each network.

    beside: networks already measured, among them the plain networks from which the others were trained.
    kept: what was measured before the stage was stopped.
    """
    plain = {(each.architecture, each.seed): each for each in (*beside, *trained) if each.remedy == "nothing"}
    ascents, basis = {}, off_subspace.span(there.x)
    for each in trained:
        own = each.architecture == there.net or each.remedy in OWN_NETWORK
        row = each.about | {
            "own": int(own),
            "yours": int(each.user_supplied),
            "simple": there.simple_is,
            "radius": there.radius,
        }
        row |= {"best": there.best, "best_robust": there.best_robust}
        row |= probe(p, there, each, plain.get((each.architecture, each.seed), each), tables, kept)
        row |= once(kept, each, "off", battery.off_the_span, each.net, there, basis, p.measure.bracketed)
        if each.remedy in COMPARED:
            row |= once(kept, each, "bracket", battery.bracket, each.net, there, p.measure.bracketed)
            direction, row["universal"] = once(kept, each, "ascent", ascent, there, each.net)
            if each.remedy == "nothing":
                vector = Vector("ascent", "the data and this network", torch.tensor(direction).to(there.x))
                ascents[each.architecture, each.seed] = vector
        tables.networks.append(row)
        yield
    compare_vectors(there, [each for each in trained if each.remedy == "nothing"], ascents, tables, kept)


def once(kept: Kept | None, each: TrainedRemedy, what: str, find: Callable[..., T], *arguments: object) -> T:
    """Return what was found for this network before the stage was stopped; otherwise compute it now (JSON values)."""
    return kept.once(f"{each.about} {what}", lambda: find(*arguments)) if kept else find(*arguments)


def probe(p: Cross, there: World, each: TrainedRemedy, clean: TrainedRemedy, tables: Tables, kept: Kept | None) -> Row:
    def attacks() -> tuple[list[Row], list[bool], Row]:
        rows, found = under_attack(p, there, each)
        return rows, found.kept["all"].tolist(), battery.purity(each.net, clean.net, there, found.delta)

    def others() -> Row:
        cost = {"spent": each.spent}
        return cost | battery.reliance(each.net, there, p.measure.permutations) | battery.kkt_residual(each.net, there)

    def proved() -> Row:
        return battery.proved(each.net, there, torch.tensor(withstood, device=there.x.device))

    rows, withstood, purity = once(kept, each, "attacks", attacks)
    tables.attacks.extend(rows)
    return once(kept, each, "others", others) | once(kept, each, "proved", proved) | purity


def attack(p: Cross, there: World, each: TrainedRemedy, tables: Tables, kept: Kept) -> None:
    """Run only the attacks, on a network whose other probes have been measured already."""
    tables.attacks.extend(once(kept, each, "attacks", lambda: under_attack(p, there, each)[0]))


def under_attack(p: Cross, there: World, each: TrainedRemedy) -> tuple[list[Row], battery.Attacked]:
    by = plugins.built_in("attack") + plugins.user_supplied("attack")
    found = battery.under_attack(each.net, there, p.measure.attacked, by)
    yours = {plugin.name: int(plugin.user_supplied) for plugin in by}
    rows = [
        each.about | {"attack": name, "yours": yours.get(name, 0), "kept": float(kept.double().mean())}
        for name, kept in found.kept.items()
    ]
    return rows, found


def ascent(there: World, net: nn.Module) -> tuple[list[float], float]:
    """The direction of the universal perturbation, and the size at which it halves the accuracy."""
    found = one_vector.by_ascent(net, there)
    return found.direction.tolist(), one_vector.halves_at(there, found.curve(net, there))


def compare_vectors(
    there: World,
    plain: Sequence[TrainedRemedy],
    ascents: dict[tuple[str, int], Vector],
    tables: Tables,
    kept: Kept | None,
) -> None:
    """Fill the tables of X1, for the networks without a remedy."""
    shared = [*one_vector.of_data(there), one_vector.random(there)] if plain else []
    for each in plain:
        vectors, curves = once(kept, each, "vectors", compared, there, each, ascents, shared)
        tables.vectors.extend(vectors)
        tables.curves.extend(curves)


def compared(
    there: World, each: TrainedRemedy, ascents: dict[tuple[str, int], Vector], shared: Sequence[Vector]
) -> tuple[list[Row], list[Row]]:
    """The rows of one network in the tables `vectors` and `curves`."""
    ascent = ascents[each.architecture, each.seed]
    others = [v for (net, seed), v in ascents.items() if net == each.architecture and seed != each.seed]
    vectors = [ascent, *shared, *(replace(v, name="other", needs="a network of another seed") for v in others[:1])]
    vectors = [replace(vector, signed=shared[0].signed) for vector in vectors]
    curves = {vector.name: vector.curve(each.net, there) for vector in vectors}
    halves = {name: one_vector.halves_at(there, curve) for name, curve in curves.items()}
    ends = {"uap_half": halves["ascent"], "random_half": halves["random"]}
    rows, along = [], []
    for vector in vectors:
        about = each.about | {"vector": vector.name}
        found = {"cosine": vector.cosine(ascent.direction), "half": halves[vector.name]}
        rows.append(about | {"needs": vector.needs, "told": int(vector.told)} | found | ends)
        along += [
            about | {"size": size * there.radius, "accuracy": accuracy}
            for size, accuracy in zip(one_vector.SIZES, curves[vector.name], strict=True)
        ]
    return rows, along
