"""Small tables on which the rules about perturbed noise, samples in weights, and XOR hold."""

from __future__ import annotations

import pandas as pd

from tables_margin import seeded

CELL = {"samples": 50, "width": 200, "eps": 0.17, "fooled": 0.61, "agree": 0.69, "agree_control": 0.51}
NOISES = [
    CELL | {"d": d, "noises": n, "accuracy": accuracy, "control": 0.5, "shared": shared, "each": 0.94, "noise": 0.01}
    for d, n, accuracy, shared in ((200, 4000, 0.8, 0.96), (500, 125, 0.67, 0.98), (500, 4000, 0.97, 0.98))
]
LEVELS = ((0, 1.0, 0.0, 0.0), (-2, 0.4, 0.45, 0.7), (-30, 0.2, 0.35, 0.75), (-10000, 0.05, 0.12, 0.75))
WEIGHTS = [
    {"d": 50, "m": m, "width": 300, "log10_loss": level, "kkt": kkt, "on_margin": 1.0, "residual": 0.01}
    | {"candidates": 120, "search_all": search, "search_margin": search, "search_foreign": 0.0}
    | {"pairs_all": pairs, "pairs_margin": pairs, "pairs_foreign": 0.0}
    for m, levels in ((20, LEVELS), (50, LEVELS[2:3]))
    for level, kkt, search, pairs in levels
]
PATH = ((0, 0.693, 0.45, 15), (80, 0.6, 0.99, 4), (150, 0.01, 1.0, 4))
DIRECTIONS = {f"direction_{n}": 90.0 * n - 90 for n in range(1, 5)}
XOR = [
    {"angle": angle, "width": width, "step": step, "loss": loss, "norm": 1.0, "mass": mass, "count": count} | DIRECTIONS
    for angle in (90, 60)
    for width in (256, 4096)
    for step, loss, mass, count in PATH
]
MIDDLE = [
    {"world": "lms-5", "d": d, "width": 100, "depth": 2, "epoch": epoch, "loss": 0.1, "accuracy": 1.0, "simple": 1.0}
    | {"rest": rest}
    for d in (3, 6)
    for epoch, rest in ((0, 0.9), (1, 0.8), (8, 0.7), (64, 0.6))
]

CONFIRM: dict[str, pd.DataFrame] = {
    "plots/perturbed_noise.csv": seeded(NOISES, accuracy=0.01, control=0.01, shared=0.001),
    "plots/reconstruct.csv": seeded(WEIGHTS, search_all=0.02, search_margin=0.02, pairs_all=0.02),
    "plots/xor.csv": seeded(XOR, mass=0.0001),
    "plots/mid_training.csv": seeded(MIDDLE, rest=0.01),
}
