"""The tables of all measurements, which stages write and figures read: without torch, which takes seconds to load."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from brittle.core import store

Row = dict[str, object]


@dataclass(frozen=True)
class Tables:
    """All measurements, as rows of four tables."""

    networks: list[Row]  # one row per network: every probe
    attacks: list[Row]  # one row per network and attack: the share of samples still classified correctly
    vectors: list[Row]  # one row per plain network and vector
    curves: list[Row]  # the same for a range of sizes

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
PROBES += ["kkt", "theta", "density", "density_delta", "universal", "off_span"]
COLUMNS = {
    "networks": [*ABOUT, "own", "yours", "simple", "radius", "best", "best_robust", "spent", *PROBES],
    "attacks": [*ABOUT, "attack", "yours", "kept"],
    "vectors": [*ABOUT, "vector", "needs", "told", "cosine", "half", "uap_half", "random_half"],
    "curves": [*ABOUT, "vector", "size", "accuracy"],
}
COMPARED = ("nothing", "adversarial")  # remedies that get every probe, even the slow ones (X2)
