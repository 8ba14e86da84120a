"""What adversarial training changes (SB Appendix E.2): reliance on S, the margin, robustness beside that of f*."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pandas as pd
import torch
from torch import Tensor

from brittle.attacks.minimum_norm_pgd import minimal
from brittle.core import device, store
from brittle.core.progress import tracked
from brittle.core.stage import run
from brittle.nets.fcn_as_two_layer import two_layer
from brittle.probes.certify import certified
from brittle.probes.f_star import smallest
from brittle.slabs import draws, groups, measures
from brittle.slabs.adversarial import hardened
from brittle.slabs.adversarial_params import AdversarialParams
from brittle.slabs.draws import Sample
from brittle.slabs.groups import Group, TrainedGroup

MODELS = "models/adversarial.safetensors"
STEPS, HALVINGS = 40, 8  # of the attack
LINE = 400  # points along S
CERTIFIED = 100  # samples whose radius is bounded from below, too, where the network has one hidden layer of ReLUs


def main(params: AdversarialParams) -> None:
    p, d = params.adversarial, params.slabs.d
    permutations, b = params.slabs.permutations, params.slabs.b
    where = device.pick(params.device)
    sample = draws.load_sample("adversarial", p.world, d, where)
    x, y = sample.x_test[: p.attacked], sample.y_test[: p.attacked]
    u = (x @ sample.q.T).cpu().double().numpy()
    # f* is the network to compare with: no perturbation smaller than this moves it across zero (claim S13).
    best = torch.from_numpy(smallest(draws.world(params.slabs, p.world, d), u, y.cpu().double().numpy()).lower)
    reach = {"l2": 1.0, "linf": d**0.5}  # ‖δ‖₂ ≤ reach · ‖δ‖ in d dimensions
    rows, path = [], []
    for group in tracked(hardened(params, sample), "probing"):
        trained = groups.load_groups(MODELS, [group.name], s=len(group.rows))[group.name]
        path += [*along(params, group, trained, sample)]
        for i, about in enumerate(group.rows):
            f = measures.network(group.family, trained, i, where)
            versions = measures.drawn(f, sample, permutations, about["seed"])
            values = trained.row(i) | measures.row(versions, sample.y_test)
            values |= {"margin_s": float(along_s(f, x, y, sample.q_s, 2 * b).quantile(0.01))}
            for norm in ("l2", "linf"):
                sizes = minimal(f, x, y, norm, 2 * b, STEPS, HALVINGS).size
                values |= {f"{norm}_median": float(sizes.median())}
                for eps in getattr(p, norm):
                    values |= {f"{norm}_{eps:g}": float((sizes > eps).double().mean())}
                    values |= {f"{norm}_{eps:g}_f_star": float((best >= eps * reach[norm]).double().mean())}
            net = two_layer(group.family, torch.from_numpy(trained.theta[i : i + 1]).double())
            if net is not None:
                radius = certified(net, *(tensor[:CERTIFIED].cpu().double() for tensor in (x, y))).radius
                values |= {f"l2_{eps:g}_certified": float((radius > eps).double().mean()) for eps in p.l2}
            rows.append(about | values)
    store.save_table("plots/adversarial.csv", pd.DataFrame(rows))
    store.save_table("plots/adversarial_path.csv", pd.DataFrame(path))


def along(
    params: AdversarialParams, group: Group, trained: TrainedGroup, sample: Sample
) -> Iterator[dict[str, object]]:
    """When Sᶜ comes in: a row for each network at each of the epochs `along`, and at its last."""
    updates = len(sample.x) // min(params.slabs.training.batch, len(sample.x))  # an epoch
    seen = {(i, trained.row(i)["epochs"]): trained for i in range(len(group.rows))}
    for before in groups.load_along(MODELS, group, trained):
        seen |= {(i, before.row(i)["epochs"]): before for i in range(len(group.rows))}
    for (i, epochs), then in sorted(seen.items(), key=lambda item: item[0]):
        f = measures.network(group.family, then, i, sample.x.device)
        versions = measures.drawn(f, sample, params.slabs.permutations, group.rows[i]["seed"])
        areas = {f"{name}_auc_roc": versions[name].mean.auc_roc for name in ("standard", "s", "rest")}
        yield group.rows[i] | {"epochs": epochs, "updates": epochs * updates} | areas


@torch.no_grad()
def along_s(f: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, q_s: Tensor, far: float) -> Tensor:
    """The distance from each sample to a change of label along S alone; `far` where there is none within it."""
    distance = torch.full_like(y, far)  # (n, d), (n,), (1, d) -> (n,)
    for size in torch.linspace(far, 0, LINE, device=x.device):
        flipped = torch.zeros_like(y, dtype=torch.bool)
        for way in (-1.0, 1.0):
            flipped |= y * f(x + way * size * q_s) <= 0
        distance = torch.where(flipped, size, distance)
    return distance


if __name__ == "__main__":
    run(main, AdversarialParams)
