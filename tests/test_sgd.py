"""The mini-batch loop against torch.optim, each network against itself alone, and SB's closed forms of the gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from brittle.core.rng import rng
from brittle.nets.cnn import Cnn
from brittle.nets.family import Family, Gradient, Loss
from brittle.nets.fcn import Fcn
from brittle.nets.fixed_output import FixedOutput
from brittle.probes.randomised import randomised
from brittle.train import sgd
from brittle.train.sgd import LOSSES, Member, SgdPlan, SgdState, hinge, initial, logistic, train
from brittle.worlds import lsn, slabs

SIX = 6.0  # standard errors; beyond them lies 2e-9 of a Gaussian
D, N, BATCH = 4, 52, 8  # six updates an epoch, four samples left over
NET = Fcn(D, 6, 2)
MEMBERS = (
    Member(seed=0, data=0, lr=0.1, momentum=0.0, weight_decay=0.0),
    Member(seed=1, data=1, lr=0.03, momentum=0.9, weight_decay=0.01),
    Member(seed=2, data=0, lr=0.05, momentum=0.5, weight_decay=0.03),
)
TORCH: dict[str, Callable[[Tensor, Member], torch.optim.Optimizer]] = {
    "sgd": lambda p, m: torch.optim.SGD([p], lr=m.lr, momentum=m.momentum, weight_decay=m.weight_decay),
    "adam": lambda p, m: torch.optim.Adam([p], lr=m.lr, weight_decay=m.weight_decay),
    "rmsprop": lambda p, m: torch.optim.RMSprop([p], lr=m.lr, weight_decay=m.weight_decay),
}


def problem(n: int = N, d: int = D, noise: float = 0.5) -> tuple[Tensor, Tensor]:
    """Two datasets; the label is the sign of the first coordinate, but for noise."""  # (2, n, d), (2, n)
    x, u = rng(0, "x").standard_normal((2, n, d)), rng(0, "noise").standard_normal((2, n))
    return torch.from_numpy(x), torch.from_numpy(np.sign(x[..., 0] + noise * u))


def run(
    plan: SgdPlan,
    members: Sequence[Member] = MEMBERS,
    net: Family = NET,
    data: tuple[Tensor, Tensor] | None = None,
    state: SgdState | None = None,
    **options: object,
) -> SgdState:
    """`train` in float64, for comparisons without rounding."""
    x, y = data or problem()
    start = state or SgdState.start(initial(net, members).double())
    torch.set_default_dtype(torch.float64)
    try:
        return train(net, members, x, y, plan, state=start, **options)
    finally:
        torch.set_default_dtype(torch.float32)


def same_bytes(a: SgdState, b: SgdState) -> bool:
    return all(np.array_equal(p, b.arrays()[name], equal_nan=True) for name, p in a.arrays().items())


def batches(member: Member, epoch: int, n: int = N, batch: int = BATCH) -> np.ndarray:
    """The order in which a network sees its samples, from its stream."""  # (updates, batch)
    return rng(member.seed, f"sgd epoch {epoch}").permutation(n)[: n // batch * batch].reshape(-1, batch)


def each_epoch(plan: SgdPlan, **options: object) -> tuple[SgdState, list[Tensor]]:
    """The final state, and the weights before the first epoch and after each."""
    thetas: dict[int, Tensor] = {}
    state = run(plan, watch=lambda state: thetas.setdefault(len(state.losses), state.theta.clone()), **options)
    return state, list(thetas.values())


# Losses


def epochs_taken(state: SgdState) -> Tensor:
    """How many epochs each network trained for."""  # (s,)
    return (~state.losses.isnan()).sum(0)


def test_logistic_loss_is_torchs_cross_entropy() -> None:
    f = torch.linspace(-200, 200, 81, dtype=torch.float64, requires_grad=True)
    for y in (1.0, -1.0):
        expected = binary_cross_entropy_with_logits(f, torch.full_like(f, (y + 1) / 2), reduction="none")
        (slope,) = torch.autograd.grad(expected.sum(), f)
        value, derivative = logistic(y * f.detach())
        torch.testing.assert_close(value, expected.detach(), rtol=1e-8, atol=1e-9)
        torch.testing.assert_close(y * derivative, slope, rtol=1e-12, atol=1e-15)


def test_hinge_loss_is_zero_from_a_margin_of_one() -> None:
    value, slope = hinge(torch.tensor([-2.0, 0.0, 0.75, 1.0, 3.0]))
    assert value.tolist() == [3.0, 1.0, 0.25, 0.0, 0.0]
    assert slope.tolist() == [-1.0, -1.0, -1.0, 0.0, 0.0]


@pytest.mark.parametrize("loss", LOSSES)
def test_slope_of_a_loss_is_its_derivative(loss: str) -> None:
    q = torch.linspace(-3, 3, 30, dtype=torch.float64, requires_grad=True)  # not at the hinge
    value, slope = LOSSES[loss](q)
    (expected,) = torch.autograd.grad(value.sum(), q)
    torch.testing.assert_close(slope.detach(), expected, rtol=1e-12, atol=0)


# The loop


def by_torch(net: Family, member: Member, plan: SgdPlan) -> tuple[Tensor, list[float]]:
    """The same training by torch.optim and autograd: the weights and the mean loss of each epoch."""
    x, y = (each[member.data] for each in problem())
    theta = initial(net, [member]).double().requires_grad_()
    optimiser = TORCH[plan.optimiser](theta, member)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, plan.decay_every, plan.decay)
    losses = []
    for epoch in range(plan.epochs):
        values = []
        for rows in batches(member, epoch):
            f = net(theta, x[rows][None])[0]
            loss = {
                "logistic": lambda f, rows: binary_cross_entropy_with_logits(f, (y[rows] + 1) / 2),
                "hinge": lambda f, rows: (1 - y[rows] * f).clamp(min=0).mean(),
                "exponential": lambda f, rows: (-y[rows] * f).exp().mean(),
            }[plan.loss](f, rows)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            values.append(loss.item())
        losses.append(float(np.mean(values)))
        schedule.step()
    return theta.detach()[0], losses


@pytest.mark.parametrize("net", [NET, Cnn(D, 2, 3, 1)], ids=["fcn", "cnn"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("optimiser", TORCH)
def test_updates_are_those_of_torch_optim_on_the_same_batches(optimiser: str, loss: str, net: Family) -> None:
    plan = SgdPlan(epochs=4, batch=BATCH, optimiser=optimiser, loss=loss)
    state = run(plan, net=net)
    for i, member in enumerate(MEMBERS):
        theta, losses = by_torch(net, member, plan)
        torch.testing.assert_close(state.theta[i], theta, rtol=1e-6, atol=1e-8)
        assert state.losses[:, i].tolist() == pytest.approx(losses, rel=1e-5)


def test_learning_rate_decays_every_so_many_epochs() -> None:
    plan = SgdPlan(epochs=5, batch=BATCH, decay=0.25, decay_every=2)
    state = run(plan)
    for i, member in enumerate(MEMBERS):
        torch.testing.assert_close(state.theta[i], by_torch(NET, member, plan)[0], rtol=1e-6, atol=1e-8)
    assert not torch.allclose(state.theta, run(replace(plan, decay_every=3)).theta)


def test_a_batch_is_no_larger_than_the_data() -> None:
    assert same_bytes(run(SgdPlan(epochs=2, batch=256)), run(SgdPlan(epochs=2, batch=N)))


@pytest.mark.parametrize("optimiser", TORCH)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_networks_side_by_side_train_as_each_alone(optimiser: str, dropout: float) -> None:
    net, plan = replace(NET, dropout=dropout), SgdPlan(epochs=4, batch=BATCH, optimiser=optimiser)
    together = run(plan, net=net)
    for i, member in enumerate(MEMBERS):
        alone = run(plan, [member], net)
        torch.testing.assert_close(together.theta[i], alone.theta[0], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(together.losses[:, i], alone.losses[:, 0], rtol=1e-5, atol=1e-7)


def test_networks_train_on_when_others_have_stopped() -> None:
    members = [replace(MEMBERS[1], lr=0.1), replace(MEMBERS[0], lr=0.0), replace(MEMBERS[2], lr=0.03)]
    net, plan = replace(NET, dropout=0.25), SgdPlan(epochs=10, batch=BATCH, optimiser="adam", target=0.45)
    together = run(plan, members, net)
    taken = epochs_taken(together).tolist()
    assert taken[1] == 10  # does not learn
    assert len(set(taken)) == 3  # stop one after the other
    for i, member in enumerate(members):
        alone = run(plan, [member], net)
        assert epochs_taken(alone).tolist() == [taken[i]]
        torch.testing.assert_close(together.theta[i], alone.theta[0], rtol=1e-6, atol=1e-8)


def test_the_same_call_gives_the_same_bytes() -> None:
    x, y = (each.float() for each in problem())
    net, plan = Fcn(D, 6, 2, dropout=0.5), SgdPlan(epochs=2, batch=BATCH)
    first, again, other = (
        train(net, [replace(member, seed=member.seed + shift) for member in MEMBERS], x, y, plan) for shift in (0, 0, 7)
    )
    assert same_bytes(first, again)
    assert first.theta.dtype == torch.float32
    assert not (first.theta == other.theta).any()


# Dropout


class Spy(Fcn):
    """An FCN that tells what its gradient is asked for."""

    def gradient(self, theta: Tensor, grad: Tensor, loss: Loss) -> Gradient:
        inner = super().gradient(theta, grad, loss)

        def gradient(x: Tensor, y: Tensor, keep: Sequence[Tensor]) -> Tensor:
            SEEN.append(keep)
            return inner(x, y, keep)

        return gradient


SEEN: list[Sequence[Tensor]] = []


def test_dropout_keeps_a_share_of_every_layer_scaled_to_the_same_mean() -> None:
    SEEN.clear()
    run(SgdPlan(epochs=2, batch=26), MEMBERS, Spy(D, 200, 2, dropout=0.2))
    assert len(SEEN) == 4  # updates
    masks = torch.stack([torch.stack(tuple(keep)) for keep in SEEN])  # (updates, layers, networks, batch, width)
    assert masks.shape == (4, 2, 3, 26, 200)
    assert masks.unique().tolist() == pytest.approx([0.0, 1.25])
    each = masks.reshape(24, -1)
    kept = (each > 0).double().mean(1)
    assert (kept - 0.8).abs().max() < SIX * math.sqrt(0.8 * 0.2 / each.shape[1])
    agree = [float(((each[i] > 0) == (each[j] > 0)).double().mean()) for i in range(24) for j in range(i)]
    independent = 0.8**2 + 0.2**2  # no mask is another's: of update, layer or network
    assert max(agree) < independent + SIX * math.sqrt(independent * (1 - independent) / each.shape[1])


def test_no_dropout_asks_for_no_masks() -> None:
    SEEN.clear()
    run(SgdPlan(epochs=1, batch=BATCH), MEMBERS, Spy(D, 6, 2))
    assert SEEN == [[]] * 6


# When to stop, what to keep


def test_a_network_at_the_target_loss_is_left_as_it_is() -> None:
    members = [replace(MEMBERS[0], lr=0.5), replace(MEMBERS[1], lr=1e-4)]
    plan = SgdPlan(epochs=12, batch=BATCH, target=0.5)
    state, thetas = each_epoch(plan, members=members)
    taken = epochs_taken(state).tolist()
    assert 1 < taken[0] < taken[1] == 12
    assert state.done.tolist() == [True, False]
    assert (state.losses[: taken[0] - 1, 0] >= 0.5).all()
    assert state.losses[taken[0] - 1, 0] < 0.5
    assert state.losses[taken[0] :, 0].isnan().all()
    assert all(torch.equal(theta[0], thetas[taken[0]][0]) for theta in thetas[taken[0] :])
    assert not torch.equal(thetas[taken[0] - 1][0], thetas[taken[0]][0])
    assert all(not torch.equal(thetas[e][1], thetas[e + 1][1]) for e in range(12))


def test_training_ends_with_the_last_network() -> None:
    state = run(SgdPlan(epochs=50, batch=BATCH, target=0.6), [replace(m, lr=0.5, momentum=0.0) for m in MEMBERS])
    assert state.done.all()
    assert len(state.losses) == epochs_taken(state).max() < 50


def accuracies(thetas: list[Tensor], members: Sequence[Member], data: tuple[Tensor, Tensor]) -> Tensor:
    """Of the weights after each epoch."""  # (epochs, s)
    x, y = (torch.stack([each[member.data] for member in members]) for each in data)
    return torch.stack([(NET(theta, x) * y > 0).double().mean(1) for theta in thetas[1:]])


def validation() -> tuple[Tensor, Tensor]:
    x, y = problem(1000)
    return x[:, N:], y[:, N:]


def test_best_weights_are_those_of_the_epoch_that_did_best_on_the_validation_set() -> None:
    slow = Member(seed=3, lr=1e-9)  # moves, but not across any sample
    members = [*(replace(member, lr=0.5) for member in MEMBERS), slow]
    state, thetas = each_epoch(SgdPlan(epochs=15, batch=BATCH), members=members, validation=validation())
    found = accuracies(thetas, members, validation())
    best = found.numpy().argmax(0)  # the first of equals
    assert (best < 14).all()
    assert (best[:-1] > 0).any()
    assert found[:, -1].unique().numel() == 1
    for i, epoch in enumerate(best.tolist()):
        assert torch.equal(state.best[i], thetas[epoch + 1][i])
        assert float(state.best_accuracy[i]) == pytest.approx(float(found[epoch, i]))


def test_without_a_validation_set_the_last_weights_are_the_best() -> None:
    state = run(SgdPlan(epochs=3, batch=BATCH))
    assert torch.equal(state.best, state.theta)
    assert state.best_accuracy.tolist() == [-1] * 3


def test_a_network_that_does_well_enough_on_the_validation_set_is_done() -> None:
    members = [replace(MEMBERS[1], lr=0.5, momentum=0.0), replace(MEMBERS[0], lr=0.0), replace(MEMBERS[2], lr=0.5)]
    state, thetas = each_epoch(SgdPlan(epochs=20, batch=BATCH, enough=0.75), members=members, validation=validation())
    found = accuracies(thetas, members, validation())
    taken = epochs_taken(state).tolist()
    assert taken[1] == 20
    assert not state.done[1]
    assert 1 < taken[0] < 20
    for i in (0, 2):
        assert found[taken[i] - 1, i] >= 0.75
        assert (found[: taken[i] - 1, i] < 0.75).all()
        assert torch.equal(thetas[-1][i], thetas[taken[i]][i])


def test_a_network_that_diverges_ends_and_disturbs_no_other() -> None:
    members = [MEMBERS[0], replace(MEMBERS[1], lr=1e30), MEMBERS[2]]
    plan = SgdPlan(epochs=4, batch=BATCH)
    together = run(plan, members)
    assert together.done.tolist() == [False, True, False]
    assert together.losses[-1].isnan().tolist() == [False, True, False]
    for i in (0, 2):
        torch.testing.assert_close(together.theta[i], run(plan, [members[i]]).theta[0], rtol=1e-7, atol=1e-9)


# Interruption


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("optimiser", TORCH)
def test_training_goes_on_as_if_it_had_never_stopped(optimiser: str, dropout: float) -> None:
    net = replace(NET, dropout=dropout)
    plan = SgdPlan(epochs=4, batch=BATCH, optimiser=optimiser, target=0.35, decay=0.5, decay_every=3)
    options = {"net": net, "validation": validation()}
    whole = run(plan, **options)
    saved = run(replace(plan, epochs=2), **options).arrays()
    forgetful = saved | {"memory1": 0 * saved["memory1"], "memory2": 0 * saved["memory2"]}
    resumed, other = (
        run(plan, **options, state=SgdState.restore(deepcopy(arrays), torch.device("cpu")))
        for arrays in (saved, forgetful)
    )
    assert len(resumed.losses) == 4
    assert same_bytes(resumed, whole)
    assert not torch.equal(other.theta, whole.theta)  # the optimiser's memory matters


def test_watch_sees_the_state_between_epochs() -> None:
    seen: list[dict[str, np.ndarray]] = []
    state = run(SgdPlan(epochs=3, batch=BATCH), watch=lambda state: seen.append(deepcopy(state.arrays())))
    assert [len(arrays["losses"]) for arrays in seen] == [0, 1, 2, 3]
    assert np.array_equal(seen[0]["theta"], initial(NET, MEMBERS).double().numpy())
    assert np.array_equal(seen[-1]["theta"], state.theta.numpy())


# Adversarial training


def test_perturb_is_given_the_networks_that_still_train_and_their_batches() -> None:
    x, y = problem()
    members = [replace(MEMBERS[1], lr=0.5, momentum=0.0), replace(MEMBERS[0], lr=0.0)]
    asked: list[list[int]] = []
    seen: list[tuple[Tensor, Tensor, Tensor]] = []

    def perturb(active: Tensor) -> sgd.Perturb:
        asked.append(active.tolist())

        def attack(f: Callable[[Tensor], Tensor], xs: Tensor, ys: Tensor) -> Tensor:
            seen.append((f(xs), xs, ys))
            return xs

        return attack

    plan = SgdPlan(epochs=6, batch=BATCH, target=0.5)
    state = run(plan, members, perturb=perturb)
    stopped = int(epochs_taken(state)[0])
    assert stopped < 6
    assert asked == [[0, 1]] * stopped + [[1]] * (6 - stopped)
    assert same_bytes(state, run(plan, members))  # a perturbation of nothing changes nothing
    for epoch in range(6):
        for update in range(6):
            scores, xs, ys = seen[6 * epoch + update]
            for row, i in enumerate(asked[epoch]):
                rows = batches(members[i], epoch)[update]
                assert torch.equal(xs[row], x[members[i].data, rows])
                assert torch.equal(ys[row], y[members[i].data, rows])
            unmoved = NET(initial(NET, members[1:]).double(), xs[-1:])[0]  # a learning rate of 0
            torch.testing.assert_close(scores[-1], unmoved, rtol=1e-10, atol=1e-12)


def test_networks_train_on_what_perturb_makes_of_the_batch() -> None:
    start = initial(NET, MEMBERS).double()
    members = [replace(member, weight_decay=0.0) for member in MEMBERS]
    blank = run(SgdPlan(epochs=1, batch=BATCH), members, perturb=lambda active: lambda f, x, y: torch.zeros_like(x))
    w = NET.width * NET.d  # the weights of the first layer come first
    assert torch.equal(blank.theta[:, :w], start[:, :w])
    assert not torch.isclose(blank.theta[:, w:], start[:, w:], rtol=0, atol=1e-9).all(1).any()
    flipped = run(SgdPlan(epochs=1, batch=BATCH), members, perturb=lambda active: lambda f, x, y: -x)
    x, y = problem()
    assert torch.equal(flipped.theta, run(SgdPlan(epochs=1, batch=BATCH), members, data=(-x, y)).theta)


# SB


@pytest.mark.parametrize("tilt", [1.0, 5.0], ids=["initial", "tilted"])
def test_gradient_on_lsn_is_that_of_lemmas_d5_to_d7(tilt: float) -> None:
    """While every sample is within the margin. Tilted: the first two weights as large as later in training, so that
    what the noise coordinates feel (D.7) is more than sampling error."""
    d, n, k = 20, 200_000, 8
    net = FixedOutput(d, k)
    x, y = (torch.from_numpy(a)[None] for a in lsn.sample(d, n, rng(0, "lsn")))
    theta = initial(net, [Member(seed=0)])
    net.weights(theta)[..., :2] *= tilt
    assert (y * net(theta, x) < 1).all()
    grad = torch.empty_like(theta)
    net.gradient(theta, grad, hinge)(x, y, ())
    w, found = (net.weights(each)[0].double().numpy() for each in (theta, grad))  # (k, d)
    v = np.repeat([1, -1], k // 2) / math.sqrt(k)
    size = np.linalg.norm(w[:, 2:], axis=1)
    plus, minus, alone = (each / size for each in (w[:, 0] + w[:, 1], w[:, 0] - w[:, 1], w[:, 0]))
    linear = -v / 4 * (2 + norm.cdf(plus) + norm.cdf(minus) - 2 * norm.cdf(alone))  # D.5
    slab = -v / 4 * (norm.cdf(plus) - norm.cdf(minus))  # D.6
    along = -v / 4 * (norm.pdf(plus) + norm.pdf(minus) - 2 * norm.pdf(alone))  # D.7, in the direction of w̄
    noise = along[:, None] * w[:, 2:] / size[:, None]
    error = np.abs(v) / math.sqrt(n)  # of the mean of what is at most 1, or has a standard deviation of at most 1
    assert (np.abs(found[:, 0] - linear) < SIX / 2 * error).all()
    assert (np.abs(found[:, 1] - slab) < SIX * math.sqrt(1 / 2) * error).all()
    assert (np.abs(found[:, 2:] - noise) < SIX * error[:, None]).all()
    assert (np.abs((found[:, 2:] * w[:, 2:]).sum(1) / size - along) < SIX * error).all()
    assert (np.abs(slab) > 3 * SIX * error).any()
    assert tilt == 1 or (np.abs(along) > 3 * SIX * error).any()


def test_a_network_trained_on_linear_and_slab_features_uses_the_linear_one_alone() -> None:
    d, n = 10, 5000
    world, q = slabs.world("lms-5", d), slabs.rotation(d, rng(0, "rotation"))
    (x, y), (test, truth) = (
        (torch.from_numpy(a @ q), torch.from_numpy(b)) for a, b in (world.sample(n, rng(i, "lms")) for i in range(2))
    )
    net = Fcn(d, 100, 1)
    state = train(net, [Member(seed=0, lr=0.3)], x[None], y[None], SgdPlan(epochs=30, batch=64, target=0.01))
    f = lambda points: net(state.theta, points[None])[0]  # noqa: E731
    found = randomised(f, test, truth, torch.from_numpy(q[:1]), rng(0, "donors"), 3, ("s", "rest"))
    assert found["standard"].mean.accuracy >= 0.99
    assert found["s"].mean.accuracy == pytest.approx(0.5, abs=0.04)
    assert found["rest"].mean.accuracy >= 0.98
