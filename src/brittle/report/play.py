"""What the slider under the headline figure needs: where each sample on the margin flips, exactly, as json."""

from __future__ import annotations

import json

import pandas as pd

DIRECTIONS = ("z", "random")


def data(crossings: pd.DataFrame, samples: pd.DataFrame, most: float) -> str:
    """For each direction [sample, size, 1 if it flips there, 0 if it flips back], up to the size `most`, in order.

    Samples of all seeds are numbered one after the other; `of` says how many there are.
    """
    counts = samples.groupby("seed")["on_margin"].sum().astype(int)
    before = counts.cumsum() - counts
    found: dict[str, object] = {"of": int(counts.sum()), "most": most}
    shown = crossings[crossings["c"] <= most].sort_values("c", kind="stable")
    for direction in DIRECTIONS:
        rows = shown[shown["direction"] == direction]
        numbers = (rows["seed"].map(before) + rows["sample"]).astype(int)
        found[direction] = [list(row) for row in zip(numbers, rows["c"], rows["flips"], strict=True)]
    return json.dumps(found, separators=(",", ":"))
