"""Every probe on the networks of one world, and the tables that they end in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pandas as pd
from torch import nn

from brittle import plugins, store
from brittle.params.cross import Cross
from brittle.plugins import Plugin
from brittle.probes import every, one_vector
from brittle.probes.one_vector import Vector
from brittle.stages.cross import Row, Trained
from brittle.worlds.common import World


@dataclass(frozen=True)
class Tables:
    """What was measured, row by row."""

    networks: list[Row]  # a row a network: every probe
    attacks: list[Row]  # a row a network and attack: the share of the samples that it leaves right
    vectors: list[Row]  # a row a plain network and vector
    curves: list[Row]  # the same along sizes

    def save(self, whose: str) -> None:
        for part, columns in COLUMNS.items():
            table = pd.DataFrame(getattr(self, part)).reindex(columns=columns)
            store.save_table(f"plots/cross_{whose}_{part}.csv", table)

    @staticmethod
    def load(whose: str) -> dict[str, pd.DataFrame]:
        paths = {part: f"plots/cross_{whose}_{part}.csv" for part in COLUMNS}
        return {part: store.load_table(path, [], text=COLUMNS[part]) for part, path in paths.items()}


ABOUT = ["world", "net", "remedy", "seed"]
PROBES = ["accuracy", "auc", "auc_s", "auc_rest", "reliance", "certified", "radius_certified", "radius_attacked"]
PROBES += ["kkt", "theta", "density", "density_delta", "universal"]
COLUMNS = {
    "networks": [*ABOUT, "own", "yours", "simple", "radius", "best", "best_robust", "spent", *PROBES],
    "attacks": [*ABOUT, "attack", "yours", "kept"],
    "vectors": [*ABOUT, "vector", "needs", "told", "cosine", "half", "uap_half", "random_half"],
    "curves": [*ABOUT, "vector", "size", "accuracy"],
}
COMPARED = ("nothing", "adversarial")  # remedies that have every probe, also those that take long (X2)


def measure(
    p: Cross, there: World, trained: Sequence[Trained], tables: Tables, beside: Sequence[Trained] = ()
) -> Iterable[None]:
    """Every probe on the networks of one world, into the tables; yields after each network.

    beside: measured already; among them are the plain networks that the others began as.
    """
    plain = {(each.architecture, each.seed): each for each in (*beside, *trained) if each.remedy == "nothing"}
    ascents = {}
    for each in trained:
        own = each.architecture == there.net
        row = each.about | {
            "own": int(own),
            "yours": int(each.yours),
            "simple": there.simple_is,
            "radius": there.radius,
        }
        row |= {"best": there.best, "best_robust": there.best_robust, "spent": each.spent}
        row |= probe(p, there, each, plain[each.architecture, each.seed].net, tables)
        if each.remedy in COMPARED:
            row |= every.bracket(each.net, there, p.measure.bracketed)
            ascent = one_vector.by_ascent(each.net, there)
            row["universal"] = one_vector.halves_at(there, ascent.curve(each.net, there))
            if each.remedy == "nothing":
                ascents[each.architecture, each.seed] = ascent
        tables.networks.append(row)
        yield
    compare_vectors(there, [each for each in trained if each.remedy == "nothing"], ascents, tables)


def probe(p: Cross, there: World, each: Trained, clean: nn.Module, tables: Tables) -> dict[str, float]:
    found = attack(p, there, each, plugins.ours("attack") + plugins.yours("attack"), tables)
    return (
        every.reliance(each.net, there, p.measure.permutations)
        | every.proved(each.net, there, found.kept["all"])
        | every.kkt_residual(each.net, there)
        | every.purity(each.net, clean, there, found.delta)
    )


def attack(p: Cross, there: World, each: Trained, by: Sequence[Plugin], tables: Tables) -> every.Attacked:
    found = every.under_attack(each.net, there, p.measure.attacked, by)
    yours = {plugin.name: int(plugin.yours) for plugin in by}
    for name, kept in found.kept.items():
        about = {"attack": name, "yours": yours.get(name, 0), "kept": float(kept.double().mean())}
        tables.attacks.append(each.about | about)
    return found


def compare_vectors(
    there: World, plain: Sequence[Trained], ascents: dict[tuple[str, int], Vector], tables: Tables
) -> None:
    """X1, on the networks that nothing was done to."""
    shared = [*one_vector.of_data(there), one_vector.random(there)] if plain else []
    for each in plain:
        ascent = ascents[each.architecture, each.seed]
        others = [v for (net, seed), v in ascents.items() if net == each.architecture and seed != each.seed]
        vectors = [ascent, *shared, *(replace(v, name="other", needs="a network of another seed") for v in others[:1])]
        vectors = [replace(vector, signed=shared[0].signed) for vector in vectors]
        curves = {vector.name: vector.curve(each.net, there) for vector in vectors}
        halves = {name: one_vector.halves_at(there, curve) for name, curve in curves.items()}
        for vector in vectors:
            about = each.about | {"vector": vector.name}
            found = {"cosine": vector.cosine(ascent.direction), "half": halves[vector.name]}
            ends = {"uap_half": halves["ascent"], "random_half": halves["random"]}
            tables.vectors.append(about | {"needs": vector.needs, "told": int(vector.told)} | found | ends)
            tables.curves.extend(
                about | {"size": size * there.radius, "accuracy": accuracy}
                for size, accuracy in zip(one_vector.SIZES, curves[vector.name], strict=True)
            )
