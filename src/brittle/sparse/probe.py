"""What the networks trained on the sparse coding model consist of and withstand (FP Theorems 5.1–5.3, §6.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from brittle.attacks import softened_pgd
from brittle.core import device, store
from brittle.core.progress import bar
from brittle.core.stage import run
from brittle.nets.symmetric import Symmetric
from brittle.nets.symmetric_from_below import from_below
from brittle.probes.certify import certified
from brittle.probes.density import density
from brittle.probes.lottery import tickets
from brittle.probes.mixture import decompose, mixture
from brittle.probes.separable import certain
from brittle.probes.theta import correlated, local, moved, theta, theta_pairs, turned
from brittle.sparse import schedules, settings
from brittle.sparse.params import Sparse, SparseParams
from brittle.sparse.schedules import TrainedPhases
from brittle.sparse.settings import Setting

ATTACKED = 500  # test samples under attack
BINS = 80  # in a histogram
NARROW = 2  # networks of more neurons than this many times d have one kind of certificate only


def main(params: SparseParams) -> None:
    p = params.sparse
    where = device.pick(params.device)
    setting = settings.load_setting(p, where)
    few = setting.first(ATTACKED)
    trained = {
        (start, seed): schedules.load_nets(p, start, seed, where)
        for start in p.starts
        for seed in getattr(p, start).seeds
    }
    rows, curves, coefficients, thetas, fgms = [], [], [], [], {}
    with bar(sum(len(nets.nets) for nets in trained.values()), "probing") as shown:
        for (start, seed), nets in trained.items():
            thetas += alike(nets, start, seed)
            lucky = lottery(nets, setting, p, seed) if start == "random" else {}
            certain = few.first(getattr(p, start).certified if seed == getattr(p, start).seeds[0] else 0)
            for name, net in nets.nets.items():
                about = {"start": start, "seed": seed, "network": name}
                sizes = {"d": p.d, "words": p.words, "k": p.k, "margin": p.margin, "tau": p.tau, "attacked": len(few.x)}
                sizes |= {"certified": len(certain.x), "drawn": drawn(p, start)}
                row = about | sizes | network(net, name, nets, setting, p)
                row |= {} if name.startswith("direct") else lucky
                if "lottery" not in name:  # those are only intermediate networks
                    at_tau, found = attacked(net, few, p)
                    curves += [about | row for row in found]
                    fgms[start, seed, name] = at_tau["fgm"]
                    row |= directions(at_tau, setting)
                if name == "robust":
                    curves += [about | row for row in proved(net, certain, p.taus)]
                rows.append(row)
                coefficients += [about | row for row in histogram(net, setting)]
                shown.update(1)
    networks, curves = pd.DataFrame(rows), pd.DataFrame(curves)
    if "random" not in p.starts:  # nobody has drawn a ticket
        networks["winner_pot"] = math.nan
    store.save_table("plots/sparse_networks.csv", networks)
    store.save_table("plots/sparse_accuracy.csv", curves)
    store.save_table("plots/sparse_coefficients.csv", pd.DataFrame(coefficients))
    store.save_table("plots/sparse_theta.csv", pd.DataFrame(thetas))
    store.save_table("plots/sparse_transfer.csv", pd.DataFrame(transferred(trained, fgms, few)))
    store.save_metrics("metrics/sparse.json", metrics(networks, curves, p.tau))


def drawn(p: Sparse, start: str) -> int:
    """The number of neurons before training; of those from random weights, most have died since."""
    return p.random.neurons if start == "random" else p.pure.copies * p.words


def attacked(net: Symmetric, few: Setting, p: Sparse) -> tuple[dict[str, Tensor], list[dict[str, object]]]:
    """The perturbations within `tau`, and the accuracy under attack for each of `taus`."""
    rows: list[dict[str, object]] = [{"attack": "none", "tau": 0.0, "accuracy": few.accuracy(net)}]
    at_tau = {}
    for tau in p.taus:
        deltas = few.perturbed(net, "l2", tau, softened_pgd.soft(net))
        rows += [{"attack": name, "tau": tau, "accuracy": few.accuracy(net, d)} for name, d in deltas.items()]
        at_tau = deltas if tau == p.tau else at_tau
    return at_tau, rows


def proved(net: Symmetric, few: Setting, taus: list[float]) -> Iterator[dict[str, object]]:
    """The share of samples that provably no perturbation flips (Theorem 5.3(b)): a lower bound on robust accuracy."""
    if len(few.x) == 0:
        return
    x = (few.y[:, None] * few.x).cpu().double()  # f is odd: every label is 1 now
    net, ones = net.to(torch.device("cpu")), torch.ones_like(x[:, 0])
    sure = certain(net, x, ones, taus)
    if len(net.w) <= NARROW * net.w.shape[1]:  # else it takes minutes
        sure |= certified(from_below(net), x, ones).radius[:, None] > torch.tensor(taus)
    for tau, share in zip(taus, sure.double().mean(0).tolist(), strict=True):
        yield {"attack": "certified", "tau": tau, "accuracy": share}


def network(net: Symmetric, name: str, nets: TrainedPhases, setting: Setting, p: Sparse) -> dict[str, float]:
    """All measurements of the weights: the mixture, and the sums of Theorems 5.1(a) and 5.3(c)."""
    neurons = decompose(net.w, setting.dictionary, setting.w_star)
    found = mixture(neurons, net.w, setting.dictionary, setting.w_star)
    found |= {"accuracy": setting.accuracy(net), "predicted": setting.world.words_on() / p.words}
    found |= {"correlated": correlated(net.w)}
    if not name.startswith("direct"):
        found |= {"moved": moved(net.w, nets.start), "local": local(nets.nets["clean"].w, net.w)}
        found |= {"turned": turned(nets.nets["clean"].w, net.w)}
        # The lottery: how did the final word of a neuron that is pure after clean training rank at the start?
        lucky = decompose(nets.nets["clean"].w, setting.dictionary, setting.w_star)
        before = decompose(nets.start, setting.dictionary, setting.w_star).coefficients[lucky.pure]
        word = lucky.word[lucky.pure]
        rank = (before > before.gather(1, word[:, None])).sum(1)
        found |= {"winner": float((rank == 0).double().mean()), "winner3": float((rank < 3).double().mean())}
        found |= {"winner_unsigned": float((before.abs().argmax(1) == word).double().mean())}
        found |= {"same_word": float((neurons.word[lucky.pure] == word).double().mean())}
        found |= {"rest": float(neurons.rest[lucky.pure].square().mean().sqrt())}
    return found


def lottery(nets: TrainedPhases, setting: Setting, p: Sparse, seed: int) -> dict[str, float]:
    """Count Lemma B.2's sets, and how many neurons keep the words that these promise them."""
    basis, b0 = (setting.dictionary, setting.w_star), schedules.first_bias(p)
    every = tickets(schedules.begin(p, setting.world, "random", seed, setting.x.device).w, *basis, b0)
    after, alive = decompose(nets.nets["clean"].w, *basis), tickets(nets.start, *basis, b0)
    kept = alive.sure.gather(1, after.word[:, None])[:, 0] & after.pure
    found = {"winner_pot": float(alive.pot.gather(1, after.word[:, None])[after.pure].double().mean())}
    found |= {"sure_kept": float(kept.sum()) / max(1, int(every.sure.sum()))}
    for name, lucky in (("pot", every.pot), ("sure", every.sure)):
        a_word = lucky.sum(0).double()
        found |= {name: float(a_word.mean()), f"{name}_least": float(a_word.min())}
    return found


def directions(deltas: dict[str, Tensor], setting: Setting) -> dict[str, float]:
    """How dense the perturbations are, and how close FGM's is to the direction M w*."""
    towards = -setting.y[: len(deltas["fgm"]), None] * deltas["fgm"]
    cosine = towards @ setting.dense / towards.norm(dim=1).clamp(min=1e-30)
    found = {"fgm_dense_cosine": float(cosine.median())}
    for name in ("fgm", "pgd"):
        found |= {f"{name}_{key}": value for key, value in density(deltas[name], setting.dictionary).items()}
    return found


def histogram(net: Symmetric, setting: Setting) -> Iterator[dict[str, float]]:
    """A histogram of the coefficients of pure neurons, relative to each neuron's largest one."""
    neurons = decompose(net.w, setting.dictionary, setting.w_star)
    pure = neurons.pure
    if not bool(pure.any()):
        return
    relative = (neurons.rest[pure] / neurons.alpha[pure][:, None]).flatten().cpu().numpy()
    counts, edges = np.histogram(relative.clip(-0.2, 0.2), BINS, range=(-0.2, 0.2))
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        yield {"low": float(low), "high": float(high), "share": count / relative.size}


def alike(nets: TrainedPhases, start: str, seed: int) -> Iterator[dict[str, object]]:
    """FP Figure 2 on this model: histograms of θ between initial, clean and robust neurons, and between neurons."""
    clean, robust = nets.nets["clean"].w, nets.nets["robust"].w
    kinds = {
        "start, clean": theta(nets.start, clean),
        "start, robust": theta(nets.start, robust),
        "clean, robust": theta(clean, robust),
        "different neurons": theta_pairs(clean),
    }
    for kind, values in kinds.items():
        counts, edges = np.histogram(values.cpu().numpy(), BINS // 2, range=(0, 1))
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
            about = {"start": start, "seed": seed, "of": kind, "median": float(values.median())}
            yield about | {"low": float(low), "high": float(high), "share": count / len(values)}


def transferred(
    trained: dict[tuple[str, int], TrainedPhases], fgms: dict[tuple[str, int, str], Tensor], few: Setting
) -> Iterator[dict[str, object]]:
    """The accuracy of every clean network under the FGM perturbations of each of them."""
    for start, seed in trained:
        for other, on in trained.items():
            value = few.accuracy(on.nets["clean"], fgms[start, seed, "clean"])
            yield {"of": f"{start} {seed}", "on": f"{other[0]} {other[1]}", "accuracy": value}


def metrics(networks: pd.DataFrame, curves: pd.DataFrame, tau: float) -> dict[str, float]:
    """A few of the measurements, as means over seeds."""
    found = {}
    at = curves[curves["tau"].isin([0.0, tau])].groupby(["start", "network", "attack"])["accuracy"].mean()
    ratio = networks.groupby(["start", "network"])["ratio"].mean()
    for start in networks["start"].unique():
        for name in ("clean", "robust"):
            for attack in ("none", "dense", "pgd", "certified"):
                if (start, name, attack) in at.index:
                    found[f"sparse.{start}.{name}.{attack}"] = float(at[start, name, attack])
            found[f"sparse.{start}.{name}.mixture"] = float(ratio[start, name])
    return found


if __name__ == "__main__":
    run(main, SparseParams)
