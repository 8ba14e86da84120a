"""Small tables on which every rule of the chapter margin holds, and those across the papers."""

from __future__ import annotations

import pandas as pd

from claim_cases import table

SEEDS = (0, 1, 2)
ALPHAS = (0.5, 0.8, 1.0, 1.2, 1.5)


def seeded(rows: list[dict], **noise: float) -> pd.DataFrame:
    """Each row for three seeds, with a little noise in some columns."""
    every = []
    for row in rows:
        for seed in SEEDS:
            more = {key: row[key] * (1 + size * (seed - 1)) for key, size in noise.items()}
            every.append(row | {"seed": seed} | more)
    return pd.DataFrame(every)


def grid() -> pd.DataFrame:
    """c grows like d^¼ at α = ½ and hardly at all elsewhere."""
    rows = [
        {"alpha": alpha, "d": d, "m": round(d**alpha), "width": 1000, "sqrt_d": d**0.5}
        | {"c": d**0.25 * 1.4 if alpha == 0.5 else 2.0 * d**0.05, "on_margin": 1.0 if alpha == 0.5 else 0.96}
        for alpha in ALPHAS
        for d in (100, 200, 400)
    ]
    t = seeded(rows, c=0.01)
    return t.assign(off_margin=0)


def against_thm31() -> pd.DataFrame:
    """Trained networks fall behind Thm 3.1's as d grows."""
    rows = []
    for alpha in (0.5, 0.8, 1.0, 1.2):
        for d in (50, 100, 200, 400):
            for sample in range(3):
                cell = {"alpha": alpha, "d": d, "m": round(d**alpha), "sample": sample}
                rows.append(cell | {"attacked": 0.3 * d**0.3, "certified": 0.33 * d**0.5, "bound": 0.16 * d**0.5})
    return seeded(rows, attacked=0.01, certified=0.01)


def brackets() -> pd.DataFrame:
    """Three samples of each network."""
    rows = [
        {"network": network, "d": 100, "sample": sample, "beaten": 0, "certified": 0.98 * radius, "attacked": radius}
        for network, radius in (("trained", 1.5), ("thm31", 3.1))
        for sample in range(3)
    ]
    return seeded(rows, attacked=0.01, certified=0.01)


def proofs() -> pd.DataFrame:
    """Two lines and two losses of one network for each seed."""
    cell = {"world": "orthogonal", "d": 60, "m": 10, "width": 200, "init_scale": 0.01, "kkt": 0.02}
    rows = [
        cell | {"part": "line", "lemma": "C.1", "lhs": 1.0, "rhs": 1.0, "tightness": 1.0},
        cell | {"part": "line", "lemma": "C.3", "lhs": 0.1, "rhs": 1.0, "tightness": 0.1},
        cell | {"part": "loss", "lemma": "Thm 4.1", "lhs": 1.0, "rhs": 4.0, "tightness": 0.25},
        cell | {"part": "loss", "lemma": "C.9", "lhs": 1.0, "rhs": 10.0, "tightness": 0.1},
    ]
    return seeded(rows)


def fresh() -> pd.DataFrame:
    """Test points twice as far out as the margin set, and as brittle for their norm as training samples."""
    cell = {"world": "clusters", "d": 100, "m": 100, "points": 100, "accuracy": 1.0, "radius_over_norm": 0.38}
    rows = [cell | {"kind": kind, "flipped": 0.0, "flipped_twice": 1.0, "c": 8.0} for kind in ("others", "fresh")]
    return seeded([cell | {"kind": "margin", "flipped": 1.0, "flipped_twice": 1.0, "c": 4.0}, *rows])


def optimisers() -> pd.DataFrame:
    """Gradient descent's radius hardly grows with d, Muon's grows like √d."""
    grown = (50, 100, 200)
    rows = [
        {"rule": rule, "depth": depth, "seed": seed, "d": d, "m": d, "init_scale": 1.0}
        | {"c": c, "on_margin": 0.96, "attacked": 1.5 * (d / 50) ** (power + 0.02 * (seed - 1))}
        | {"kkt": 0.7, "kkt_l2": 0.1, "kkt_linf": 0.5, "kkt_spectral": 0.2}
        for rule, power, c, ds in (
            ("gd", 0.04, 2.4, grown),
            ("normalised_gd", 0.04, 2.4, (100,)),
            ("muon", 0.5, 4.8, grown),
        )
        for depth in (2, 3)
        for d in ds
        for seed in SEEDS
    ]
    return pd.DataFrame(rows)


CONFIRM: dict[str, pd.DataFrame] = {
    "plots/theory_robust.csv": table(
        d=100, m=[10, 10, 100], seed=[0, 1, 0], bound=2.0, certified=[4.0, 4.1, 4.0], smallest_output=1.0, beaten=0
    ),
    "plots/theory_lemma.csv": table(d=200, m=200, draw=range(20), largest=0.3, half=0.5, log=0.375),
    "plots/theory_example.csv": table(
        d=[16, 64],
        certified_error=1e-9,
        output_error=0.0,
        z_norm_error=0.0,
        twin_error=1e-12,
        margin=[1 / 36, 1 / 132],
        twin_margin=[1 / 17, 1 / 65],
    ),
    "plots/theory_kkt.csv": table(d=[16, 16], m=[2, 16], residual=0.0, output_error=0.0, c=[8**0.5, 1.0], c_error=0.0),
    "plots/regime.csv": seeded(
        [
            {"world": "orthogonal", "d": 60, "m": m, "applies": 1, "z_norm": 8.0, "z_bound": 88.0, "kkt": 0.02}
            | {"width": 200, "init_scale": 0.01, "law": 1, "largest_after": -2.5, "c": (60 / m) ** 0.5}
            for m in (20, 10, 5)
        ]
        + [
            {"world": "sphere", "d": d, "m": m, "applies": 1, "z_norm": 40.0, "z_bound": 360.0, "kkt": 0.02}
            | {"width": width, "init_scale": scale, "law": 0, "largest_after": -3.0, "c": 7.0}
            for d, m, width, scale in ((100, 2, 200, 0.01), (10_000, 8, 2, 1.0), (10_000, 8, 1000, 0.1))
        ],
        c=0.01,
        largest_after=0.05,
    ),
    "plots/kkt.csv": seeded(
        [
            {"log10_loss": level, "init_scale": scale, "d": 50, "m": 50, "width": 300, "kink": 1e-3}
            | {"fixed": 0.9, "free": free * scale**0.1, "slackness": 0.01}
            for scale in (1.0, 0.1)
            for level, free in ((-2, 0.9), (-30, 0.3), (-10000, 0.06))
        ],
        free=0.02,
    ),
    "plots/sweep.csv": grid(),
    "plots/margin_seeds.csv": table(d=100, m=100, seed=[0, 1, 2], c_over_norm=[0.23, 0.24, 0.235]),
    "plots/minibatch.csv": table(
        d=300, m=5196, method=["protocol", "flow"], seed=0, batch=[5000, 5196], c=[5.1, 5.0], on_margin=[0.97, 0.96]
    ),
    "plots/widths.csv": seeded(
        [{"d": d, "m": d, "width": w, "c": 2.3 + w / 1e5} for d in (100, 200) for w in (100, 8000)]
    ),
    "plots/variants.csv": seeded(
        [
            {"world": world, "loss": loss, "d": 100, "m": 100, "norm": norm, "c": ratio * norm, "c_over_norm": ratio}
            | {"on_margin": share, "margin_size": round(100 * share), "applies": int(world == "clusters")}
            | {"z_norm": 10.0, "z_bound": 200.0, "largest_after": -2.0}
            for world, loss, norm, ratio, share in (
                ("sphere", "exponential", 10.0, 0.23, 0.96),
                ("sphere", "exponential", 1.0, 0.14, 0.83),
                ("sphere", "logistic", 10.0, 0.231, 0.96),
                ("gaussian", "exponential", 10.0, 0.228, 0.95),
                ("gaussian", "exponential", 1.0, 0.141, 0.84),
                ("clusters", "exponential", 10.0, 0.45, 0.1),
            )
        ],
        c_over_norm=0.01,
    ),
    "plots/transfer.csv": pd.concat(
        table(
            data=data, width=width, loss=loss, init=[0, 1, 2], own_c=2.3, shared_c=2.35, flipped=[1.0, 0.99, 1.0]
        ).assign(on_margin=share)
        for data, share in (("sphere", 0.96), ("gaussian", 0.95), ("sphere.unit", 0.83))
        for width in (200, 1000)
        for loss in ("exponential", "logistic")
    ).reset_index(drop=True),
    "plots/certify.csv": brackets(),
    "plots/title.csv": against_thm31(),
    "plots/proof.csv": proofs(),
    "plots/fresh.csv": fresh(),
    "plots/optimisers.csv": optimisers(),
    "plots/cross_vectors.csv": table(
        world=["sphere", "sphere", "lms-5"], vector=["z", "random", "z"], told=[1, 0, 1], cosine=[0.9, 0.1, 0.99]
    ),
    "plots/cross_probes.csv": table(
        world=["sphere", "sphere"],
        training=["nothing", "adversarial"],
        reliance=[0.7, 0.1],
        certified=1.3,
        attacked=1.4,
    ),
    "plots/cross_remedies.csv": table(
        world=["sphere", "sphere", "all worlds"], remedy=["nothing", "adversarial", "adversarial"], yours=0, own=1
    ).assign(robust=[0.2, 0.7, 0.6]),
}
