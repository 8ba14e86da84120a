"""A verdict is computed from the tables by its rule, and a spoiled table changes it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from brittle.claims import shown
from brittle.report.papers import PAPERS
from brittle.report.scoreboard import BEGIN, END, counts, page
from brittle.verdicts import judged
from conftest import ENV

CLAIMS = {claim.id: claim for paper in PAPERS for claim in paper.in_order()}


def table(**columns: object) -> pd.DataFrame:
    return pd.DataFrame(columns)


def randomised(**columns: object) -> pd.DataFrame:
    """Networks that rely on S alone."""
    versions = {"standard": 1.0, "s": 0.505, "rest": 1.0}
    areas = {f"{version}_{area}": value for version, value in versions.items() for area in ("auc_roc", "auc_pr")}
    return table(**columns).assign(**areas, s_ks=0.49, rest_ks=0.02)


NETS = [("random", 0, "lottery"), ("random", 0, "clean"), ("random", 0, "robust"), ("pure", 0, "clean")]
NETS += [("pure", 0, "robust")]


def purified(attacks: dict[str, tuple[float, float]]) -> pd.DataFrame:
    """Accuracy of every network under each attack, before and after adversarial training, at two radii."""
    rows = [
        {"start": start, "seed": seed, "network": name, "attack": attack, "tau": tau}
        | {"accuracy": values[name == "robust"] if tau == 0.3 else 1.0}
        for start, seed, name in NETS[1:]
        for attack, values in attacks.items()
        for tau in (0.1, 0.3)
    ]
    return pd.DataFrame(rows)


CELL = {"net": "alexnet", "seed": 0}
ATTACKERS = ("l2-1", "linf-8")


def on_cifar10() -> pd.DataFrame:
    """Table 1's trainings: robust and clean accuracy."""
    found = {"init": (0.0, 0.1), "clean": (0.08, 0.52), "control": (0.08, 0.53), "again": (0.15, 0.52)}
    found |= {"robust": (0.2, 0.46), "linf-8.clean": (0.2, 0.45)}
    found |= {f"{name}.random": (0.18, 0.4) for name in ATTACKERS}
    rows = [
        CELL | {"network": name, "attacker": attacker, "robust": robust, "accuracy": clean}
        for name, (robust, clean) in found.items()
        for attacker in ATTACKERS
    ]
    return pd.DataFrame(rows).assign(samples=5000, test=1000, attacked=300)


def by_network(column: str, values: dict[str, float], **more: object) -> pd.DataFrame:
    return pd.DataFrame([CELL | more | {"network": name, column: value} for name, value in values.items()])


def lasso_curves() -> pd.DataFrame:
    """Error against sparsity, lower for purer features."""
    sizes = {("random", "pictures"): 0.9, ("clean", "pictures"): 0.4, ("robust", "pictures"): 0.3}
    sizes |= {("control", "pictures"): 0.4, ("robust", "clean_delta"): 0.6, ("robust", "robust_delta"): 0.5}
    rows = [
        {"net": "alexnet", "features": features, "target": target, "sparsity": sparsity, "error": size * (1 - sparsity)}
        for (features, target), size in sizes.items()
        for sparsity in (0.01, 0.05, 0.2)
    ]
    return pd.DataFrame(rows).assign(converged=1.0, pictures=16)


# Small tables on which every rule holds.
CONFIRM: dict[str, pd.DataFrame] = {
    "plots/theory_robust.csv": table(
        d=100, m=10, seed=[0, 1], bound=2.0, certified=[4.0, 4.1], smallest_output=1.0, beaten=0
    ),
    "plots/theory_lemma.csv": table(d=100, m=10, draw=[0, 1], largest=[0.2, 0.3], half=0.5, log=0.46),
    "plots/theory_example.csv": table(d=[16, 64], certified_error=1e-9, z_norm_error=0.0, twin_error=1e-12),
    "plots/regime.csv": table(
        world=["orthogonal", "orthogonal", "sphere"],
        d=[60, 60, 100],
        m=[20, 5, 2],
        seed=0,
        applies=1,
        z_norm=[8.0, 18.0, 40.0],
        z_bound=[88.0, 220.0, 360.0],
        largest_after=[-2.5, -2.2, -3.0],
        c=[1.75, 3.5, 7.0],
        kkt=0.02,
    ),
    "plots/kkt.csv": table(
        log10_loss=[-2, -30, -2, -30],
        init_scale=[1.0, 1.0, 0.1, 0.1],
        seed=0,
        d=50,
        m=50,
        width=300,
        kink=1e-3,
        fixed=[0.9, 0.5, 0.6, 0.4],
        free=[0.9, 0.08, 0.5, 0.05],
        slackness=0.01,
    ),
    "plots/sweep.csv": table(
        alpha=[0.5, 0.5, 1.0, 1.0],
        d=[100, 200, 100, 200],
        m=[10, 14, 100, 200],
        width=1000,
        seed=0,
        c=[4.5, 5.4, 2.3, 2.4],
        sqrt_d=[10.0, 14.1, 10.0, 14.1],
        on_margin=[1.0, 1.0, 0.96, 0.95],
    ),
    "plots/margin_seeds.csv": table(d=100, m=100, seed=[0, 1], c_over_norm=[0.23, 0.24]),
    "docs/paper-scale/grid.csv": table(
        figure=["1a", "1a", "1b", "1b"],
        alpha=[0.5, 1.0, 1.0, 1.0],
        d=100,
        width=[1000, 1000, 100, 8000],
        c=[4.5, 2.3, 2.3, 2.4],
        sqrt_d=10.0,
        on_margin=[1.0, 0.96, 0.96, 0.95],
    ),
    "plots/widths.csv": table(d=100, width=[100, 1000], seed=0, c=[2.3, 2.4]),
    "plots/variants.csv": table(
        world=["sphere", "sphere", "gaussian", "clusters"],
        loss=["exponential", "logistic", "exponential", "exponential"],
        seed=0,
        d=100,
        m=100,
        c=[2.3, 2.3, 0.23, 4.5],
        c_over_norm=[0.23, 0.231, 0.228, 0.45],
        on_margin=[0.96, 0.96, 0.95, 0.1],
        margin_size=[96, 96, 95, 10],
    ),
    "plots/transfer.csv": table(
        width=[200, 1000],
        loss=["exponential", "logistic"],
        init=[0, 1],
        own_c=[2.3, 2.4],
        shared_c=[2.3, 2.5],
        flipped=[1.0, 0.97],
    ),
    "plots/certify.csv": table(
        network=["trained", "thm31"], d=100, seed=0, certified=[1.49, 3.27], attacked=[1.5, 3.27], beaten=0
    ),
    "plots/optimisers.csv": table(
        rule=["gd", "muon", "gd"],
        depth=[2, 2, 3],
        seed=0,
        d=100,
        m=100,
        c=[2.3, 4.8, 2.5],
        on_margin=[0.96, 1.0, 0.95],
        kkt=[0.7, 0.9, float("nan")],
    ),
    "plots/lsn.csv": table(
        d=[20, 80, 320],
        seed=0,
        units=20,
        linear=0.33,
        slab=[0.01, 0.005, 0.0025],
        predicted=0.335,
        error=[0.01, 0.0, 0.0],
    ),
    "plots/slabs_networks.csv": randomised(
        model=["fcn-100-1", "gru-100-10-1", "fcn-100-1"],
        world=["lms-5", "ms-5-7", "lms-5"],
        seed=0,
        members=[1, 1, 3],
        boundary_changes=[0.002, 0.02, float("nan")],
        boundary_mixed=[0.01, 0.05, float("nan")],
    ),
    "plots/features.csv": randomised(model="fcn-2000-1", world="lms-5", seed=0, complex=[9, 249]),
    "plots/slabs_uap.csv": table(
        model="fcn-100-1",
        world="lms-5",
        method=["svd", "short", "ascent"],
        share=[0.98, 0.97, 0.998],
        accuracy=[0.02, 0.5, 0.01],
    ),
    "plots/slabs_transfer.csv": table(
        world="ms-5-7",
        of=["fcn-100-1", "fcn-100-1", "cnn-32-7-1", "cnn-32-7-1"],
        on=["fcn-100-1", "cnn-32-7-1", "fcn-100-1", "cnn-32-7-1"],
        cosine=[1.0, -0.99, -0.99, 1.0],  # which of the two neighbouring slabs is a matter of chance
        accuracy=[0.01, 0.02, 0.03, 0.01],
    ),
    "plots/noisy.csv": table(
        world=["noisy-lms-7", "noisy-lms-7", "ms-7"],
        model=["fcn-100-1", "fcn-300-2", "fcn-100-1"],
        seed=0,
        epochs=[10, 10, 12],
        train=[0.97, 0.98, 1.0],
        test=[0.945, 0.95, 0.999],
        rest=[0.944, 0.95, float("nan")],
        s=[0.5, 0.49, float("nan")],
    ),
    "plots/recipes.csv": randomised(
        table=[4, 5, 4],
        model="fcn-100-2",
        world=["ms-5-7", "lms-7", "lms-7"],
        activation=["tanh", "relu", "relu"],
        optimiser="sgd",
        dropout=0.05,
        weight_decay=1e-4,
        seed=0,
    ),
    "plots/adversarial.csv": table(
        norm=["none", "l2", "linf"],
        eps=[0.0, 0.4, 0.06],
        seed=0,
        s_auc_roc=0.5,
        rest_auc_roc=[1.0, 1.0, 0.999],
        margin_s=0.1,
        **{"l2_0.2": 0.9, "l2_0.4": 0.67, "l2_0.4_f_star": 1.0, "l2_median": 0.5},
    ),
    "plots/f_star.csv": table(
        world="lms-5",
        d=[10, 40, 160],
        sample=0,
        output=1.0,
        lower=[0.5, 1.0, 2.0],
        upper=[0.51, 1.01, 2.01],
        simple=0.55,
    ),
    "plots/slabs_confidence.csv": table(
        world=["lms-5", "ms-5-7"],
        rest_confidence=[1e-4, 2e-4],
        rest_logit=0.1,
        rest_flips=0.0,
        s_confidence=1e-3,
        s_flips=1.0,
    ),
    "plots/sparse_networks.csv": pd.DataFrame(NETS, columns=["start", "seed", "network"]).assign(
        d=256,
        k=8,
        margin=1.0,
        words=256,
        tau=0.3,
        attacked=500,
        certified=30,
        drawn=[6000, 6000, 6000, 256, 256],
        neurons=[2000, 2000, 2000, 256, 256],
        rest=0.004,
        winner_unsigned=0.7,
        accuracy=[0.99, 1.0, 1.0, 1.0, 1.0],
        runaway=0.0,
        covered=1.0,
        pure=0.95,
        ratio=[0.01, 0.02, 0.001, 0.02, 0.001],
        beta=[0.001, 0.004, 0.0005, 0.02, -0.001],
        predicted=0.02,
        agreement=[0.7, 0.95, 0.55, 0.99, 0.5],
        mean_cosine=0.99,
        moved=[0.1, 0.07, 0.05, 0.8, 0.9],
        correlated=[0.02, 0.08, 0.004, 0.04, 0.004],
        local=[0.2, 0.0, 0.5, 0.0, 0.1],
        turned=[0.1, 0.0, 0.2, 0.0, 0.1],
        winner=0.85,
        winner3=0.98,
        same_word=0.99,
        fgm_l1_l2=[float("nan"), 15.0, 4.0, 15.0, 3.0],
        pgd_l1_l2=[float("nan"), 16.0, 5.0, 16.0, 5.0],
    ),
    "plots/sparse_accuracy.csv": purified(
        {"dense": (0.05, 1.0), "random": (1.0, 1.0), "fgm": (0.04, 0.95), "pgd": (0.03, 0.92), "certified": (0.0, 0.91)}
    ),
    "plots/sparse_theta.csv": table(
        start="random",
        seed=0,
        of=["start, clean", "start, robust", "clean, robust", "different neurons"],
        median=[0.19, 0.18, 0.97, 0.08],
    ),
    "plots/sparse_transfer.csv": table(
        of=["a", "a", "b", "b"], on=["a", "b", "a", "b"], accuracy=[0.05, 0.1, 0.1, 0.04]
    ),
    "plots/sparse_grid.csv": table(
        of=["d", "linf"],
        start=["random", "pure"],
        norm=["l2", "linf"],
        d=[128, 256],
        k=[6, 8],
        margin=1.0,
        tau=[0.3, 0.02],
        clean_moved=[0.13, 0.8],
        clean_correlated=[0.2, 0.04],
        clean_dense=0.02,
        clean_random=1.0,
        robust_fgm=0.99,
        robust_pgd=0.98,
    ),
    "plots/sparse_low.csv": table(
        model=["linear", "NTK", "linear", "NTK"],
        norm=["l2", "l2", "linf", "linf"],
        training=["clean", "fgm", "fgm", "fgm"],
        width=[1, 1024, 1, 1024],
        d=256,
        k=8,
        margin=1.0,
        accuracy=0.99,
        pgd=[0.0, 0.58, 0.01, 0.59],
    ),
    "plots/mnist_cifar_networks.csv": table(
        model="googlenet",
        kind=["standard", "standard", "standard", "adversarial", "alone"],
        world="0-1-automobile-truck",
        seed=[0, 1, 0, 0, 0],
        members=[1, 1, 2, 1, 1],
        samples=50000,
        test=600,
        permutations=4,
        accuracy=[1.0, 1.0, 1.0, 1.0, 0.95],
        auc=[1.0, 1.0, 1.0, 1.0, 0.98],
        s_auc=[0.52, 0.48, 0.51, 0.5, 0.98],
        s_error=0.01,
        rest_auc=[1.0, 0.999, 1.0, 1.0, 0.5],
        robust=[float("nan")] * 3 + [0.6, float("nan")],
        eps=[float("nan")] * 3 + [0.3, float("nan")],
    ),
    "plots/mnist_cifar_uap.csv": table(
        model=["googlenet", "mobilenet_v2"],
        share=[0.97, 0.99],
        mean_share=0.9,
        uap=0.1,
        mean=0.8,
        random=0.99,
        none=1.0,
    ).assign(eps=4.0),
    "plots/cifar10_accuracy.csv": on_cifar10(),
    "plots/cifar10_features.csv": pd.concat(
        [
            by_network(
                "high_frequency", {"init": 0.8, "clean": 0.3, "control": 0.28, "robust": 0.2}, of="filters", layer=1
            ),
            by_network("variation", {"init": 1.2, "clean": 0.9, "robust": 0.5}, of="visualised", layer=1),
            by_network("variation", {"init": 1.2, "clean": 0.8, "robust": 0.6}, of="visualised", layer=3),
        ]
    ),
    "plots/cifar10_theta.csv": pd.DataFrame(
        [
            CELL | {"layer": layer, "of": of, "median": median}
            for layer in (1, 3)
            for of, median in (
                ("init, clean", 0.18),
                ("init, robust", 0.15),
                ("clean, robust", 0.9),
                ("clean, control", 0.95),
                ("different neurons", 0.1),
            )
        ]
    ),
    "plots/cifar10_layers.csv": by_network(
        "robust", {"init": 0.0, "clean": 0.1, "robust": 0.2, "control": 0.1}, layer=3
    ),
    "plots/cifar10_lasso.csv": lasso_curves(),
    "plots/cifar10_activity.csv": table(**CELL, network="clean", epoch=range(5), active=[0.5, 0.4, 0.35, 0.3, 0.2]),
    "plots/cifar10_perturbations.csv": pd.concat(
        [by_network("haar", {"clean": 0.75, "control": 0.75, "robust": 0.45})]
    ).assign(pixels=0.8, dct=0.7, variation=1.0),
    "plots/cifar10_path.csv": table(
        **CELL,
        network=["clean", "clean", "robust", "again", "control"],
        epoch=[0, 5, 4, 4, 4],
        theta_init=[1.0, 0.15, 0.14, 0.14, 0.14],
        theta_clean=[0.15, 1.0, 0.9, 0.95, 0.97],
        variation=[1.2, 0.9, 0.6, 0.8, 0.85],
    ),
}


def scaled(column: str, factor: float) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda t: t.assign(**{column: t[column] * factor})


def one(column: str, value: float, row: int = -1) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """One row changed: enough to refute a rule that says "every"."""

    def change(t: pd.DataFrame) -> pd.DataFrame:
        t = t.copy()
        t[column] = t[column].astype(float)
        t.loc[t.index[row], column] = value
        return t

    return change


INF = float("inf")
REFUTE = [
    ("M1", one("certified", 1.9)),
    ("M1", one("smallest_output", 0.5)),
    ("M1", one("beaten", 1)),
    ("M2", one("largest", 0.47)),
    ("M2", one("largest", 0.6)),
    ("M3", one("largest_after", -0.9)),
    ("M3", one("z_norm", 1000)),
    ("M4", one("certified_error", 2e-5)),
    ("M4", one("z_norm_error", 2e-5)),
    ("M4", one("twin_error", 2e-5)),
    ("M5", one("free", 0.11)),
    ("M5", one("free", 0.06, row=0)),  # it rises
    ("M6", one("c", 14.2)),
    ("M6", one("c", INF)),
    ("M7", one("on_margin", 0.99, row=0)),
    ("M7", one("on_margin", 0.91)),
    ("M8", one("c", 2.6)),
    ("M8", one("c", INF)),
    ("M9", one("c_over_norm", 0.26, row=1)),
    ("M9", one("on_margin", 0.8, row=2)),
    ("M9", scaled("c_over_norm", INF)),
    ("M10", one("flipped", 0.94)),
    ("M10", one("own_c", INF)),
    ("M11", one("margin_size", 100)),
    ("M11", one("c", 10.5)),
    ("M12", lambda t: t.assign(c=t["d"] / t["m"])),
    ("M12", one("c", INF, row=0)),
    ("M13", one("beaten", 1)),
    ("M13", one("certified", 3.3)),
    ("M14", one("c", 11.0, row=1)),
    ("M15", one("c", INF)),
    ("S1", lambda t: t.assign(slab=0.01)),
    ("S1", one("error", 0.002)),
    ("S2", one("s_auc_roc", 0.56, row=0)),
    ("S2", one("s_auc_pr", 0.44, row=1)),
    ("S2", one("rest_auc_roc", 0.98, row=1)),
    ("S2", one("rest_auc_pr", 0.98, row=0)),
    ("S3", one("rest_ks", 0.06, row=0)),
    ("S3", one("s_ks", 0.3, row=1)),
    ("S4", one("s_auc_roc", 0.6)),
    ("S4", one("rest_auc_roc", 0.9)),
    ("S5", one("boundary_changes", 0.011, row=0)),
    ("S6", one("share", 0.98)),
    ("S7", one("test", 0.96, row=0)),
    ("S7", one("test", 0.92, row=1)),
    ("S7", one("s", 0.53, row=1)),
    ("S8", one("test", 0.98)),
    ("S9", one("s_auc_roc", 0.56)),
    ("S10", one("rest_auc_roc", 0.98, row=1)),
    ("S11", one("s_auc_roc", 0.6)),
    ("S12", one("rest_auc_roc", 0.98)),
    ("S13", one("output", -0.1)),
    ("S13", one("lower", 1.0)),
    ("S13", one("upper", 4.0)),
    ("S14", one("rest_confidence", 0.02)),
    ("P1", one("moved", 0.11, row=1)),
    ("P1", one("correlated", 0.11, row=1)),
    ("P2", one("accuracy", 0.96, row=3)),
    ("P3", lambda t: t.assign(accuracy=t["accuracy"].mask((t["attack"] == "dense") & (t["tau"] == 0.3), 0.11))),
    ("P3", lambda t: t.assign(accuracy=t["accuracy"].mask(t["attack"] == "random", 0.89))),
    ("P4", one("agreement", 0.79, row=1)),
    ("P5", lambda t: t.assign(accuracy=t["accuracy"].mask((t["attack"] == "pgd") & (t["tau"] == 0.3), 0.89))),
    ("P5", lambda t: t.assign(accuracy=t["accuracy"].mask((t["attack"] == "fgm") & (t["tau"] == 0.3), 0.89))),
    ("P5", lambda t: t.assign(accuracy=t["accuracy"].mask((t["attack"] == "dense") & (t["network"] == "clean"), 0.2))),
    ("P5", lambda t: t.assign(accuracy=t["accuracy"].mask((t["attack"] == "certified") & (t["tau"] == 0.3), 0.89))),
    ("P6", one("median", 0.21, row=0)),
    ("P6", one("median", 0.21, row=1)),
    ("P6", one("median", 0.79, row=2)),
    ("P6", one("median", 0.21, row=3)),
    ("P7", one("beta", 0.0014, row=2)),
    ("P7", one("beta", -0.007)),
    ("P8", one("clean_dense", 0.11)),
    ("P8", one("clean_random", 0.89)),
    ("P8", one("robust_pgd", 0.89)),
    ("P9", one("pgd", 0.61)),
    ("P9", one("accuracy", 0.6, row=0)),
    ("P10", one("accuracy", 0.25, row=1)),
    ("P11", one("winner", 0.79, row=1)),
    ("P12", one("pgd_l1_l2", 11.0, row=2)),
    ("P12", one("fgm_l1_l2", 11.0)),
    ("S15", one("s_auc", 0.59, row=0)),
    ("S15", one("s_auc", 0.43, row=1)),
    ("S15", one("rest_auc", 0.98, row=1)),
    ("S16", one("accuracy", 0.89)),
    ("S17", one("share", 0.94)),
    ("S18", one("s_auc", 0.6, row=2)),
    ("S18", one("rest_auc", 0.9, row=3)),
    ("P13", one("robust", 0.07, row=8)),
    ("P13", one("robust", 0.07, row=12)),
    ("P13", one("accuracy", 0.6, row=8)),
    ("P14", one("high_frequency", 0.31, row=3)),
    ("P14", one("high_frequency", 0.19, row=2)),  # the control falls as far
    ("P15", one("median", 0.21, row=0)),
    ("P15", one("median", 0.21, row=6)),
    ("P15", one("median", 0.79, row=7)),
    ("P16", one("error", 0.5, row=8)),
    ("P16", one("error", 0.9, row=4)),
    ("P16", one("error", 0.9, row=16)),
    ("P17", lambda t: t.assign(active=[0.5, 0.4, 0.45, 0.3, 0.48])),
    ("P18", one("haar", 0.51)),
    ("P19", one("theta_init", 0.21, row=1)),
    ("P19", one("theta_clean", 0.79, row=2)),
    ("P19", one("theta_clean", 0.89, row=3)),
    ("P19", one("variation", 0.59, row=3)),
    ("P20", one("variation", 0.91, row=6)),
    ("P20", one("variation", 0.81)),
]


def verdict(id: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> str:
    path = CLAIMS[id].reads[0]
    return CLAIMS[id].judge(CONFIRM | {path: change(CONFIRM[path])}).verdict


@pytest.mark.parametrize("id", CLAIMS)
def test_numbers_that_confirm_a_claim_are_seen(id: str) -> None:
    assert verdict(id, lambda t: t) == "reproduced"


@pytest.mark.parametrize(("id", "change"), REFUTE)
def test_numbers_that_refute_a_claim_are_seen(id: str, change: Callable) -> None:
    assert verdict(id, change) == "differs"


@pytest.mark.parametrize(
    ("id", "cut"),
    [
        ("M2", lambda t: t.assign(d=50)),
        ("M3", lambda t: t.assign(applies=0)),
        ("M5", lambda t: t[t["log10_loss"] == -30]),
        ("M7", lambda t: t[t["alpha"] > 0.5]),
        ("M8", lambda t: t[:1]),
        ("M12", lambda t: t[:1]),
        ("S1", lambda t: t[:1]),
        ("S2", lambda t: t[t["members"] > 1]),
        ("S5", lambda t: t[t["model"] != "fcn-100-1"]),
        ("S8", lambda t: t[:2]),
        ("S13", lambda t: t[:1]),
        ("P1", lambda t: t[t["start"] == "pure"]),
        ("P6", lambda t: t.assign(start="pure")),
        ("P8", lambda t: t[:1]),
        ("P10", lambda t: t[:1]),
        ("P11", lambda t: t[t["start"] == "pure"]),
    ],
)
def test_a_scale_that_leaves_nothing_to_look_at_is_said(id: str, cut: Callable) -> None:
    assert verdict(id, cut) == "not run at this scale"


def test_perturbations_that_differ_between_networks_refute_s6() -> None:
    path = "plots/slabs_transfer.csv"
    pairs = CONFIRM[path]
    for spoiled in (one("cosine", 0.9, row=1)(pairs), pairs.assign(world="lms-5")):  # a linear S has but one direction
        assert CLAIMS["S6"].judge(CONFIRM | {path: spoiled}).verdict == "differs"


@pytest.mark.parametrize("id", ["S2", "S4", "S9", "S10", "S11"])
def test_a_network_that_did_not_learn_refutes_and_is_named(id: str) -> None:
    path = CLAIMS[id].reads[0]
    found = CLAIMS[id].judge(CONFIRM | {path: CONFIRM[path].assign(standard_auc_roc=0.5, rest_auc_roc=0.5)})
    assert found.verdict == "differs"
    assert "did not learn their task: fcn-" in found.measured


def test_unsure_networks_do_not_confirm_that_confidence_stays() -> None:
    path = "plots/slabs_networks.csv"
    assert CLAIMS["S14"].judge(CONFIRM | {path: CONFIRM[path].assign(standard_auc_roc=0.5)}).verdict == "differs"


def test_cells_that_were_left_out_are_named() -> None:
    assert "not run: fcn-100-1 ms-5-7, gru-100-10-1 lms-5" in CLAIMS["S2"].judge(CONFIRM).scale
    assert "not run: tanh sgd lms-7, relu sgd ms-5-7" in CLAIMS["S9"].judge(CONFIRM).scale


def test_every_claim_is_there_once() -> None:
    numbers = {"M": range(1, 16), "S": range(1, 19), "P": range(1, 21)}
    assert list(CLAIMS) == [f"{letter}{i}" for letter, those in numbers.items() for i in those]
    assert sum(len(paper.claims) for paper in PAPERS) == len(CLAIMS)


def test_the_committed_verdicts_are_what_the_rules_say_of_the_committed_tables(committed: Path) -> None:
    verdicts = json.loads((committed / "metrics/claims.json").read_text())
    tables = {path: pd.read_csv(committed / path) for claim in CLAIMS.values() for path in claim.reads}
    for row in judged(PAPERS, tables).itertuples():
        assert verdicts[f"{row.id}.verdict"] == row.verdict
        assert verdicts[f"{row.id}.value"] == pytest.approx(row.value, rel=1e-5)


def test_the_command_prints_every_claim_with_what_it_rests_on(committed: Path) -> None:
    command = [sys.executable, "-m", "brittle.claims"]
    out = subprocess.run(command, cwd=committed, env=ENV, capture_output=True, text=True, check=True).stdout
    parts = re.split(r"^(?=[MSP]\d+ )", out, flags=re.MULTILINE)
    blocks = {part.split()[0]: " ".join(part.split()) for part in parts if part.strip()}
    for claim in CLAIMS.values():
        for words in (f"({claim.source})", f"rule {claim.rule} rests on {' '.join(claim.reads)}: ", claim.says):
            assert " ".join(words.split()) in blocks[claim.id]
        assert any(verdict in blocks[claim.id] for verdict in ("reproduced", "differs", "not run"))
    assert out.splitlines()[-1].count("reproduced") == 1


def test_the_readme_shows_what_the_command_prints(committed: Path) -> None:
    readme = (committed / "README.md").read_text()
    (block,) = re.findall(r"```\n\$ python -m brittle.claims M6\n(.*?)```", readme, re.DOTALL)
    command = [sys.executable, "-m", "brittle.claims", "M6"]
    env = ENV | {"COLUMNS": "120"}
    out = subprocess.run(command, cwd=committed, env=env, capture_output=True, text=True, check=True).stdout
    assert out.startswith(block)


def test_the_numbers_of_the_readme_are_those_of_the_committed_run(committed: Path) -> None:
    readme, run = (committed / "README.md").read_text(), json.loads((committed / "metrics/margin.json").read_text())
    (c,) = re.findall(r"margin\.json  margin\.c\.mean +([\d.]+)", readme)  # what `dvc metrics diff` prints of HEAD
    assert float(c) == pytest.approx(run["margin.c.mean"], abs=1e-5)
    (size, share) = re.findall(r"At size\s+c = ([\d.]+) .* \((\d+) % of all samples\)", readme)[0]
    assert float(size) == round(run["margin.c.mean"], 1)
    assert int(share) == round(100 * run["margin.on_margin.mean"])


def test_the_command_without_a_run_says_so_in_one_line(tmp_path: object) -> None:
    command = [sys.executable, "-m", "brittle.claims"]
    done = subprocess.run(command, cwd=str(tmp_path), env=ENV, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "plots/claims.csv: is missing; `dvc repro` makes it, `dvc pull` fetches it\n"


def test_the_scoreboard_wraps_to_the_terminal() -> None:
    board = shown(judged(PAPERS, CONFIRM), 80)
    assert max(len(line) for line in board.splitlines() if line.startswith("     ")) <= 80


def write_readme(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "brittle.claims", *(arguments or ["--write"])]
    return subprocess.run(command, cwd=folder, env=ENV, capture_output=True, text=True)


@pytest.fixture
def copied(tmp_path: Path, committed: Path) -> Path:
    """README.md, docs/claims.md and plots/claims.csv, to be changed."""
    for name in ("README.md", "docs/claims.md", "plots/claims.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(committed / name, tmp_path / name)
    return tmp_path


def test_readme_and_docs_have_the_verdicts_of_the_table(copied: Path) -> None:
    def written() -> list[bytes]:
        return [(copied / name).read_bytes() for name in ("README.md", "docs/claims.md")]

    before = written()
    assert (write_readme(copied).returncode, written()) == (0, before), "make scoreboard"
    table = copied / "plots/claims.csv"
    table.write_text(table.read_text().replace("M1,reproduced,", "M1,differs,"))
    write_readme(copied)
    readme, docs = (text.decode() for text in written())
    assert "| differs |" in re.search(r"^\| M1 \|.*$", docs, re.MULTILINE)[0]
    for text in (readme, docs):
        assert re.search(r"^\| VYS \|.*\| M1, .*$", text, re.MULTILINE)
    outside = [re.sub(f"{BEGIN}.*{END}", "", text, flags=re.DOTALL) for text in (readme, before[0].decode())]
    assert outside[0] == outside[1]


def test_one_claim_is_printed_alone(committed: Path) -> None:
    command = [sys.executable, "-m", "brittle.claims", "M6", "S2"]
    out = subprocess.run(command, cwd=committed, env=ENV, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^([MSP]\d+) ", out, re.MULTILINE) == ["M6", "S2"]


def test_the_scoreboard_counts_each_paper_and_shows_text_as_text() -> None:
    claims = judged(PAPERS, CONFIRM).head(16)  # 15 of VYS, one of SB
    claims.loc[1:2, "verdict"] = "differs"
    claims.loc[3, "verdict"] = "not run at this scale"
    claims.loc[0, "says"] = "|x| <img> w_i *\n`y`"
    assert counts(claims).splitlines()[2:] == ["| VYS | 12 | 2 | 1 | M2, M3 |", "| SB | 1 | 0 | 0 |  |"]
    (first,) = [line for line in page(claims).splitlines() if line.startswith("| M1 |")]
    assert first.startswith(r"| M1 | \|x\| &lt;img> w\_i \* \`y\` |")


@pytest.mark.parametrize("readme", ["", BEGIN, f"{END} {BEGIN}", f"{BEGIN}{BEGIN}{END}", f"{BEGIN}{END}{END}"])
def test_a_readme_without_its_two_markers_is_left_as_it_is(readme: str, copied: Path) -> None:
    (copied / "README.md").write_text(readme)
    done = write_readme(copied)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"README.md: must have {BEGIN} and, after it, {END}, each once\n"
    assert (copied / "README.md").read_text() == readme


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda folder: (folder / "plots/claims.csv").unlink(), "plots/claims.csv: is missing; "),
        (lambda folder: (folder / "plots/claims.csv").write_text("id\nM1\n"), "plots/claims.csv: has no column "),
        (lambda folder: (folder / "README.md").write_bytes(b"\xff"), "README.md: cannot be read: "),
        (lambda folder: (folder / "README.md").unlink(), "README.md: cannot be read: "),
    ],
    ids=["no table", "another table", "not text", "no readme"],
)
def test_a_spoiled_scoreboard_is_said_in_one_line(spoil: Callable, says: str, copied: Path) -> None:
    spoil(copied)
    before = {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()}
    done = write_readme(copied)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(says)
    assert done.stderr.count("\n") == 1
    assert {path: path.read_bytes() for path in copied.rglob("*") if path.is_file()} == before


def test_an_argument_that_means_nothing_is_said_in_one_line(copied: Path) -> None:
    done = write_readme(copied, "--writ")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "--writ: is not a claim; give some of M1 … P20, or --write, or nothing\n"


def test_the_headline_run_reaches_a_verdict() -> None:
    """What `dvc exp run -S d=500` changes is judged, too."""
    claim = CLAIMS["M6"]
    assert claim.judge(CONFIRM).verdict == "reproduced"
    worse = CONFIRM["plots/margin_seeds.csv"].assign(d=500, c_over_norm=[0.23, 1.01])
    found = claim.judge(CONFIRM | {"plots/margin_seeds.csv": worse})
    assert found.verdict == "differs"
    assert "headline run (d = 500, m = 100) 1.01 at most" in found.measured
