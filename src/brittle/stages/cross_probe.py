"""Every probe on every network across the papers, and the vectors that need no network beside those that do."""

from __future__ import annotations

from brittle import device
from brittle.params.cross import CrossParams
from brittle.stages import cross, cross_measure, pictures
from brittle.stages.progress import bar
from brittle.stages.run import run


def main(params: CrossParams) -> None:
    p = params.cross
    where = device.pick(params.device)
    tables, checkpoints = cross_measure.Tables([], [], [], []), []
    with bar(len(p.worlds) * len(p.remedies) * len(p.seeds), "probing") as shown:
        for name in p.worlds:
            there = cross.load(name, where)
            cross_measure.share(there)
            trained = cross.load_networks(p, name, there)
            weights = [pictures.digest(each.net) for each in trained]
            kept = cross.Kept("cross_probe", there, name, weights, cross_measure.settings(p))
            checkpoints.append(kept)
            for _ in cross_measure.measure(p, there, trained, tables, kept=kept):
                shown.update(1)
            kept.save()  # however short it was
    tables.save("ours")
    for kept in checkpoints:
        kept.forget()


if __name__ == "__main__":
    run(main, CrossParams)
