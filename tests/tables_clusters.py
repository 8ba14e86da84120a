"""Small tables on which the rules about clusters hold: fresh samples of them, and powers of ReLU."""

from __future__ import annotations

import pandas as pd

from brittle.nets.on_centres import crossing_of_centres, crossing_of_sums, radius_of_centres, radius_of_sums
from tables_margin import seeded


def unseen() -> pd.DataFrame:
    """The assumption holds with the smaller noise; z flips at √(d/k), and half as much again is possible from 16 on."""
    rows = []
    for sigma, applies in ((0.001, 1), (0.5, 0)):
        for k in (4, 10, 25):
            for per in (5, 20):
                unit = (1000 / k) ** 0.5
                cell = {"centres": "orthogonal", "d": 1000, "k": k, "per_cluster": per, "sigma": sigma, "n": k * per}
                cell |= {"unit": unit, "correlation": 0.05 if applies else 9.0, "applies": applies, "fresh": 2000}
                found = {"accuracy": 1.0, "c": 1.03 * unit, "random_at_c": 0.0, "robust_accuracy": 1.0}
                found |= {"attacked": unit, "certified": 0.5 * 1000**0.5, "ratio": 0.5 * k**0.5}
                rows.append(cell | found)
    return seeded(rows, c=0.002, ratio=0.002)


def powers() -> pd.DataFrame:
    """Radii and crossings are those of the closed forms, but for a hundredth."""
    rows = []
    cells = [(p, k, 0.01) for p in (1.0, 3.0) for k in (4, 10, 20)] + [(2.0, 10, 0.01), (1.0, 10, 0.3), (3.0, 10, 0.3)]
    for p, k, alpha in cells:
        sums, positive = p < 2, round(0.6 * k)
        closed = {
            "radius_closed": radius_of_sums(k) if sums else radius_of_centres(),
            "z_positive_closed": crossing_of_sums(k) if sums else crossing_of_centres(k, k - positive, p),
            "z_negative_closed": crossing_of_sums(k) if sums else crossing_of_centres(k, positive, p),
        }
        found = {name.removesuffix("_closed"): 1.01 * value for name, value in closed.items()}
        found |= {"z": found["z_positive"], "certified": 0.5, "accuracy": 1.0, "fresh": 1000, "loss": 5e-3}
        found |= {"average": 0.999 if sums else 0.45, "centre": 0.45 if sums else 0.999}
        rows.append({"p": p, "k": k, "alpha": alpha, "d": 200, "n": 1000, "width": 300} | closed | found)
    return seeded(rows, radius=0.002, average=0.0001, centre=0.0001)


def remedies() -> pd.DataFrame:
    """Powers of ReLU help in one world and not in the other."""
    rows = [
        {"world": world, "remedy": remedy, "accuracy": 1.0, "robust": robust, "yours": 0, "own": 1}
        for world, robusts in (("sphere", (0.2, 0.5)), ("lms-5", (0.1, 0.1)), ("all worlds", (0.15, 0.3)))
        for remedy, robust in zip(("nothing", "power_relu"), robusts, strict=True)
    ]
    return pd.DataFrame(rows)


CONFIRM = {
    "plots/unseen.csv": unseen(),
    "plots/powers.csv": powers(),
    "plots/cross_remedies.csv": remedies(),
}
