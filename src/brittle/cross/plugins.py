"""User-supplied worlds, networks, remedies and attacks, trained and probed in the same way as the built-in ones.

A remedy is tried in every world; a world, with every remedy; a network, without a remedy and with adversarial training
in every world whose inputs it takes; an attack, on every network.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from brittle import plugins
from brittle.core import device, store
from brittle.core.errors import BadInput
from brittle.core.progress import bar, resumable
from brittle.core.stage import run
from brittle.cross import measure, networks, worlds
from brittle.cross.kept import Kept
from brittle.cross.measured import COMPARED, Tables
from brittle.cross.params import Cross, CrossParams
from brittle.nets import weights
from brittle.plugins import Plugin
from brittle.worlds.common import World, checked


def main(params: CrossParams) -> None:
    p = params.cross
    where = device.pick(params.device)
    texts = files(p.plugins)
    plugins.load_files(texts)
    tables = Tables([], [], [], [])
    todo = {name: (there.to(where), list(jobs(p, name, there))) for name, there in chosen(p)}
    work = sum(len(each) for _, each in todo.values())
    with resumable("cross_plugins") as checkpoints, bar(work, "plugins") as shown:
        for name, (there, wanted) in todo.items():
            builtin = networks.load_networks(p, name, there) if name in p.worlds else []
            how = networks.how(p, there), measure.settings(p)
            kept = Kept(checkpoints, there, name, texts, [weights.digest(each.net) for each in builtin], how)
            trained = list(filter(None, (networks.train(p, name, there, *job, kept) for job in wanted)))
            shown.update(len(wanted) - len(trained))
            if plugins.user_supplied("attack"):
                for each in builtin:
                    measure.attack(p, there, each, tables, kept)
            for _ in measure.measure(p, there, trained, tables, beside=builtin, kept=kept):
                shown.update(1)
            kept.save()
        tables.save("plugin")


def files(folder: str) -> dict[str, str]:
    """The texts of the folder's Python files by path, sorted by name."""
    if not Path(folder).is_dir():
        raise BadInput(f"params.yaml: cross.plugins = {folder!r}: is not a folder here; make it, or name another")
    try:
        return {str(path): store.existing(path).read_text("utf-8") for path in sorted(Path(folder).glob("*.py"))}
    except ValueError as error:
        raise BadInput(f"{folder}: contains a file that is not text ({error})") from None


def chosen(p: Cross) -> Iterator[tuple[str, World]]:
    """The user-supplied worlds, and the built-in ones if anything else is user-supplied."""
    if plugins.user_supplied("remedy") + plugins.user_supplied("net") + plugins.user_supplied("attack"):
        for name in p.worlds:
            yield name, worlds.load_world(name, device.pick("cpu"))
    for world in plugins.user_supplied("world"):
        if world.name in p.worlds:
            raise world.wrong("has the name of one of our own; choose another")
        there = checked(world(0), world)
        if there.net not in plugins.ENTERED["net"]:
            raise world.wrong(f"has the network {there.net!r}; must be one of {', '.join(plugins.ENTERED['net'])}")
        yield world.name, there


def jobs(p: Cross, name: str, there: World) -> Iterator[tuple[Plugin, Plugin, int]]:
    """The network, remedy and seed of everything to be trained in a world."""
    standard = plugins.named("net", there.net)
    own = [plugins.named("remedy", remedy) for remedy in p.remedies]
    remedies = plugins.user_supplied("remedy") if name in p.worlds else [*own, *plugins.user_supplied("remedy")]
    pairs = [(standard, remedy) for remedy in remedies]
    compared = [remedy for remedy in own if remedy.name in COMPARED]
    pairs += [(net, remedy) for net in plugins.user_supplied("net") for remedy in compared]
    for net, remedy in dict.fromkeys(pairs):
        for seed in p.seeds:
            yield net, remedy, seed


if __name__ == "__main__":
    run(main, CrossParams)
