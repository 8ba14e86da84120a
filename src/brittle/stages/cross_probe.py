"""Every probe on every network across the papers, and the vectors that need no network beside those that do."""

from __future__ import annotations

from brittle import device
from brittle.params.cross import CrossParams
from brittle.stages import cross, cross_measure
from brittle.stages.progress import bar
from brittle.stages.run import run


def main(params: CrossParams) -> None:
    p = params.cross
    where = device.pick(params.device)
    tables = cross_measure.Tables([], [], [], [])
    with bar(len(p.worlds) * len(p.remedies) * len(p.seeds), "probing") as shown:
        for name in p.worlds:
            there = cross.load(name, where)
            for _ in cross_measure.measure(p, there, cross.load_networks(p, name, there), tables):
                shown.update(1)
    tables.save("ours")


if __name__ == "__main__":
    run(main, CrossParams)
