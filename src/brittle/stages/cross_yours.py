"""Worlds, networks, remedies and attacks in files of yours: the same training, the same probes, beside our own.

A remedy is tried in every world, a world with every remedy, a network without a remedy and with adversarial training
in every world that it is for, an attack on every network.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from brittle import device, plugins, store
from brittle.params.base import BadInput
from brittle.params.cross import Cross, CrossParams
from brittle.plugins import Plugin
from brittle.stages import cross, cross_measure, pictures
from brittle.stages.progress import bar
from brittle.stages.run import run
from brittle.worlds.common import World, checked


def main(params: CrossParams) -> None:
    p = params.cross
    where = device.pick(params.device)
    texts = files(p.plugins)
    plugins.load(texts)
    tables, checkpoints = cross_measure.Tables([], [], [], []), []
    todo = {name: (there.to(where), list(jobs(p, name, there))) for name, there in worlds(p)}
    with bar(sum(len(each) for _, each in todo.values()), "yours") as shown:
        for name, (there, wanted) in todo.items():
            cross_measure.share(there)
            ours = cross.load_networks(p, name, there) if name in p.worlds else []
            how = cross.how(p, there), cross_measure.settings(p)
            kept = cross.Kept("cross_yours", there, name, texts, [pictures.digest(each.net) for each in ours], how)
            checkpoints.append(kept)
            trained = list(filter(None, (cross.train(p, name, there, *job, kept) for job in wanted)))
            shown.update(len(wanted) - len(trained))
            if plugins.yours("attack"):
                for each in ours:
                    cross_measure.attack(p, there, each, tables, kept)
            for _ in cross_measure.measure(p, there, trained, tables, beside=ours, kept=kept):
                shown.update(1)
            kept.save()
    tables.save("yours")
    for kept in checkpoints:
        kept.forget()


def files(folder: str) -> dict[str, str]:
    """The texts of the folder's files by path, in the order of their names."""
    if not Path(folder).is_dir():
        raise BadInput(f"params.yaml: cross.plugins = {folder!r}: is not a folder here; make it, or name another")
    try:
        return {str(path): store.existing(path).read_text("utf-8") for path in sorted(Path(folder).glob("*.py"))}
    except ValueError as error:
        raise BadInput(f"{folder}: holds a file that is not text ({error})") from None


def worlds(p: Cross) -> Iterator[tuple[str, World]]:
    """Ours, if anything of yours is to be seen in them, and yours."""
    if plugins.yours("remedy") + plugins.yours("net") + plugins.yours("attack"):
        for name in p.worlds:
            yield name, cross.load(name, device.pick("cpu"))
    for world in plugins.yours("world"):
        if world.name in p.worlds:
            raise world.wrong("has the name of one of our own; choose another")
        there = checked(world(0), world)
        if there.net not in plugins.ENTERED["net"]:
            raise world.wrong(f"has the network {there.net!r}; must be one of {', '.join(plugins.ENTERED['net'])}")
        yield world.name, there


def jobs(p: Cross, name: str, there: World) -> Iterator[tuple[Plugin, Plugin, int]]:
    """Network, remedy and seed of everything to be trained in a world."""
    standard = plugins.named("net", there.net)
    own = [plugins.named("remedy", remedy) for remedy in p.remedies]
    remedies = plugins.yours("remedy") if name in p.worlds else [*own, *plugins.yours("remedy")]
    pairs = [(standard, remedy) for remedy in remedies]
    pairs += [(net, remedy) for net in plugins.yours("net") for remedy in own if remedy.name in cross_measure.COMPARED]
    for net, remedy in dict.fromkeys(pairs):
        for seed in p.seeds:
            yield net, remedy, seed


if __name__ == "__main__":
    run(main, CrossParams)
