"""What has been proposed against brittleness, each remedy a few lines on one training loop.

A remedy is given a Task and returns a trained network. `nothing` is plain SGD; the others change one thing about it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, logsigmoid
from torch.nn.functional import dropout as drop

from brittle.core.errors import BadInput
from brittle.core.rng import rng
from brittle.nets.modules import WIDTH, Average, PowerReluModule
from brittle.nets.weights import flat, restore
from brittle.plugins import remedy
from brittle.train.muon import Muon
from brittle.worlds.common import World

Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]
# Network, samples, labels, and how far the training is, from 0 to 1 -> the samples to train on instead
Perturb = Callable[[nn.Module, Tensor, Tensor, float], Tensor]


@dataclass(frozen=True)
class RemedyPlan:
    """The settings of plain SGD."""

    updates: int  # at most
    batch: int
    lr: float
    momentum: float
    target: float  # done when the loss, averaged over a pass, is below this


def logistic(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """The mean of ln(1 + exp(-y f(x)))."""
    return -logsigmoid(y * net(x)).mean()


@dataclass
class Task:
    """A world to learn, a network to learn it with, and the loop that does it."""

    world: World
    build: Callable[[int], nn.Module]  # a fresh network from a seed
    seed: int
    plan: RemedyPlan
    strength: Mapping[str, float]  # of the built-in remedies, from params.yaml
    attack: Callable[[nn.Module, Tensor, Tensor, float], Tensor]  # -> samples within a radius
    # The number of a `fit`, from 0 -> the checkpoint of its state, with `load`, `due` and `save`
    keeper: Callable[[int], Any] | None = None
    spent: int = field(default=0, init=False)  # samples that went through its networks: the cost of training
    fits: int = field(default=0, init=False)  # so far

    @property
    def x(self) -> Tensor:
        return self.world.x

    @property
    def y(self) -> Tensor:
        return self.world.y

    def net(self, member: int = 0, build: Callable[[int], nn.Module] | None = None) -> nn.Module:
        """A fresh network; a different one for every member of an ensemble."""
        net = (build or self.build)(1000 * self.seed + member).to(self.x.device)
        net.register_forward_hook(self._count)
        return net

    def _count(self, net: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        self.spent += len(inputs[0])

    def fit(
        self,
        net: nn.Module,
        loss: Loss = logistic,
        *,
        perturb: Perturb | None = None,
        sharpness: float = 0.0,
        weight_decay: float = 0.0,
        muon: float = 0.0,
        updates: int | None = None,
        target: float | None = None,
    ) -> nn.Module:
        """Train in place. The last fifth of the updates is at a fifth of the learning rate.

        sharpness: SAM's ρ. muon: the learning rate, in place of SGD's. target 0: all updates, however small the loss.
        """
        plan, n = self.plan, len(self.x)
        total = plan.updates if updates is None else updates
        target = plan.target if target is None else target
        batch = min(plan.batch, n)
        learning = [p for p in net.parameters() if p.requires_grad]
        lr = muon or plan.lr
        optimiser = torch.optim.SGD(learning, lr, plan.momentum, weight_decay=weight_decay)
        if muon:
            optimiser = Muon(learning, lr)
        draws = rng(self.seed, "remedy")
        keeper, self.fits = self.keeper and self.keeper(self.fits), self.fits + 1
        passes, net = 0, net.train()
        with torch.random.fork_rng():
            torch.manual_seed(int(draws.integers(2**62)))
            done, losses = self._resume(keeper, net, optimiser)
            while done < total:
                order = torch.from_numpy(draws.permutation(n)[: n // batch * batch]).to(self.x.device).view(-1, batch)
                passes += 1
                if passes * len(order) <= done:
                    continue  # a pass completed before training was stopped
                for rows in order[len(losses) :][: total - done]:
                    if keeper and keeper.due():
                        keeper.save(self._state(net, optimiser, done, losses))
                    for group in optimiser.param_groups:
                        group["lr"] = lr * (0.2 if done >= 0.8 * total else 1.0)
                    x, y = self.x[rows], self.y[rows]
                    if perturb:
                        x = perturb(net, x, y, done / total)
                    losses.append(_step(optimiser, lambda x=x, y=y: loss(net, x, y), learning, sharpness))
                    done += 1
                mean = float(torch.stack(losses).mean())
                if not np.isfinite(mean):
                    raise BadInput(f"the loss is no longer finite after {done} updates; use a lower cross.training.lr")
                if mean < target:
                    break
                losses = []
            if keeper:
                keeper.save(self._state(net, optimiser, total, []))
        return net.eval()

    def _state(
        self, net: nn.Module, optimiser: torch.optim.Optimizer, done: int, losses: list[Tensor]
    ) -> dict[str, np.ndarray]:
        """Everything that the rest of the training depends on. losses: those of the current pass."""
        buffers = [optimiser.state[p].get("momentum_buffer") for p in optimiser.param_groups[0]["params"]]
        state = {f"momenta.{i}": buffer.cpu().numpy() for i, buffer in enumerate(buffers) if buffer is not None}
        state |= {f"weights.{name}": array for name, array in flat(net).items()}
        state |= {"losses": np.array([float(loss) for loss in losses], dtype=np.float32)}
        random = (torch.cuda if self.x.is_cuda else torch).get_rng_state()  # dropout's
        return state | {"numbers": np.array([done, self.spent]), "random": random.numpy()}

    def _resume(self, keeper: Any, net: nn.Module, optimiser: torch.optim.Optimizer) -> tuple[int, list[Tensor]]:
        """Restore the saved state; return the number of updates and the losses of the current pass."""
        saved = keeper.load(("losses", "numbers", "random")) if keeper else None
        if saved is None:
            return 0, []
        restore(net, {name[len("weights.") :]: array for name, array in saved.items() if name.startswith("weights.")})
        for i, p in enumerate(optimiser.param_groups[0]["params"]):
            if f"momenta.{i}" in saved:
                optimiser.state[p]["momentum_buffer"] = torch.tensor(saved[f"momenta.{i}"], device=p.device)
        (torch.cuda if self.x.is_cuda else torch).set_rng_state(torch.tensor(saved["random"]))
        done, self.spent = saved["numbers"].tolist()
        return done, list(torch.tensor(saved["losses"], device=self.x.device))


def _step(
    optimiser: torch.optim.Optimizer, loss: Callable[[], Tensor], learning: list[Tensor], sharpness: float
) -> Tensor:
    """One update; with ρ > 0 by the gradient at the worst weights nearby (SAM, Foret et al. 2021)."""
    optimiser.zero_grad(set_to_none=True)
    value = loss()
    value.backward()
    if sharpness:
        used = [p for p in learning if p.grad is not None]
        with torch.no_grad():
            size = torch.stack([p.grad.norm() for p in used]).norm().clamp(min=1e-12)
            away = [sharpness / size * p.grad for p in used]
            for p, move in zip(used, away, strict=True):
                p += move
            optimiser.zero_grad(set_to_none=True)
        loss().backward()
        with torch.no_grad():
            for p, move in zip(used, away, strict=True):
                p -= move
    optimiser.step()
    return value.detach()


@remedy
def nothing(task: Task) -> nn.Module:
    """Plain SGD."""
    return task.fit(task.net())


@remedy
def adversarial(task: Task) -> nn.Module:
    """Madry et al. 2018, from the weights of plain SGD (as FP does), the radius growing in the first half."""
    net = nothing(task)

    def perturb(net: nn.Module, x: Tensor, y: Tensor, done: float) -> Tensor:
        return task.attack(net, x, y, task.world.radius * min(1.0, 2 * done))

    return task.fit(net, perturb=perturb, updates=int(task.strength["adversarial"]), target=0.0)


@remedy
def ensemble(task: Task) -> nn.Module:
    """The mean of several networks."""
    return Average([task.fit(task.net(member)) for member in range(int(task.strength["ensemble"]))])


@remedy
def weight_decay(task: Task) -> nn.Module:
    return task.fit(task.net(), weight_decay=task.strength["weight_decay"])


@remedy
def dropout(task: Task) -> nn.Module:
    """Dropout of the first layer's neurons (Srivastava et al. 2014)."""
    net = task.net()
    first = next((m for m in net.modules() if isinstance(m, nn.Linear | nn.Conv2d)), None)
    if first is None:
        raise BadInput(f"dropout: the network {type(net).__name__} has no linear or convolutional layer to drop from")
    hook = first.register_forward_hook(lambda layer, x, out: drop(out, task.strength["dropout"], layer.training))
    task.fit(net)
    hook.remove()
    return net


@remedy
def sam(task: Task) -> nn.Module:
    """Sharpness-aware minimisation (Foret et al. 2021)."""
    return task.fit(task.net(), sharpness=task.strength["sam"])


@remedy
def muon(task: Task) -> nn.Module:
    """Steps whose singular values are all alike (Jordan et al. 2024), so that no feature is learnt first."""
    return task.fit(task.net(), muon=task.strength["muon"])


@remedy
def power_relu(task: Task) -> nn.Module:
    """Cubes of ReLU (Min & Vidal 2024): a two-layer network of its own in place of the world's.

    Its strength is the norm that samples are divided by, relative to their mean norm.
    """
    norm = task.strength["power_relu"] * float(task.x.norm(dim=1).mean())
    d = task.x.shape[1]
    return task.fit(task.net(build=lambda seed: PowerReluModule(d, WIDTH, 3.0, rng(seed, "power_relu"), norm)))


@remedy
def spectral_decoupling(task: Task) -> nn.Module:
    """A penalty on the scores instead of the weights (Pezeshki et al. 2021), against gradient starvation."""

    def loss(net: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        scores = net(x)
        return -logsigmoid(y * scores).mean() + task.strength["spectral_decoupling"] / 2 * scores.square().mean()

    return task.fit(task.net(), loss)


@remedy
def diverse(task: Task) -> nn.Module:
    """Two networks whose input gradients are to be orthogonal (Teney et al. 2022), averaged."""
    pair = Average([task.net(0), task.net(1)])

    def loss(pair: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        # Gradients of gradients are expensive: a quarter of the samples shows how similar the two are.
        some = x[: max(1, len(x) // 4)].detach().requires_grad_()
        first, second = (torch.autograd.grad(member(some).sum(), some, create_graph=True)[0] for member in pair.members)
        alike = cosine_similarity(first, second).square().mean()
        return -sum(logsigmoid(y * member(x)).mean() for member in pair.members) / 2 + task.strength["diverse"] * alike

    return task.fit(pair, loss)


@remedy
def noised(task: Task) -> nn.Module:
    """Give a share of the samples the S of another sample: a remedy for those who know what S is."""
    if task.world.simple is None:
        return nothing(task)

    def perturb(net: nn.Module, x: Tensor, y: Tensor, done: float) -> Tensor:
        some, rest = x.tensor_split([int(task.strength["noised"] * len(x))])
        return torch.cat([some + task.world.on_simple(some.roll(1, 0) - some), rest])

    return task.fit(task.net(), perturb=perturb)
