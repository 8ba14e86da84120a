"""Run every probe on every network across the papers; compare vectors that need a network with those that do not."""

from __future__ import annotations

from brittle.core import device
from brittle.core.progress import bar, resumable
from brittle.core.stage import run
from brittle.cross import measure, networks, worlds
from brittle.cross.kept import Kept
from brittle.cross.measured import Tables
from brittle.cross.params import CrossParams
from brittle.nets import weights


def main(params: CrossParams) -> None:
    p = params.cross
    where = device.pick(params.device)
    tables, work = Tables([], [], [], []), len(p.worlds) * len(p.remedies) * len(p.seeds)
    with resumable("cross_probe") as checkpoints, bar(work, "probing") as shown:
        for name in p.worlds:
            there = worlds.load_world(name, where)
            trained = networks.load_networks(p, name, there)
            digests = [weights.digest(each.net) for each in trained]
            kept = Kept(checkpoints, there, name, digests, measure.settings(p))
            for _ in measure.measure(p, there, trained, tables, kept=kept):
                shown.update(1)
            kept.save()  # even if it took less time than the interval between checkpoints
        tables.save("builtin")


if __name__ == "__main__":
    run(main, CrossParams)
