"""Training against slow, obvious versions of itself; and both methods against each other."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from brittle.core.rng import rng
from brittle.nets.two_layer import TwoLayer, initial
from brittle.probes.kkt import residuals
from brittle.probes.margin import NotSeparated, on_margin, probe
from brittle.train import flow, passes, protocol
from brittle.train.losses import ln_loss
from brittle.train.search import Armijo
from brittle.train.spaces import GramSpace, WeightSpace, cheapest
from brittle.train.state import NotReached
from brittle.worlds import clusters, orthogonal, sphere

PROTOCOL = {"batch": 5000, "lr": 1e-5, "growth": 1.1, "every": 100, "max_steps": 200_000}


def problem(
    d: int, m: int, width: int, seeds: range, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, TwoLayer]:
    x, y = zip(*(sphere.sample(d, m, rng(s, "data")) for s in seeds), strict=True)
    net = initial(d, width, 1.0, [rng(s, "init") for s in seeds])
    return torch.from_numpy(np.stack(x)).to(dtype), torch.from_numpy(np.stack(y)).to(dtype), net.to(dtype)


def ln10(power: float) -> float:
    return power * math.log(10)


def autograd_ln_loss(x: Tensor, y: Tensor, w: Tensor, b: Tensor, v: Tensor, loss: str) -> Tensor:
    q = y * ((x @ w.T + b).relu() @ v)
    each = -q if loss == "exponential" else torch.nn.functional.softplus(-q).log()
    return torch.logsumexp(each, 0) - math.log(len(y))


def slow_flow(
    x: Tensor, y: Tensor, net: TwoLayer, loss: str, ln_target: float, momentum: float
) -> tuple[list[Tensor], int]:
    """Descent on ln loss by autograd: one network, no Gram matrix, no carried preactivations."""
    theta = [p[0].clone() for p in (net.w, net.b, net.v)]
    last = [torch.zeros_like(p) for p in theta]
    t, age, steps, narrow = 1.0, 0, 0, net.v.shape[1] < 200
    while (now := float(autograd_ln_loss(x, y, *theta, loss))) > ln_target:
        assert steps < 5000
        beta = 0.0 if narrow else min(age / (age + 3), momentum)
        ahead = [(p + beta * s).requires_grad_() for p, s in zip(theta, last, strict=True)]
        value = autograd_ln_loss(x, y, *ahead, loss)
        grads = torch.autograd.grad(value, ahead)
        slope = float(sum((g * g).sum() for g in grads))
        size = abs(float(value.detach()))
        most = 0.03 + 0.001 * size if narrow else 2 + 0.02 * size
        t = min(t, most / slope)
        with torch.no_grad():
            while True:
                trial = [p - t * g for p, g in zip(ahead, grads, strict=True)]
                reached = float(autograd_ln_loss(x, y, *trial, loss))
                if reached <= float(value) + (0.5 if t * slope < 0.03 else -0.5) * t * slope:
                    break
                t *= 0.5
        if reached > now and beta > 0:
            trial, age = theta, -1
        last = [p - q for p, q in zip(trial, theta, strict=True)]
        theta, t, age, steps = trial, t * 1.1, age + 1, steps + 1
    return theta, steps


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.parametrize("momentum", [0.0, 0.7])
@pytest.mark.parametrize(("d", "m", "width"), [(12, 8, 200), (8, 18, 200), (12, 8, 100)])
def test_flow_takes_the_steps_of_plain_autograd_descent(loss: str, momentum: float, d: int, m: int, width: int) -> None:
    x, y, net = problem(d, m, width, range(1))
    theta, steps = slow_flow(x[0], y[0], net, loss, ln10(-8), momentum)
    trained, state = flow.train(x, y, net, loss=loss, ln_target=ln10(-8), momentum=momentum, max_steps=10_000)
    assert len(state.history) == steps
    for ours, slow in zip((trained.w, trained.b, trained.v), theta, strict=True):
        torch.testing.assert_close(ours[0], slow, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_protocol_takes_the_steps_of_torch_sgd(loss: str) -> None:
    x, y, net = problem(5, 12, 20, range(1))
    w, b, v = (p[0].clone().requires_grad_() for p in (net.w, net.b, net.v))
    optimiser = torch.optim.SGD([w, b, v], lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, step_size=10, gamma=1.1)
    for _ in range(100):
        optimiser.zero_grad()
        autograd_ln_loss(x[0], y[0], w, b, v, loss).exp().backward()
        optimiser.step()
        schedule.step()
    states: list[protocol.ProtocolState] = []
    with pytest.raises(NotReached):
        protocol.train(
            x, y, net, loss=loss, ln_target=-1e9, batch=12, lr=0.05, growth=1.1, every=10, max_steps=100,
            watch=lambda state: states.append(state),
        )  # fmt: skip
    torch.testing.assert_close(states[-1].w[0, :-1].T, w.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(states[-1].w[0, -1], b.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(states[-1].v[0], v.detach(), rtol=1e-9, atol=1e-12)


def test_protocol_batches_cover_the_data_once_an_epoch() -> None:
    rows = torch.cat([protocol._batch(m=100, batch=25, n=n) for n in range(4, 8)])
    assert sorted(rows.tolist()) == list(range(100))
    assert not torch.equal(protocol._batch(100, 25, 4), protocol._batch(100, 25, 0))
    # The last batch of an epoch is what is left, as in PyTorch's DataLoader, so that no sample is ever left out.
    left = torch.utils.data.DataLoader(torch.arange(110), batch_size=25, shuffle=True)
    epoch = [protocol._batch(m=110, batch=25, n=n) for n in range(5, 10)]
    assert [len(rows) for rows in epoch] == [len(rows) for rows in left] == [25, 25, 25, 25, 10]
    assert sorted(torch.cat(epoch).tolist()) == list(range(110))


def test_protocol_in_batches_reaches_the_target_on_all_the_data() -> None:
    x, y, net = problem(20, 30, 100, range(2))
    settings = PROTOCOL | {"batch": 10, "lr": 1e-2, "every": 10}
    trained, _ = protocol.train(x, y, net, loss="exponential", ln_target=ln10(-8), **settings)
    assert (ln_loss(y * trained(x), "exponential")[0] <= ln10(-8)).all()


@pytest.mark.parametrize("m", [6, 19, 20, 40])
def test_gram_space_and_weight_space_give_the_same_network(m: int) -> None:
    x, y, net = problem(10, m, 40, range(2))
    how = {"loss": "exponential", "ln_target": ln10(-10), "momentum": 0.7, "max_steps": 10_000}
    weights, _ = flow.train(x, y, net, space=WeightSpace(x, net), **how)
    gram, _ = flow.train(x, y, net, space=GramSpace(x, net), **how)
    torch.testing.assert_close(gram.w, weights.w, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(gram(x), weights(x), rtol=1e-9, atol=1e-9)
    assert isinstance(cheapest(x, net), GramSpace if m < 20 else WeightSpace)


def test_networks_side_by_side_are_those_trained_alone() -> None:
    x, y, net = problem(10, 12, 40, range(3))
    how = {"loss": "exponential", "ln_target": ln10(-30), "momentum": 0.7, "max_steps": 10_000}
    together, _ = flow.train(x, y, net, **how)
    for i in range(3):
        one = slice(i, i + 1)
        alone, _ = flow.train(x[one], y[one], TwoLayer(net.w[one], net.b[one], net.v[one]), **how)
        torch.testing.assert_close(together.w[one], alone.w, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(together.v[one], alone.v, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("block", [1, 70, 40 * 12, 40 * 12 * 2])  # a sample, some, a network, two of three networks
@pytest.mark.parametrize("d", [10, 4])
def test_blocks_of_any_size_give_the_same_network(block: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, net = problem(d, 12, 40, range(3))
    how = {"loss": "logistic", "ln_target": ln10(-2), "momentum": 0.7, "max_steps": 10_000}
    whole, _ = flow.train(x, y, net, **how)
    monkeypatch.setattr(passes, "BLOCK", block)
    assert len(passes.Passes(x.new_empty(3, 12, 40)).blocks) > 1
    cut, _ = flow.train(x, y, net, **how)
    for name in ("w", "b", "v"):
        torch.testing.assert_close(getattr(cut, name), getattr(whole, name), rtol=1e-7, atol=1e-9)


def test_a_glance_saves_trials_and_changes_no_step() -> None:
    """Parabolas that turn upwards ever sooner: the search for the lowest of them ends after n halvings."""
    halvings = torch.tensor([0, 0, 1, 2, 3, 5, 9])
    ln_loss, slope, t = torch.full((7,), -3.0), torch.full((7,), 0.5), torch.full((7,), 0.9)
    curvature = 0.3 * 2.0**halvings  # half of the promise is kept up to t = 0.25 / curvature = 0.833 · 2^-n
    tried: list[Tensor] = []

    def there(t: Tensor) -> Tensor:
        return ln_loss - slope * t + curvature * t * t

    def along(t: Tensor) -> flow.Trial:
        tried.append(t)
        return flow.Trial(t, t, there(t))

    search = Armijo(little=0.0, most=20)
    begun = {"glance": search.begin(ln_loss, slope, t, there), "none": search.begin(ln_loss, slope, t)}
    found = {}
    for how, begin in begun.items():
        tried.clear()
        step, next_t, _ = search(along, ln_loss, slope, begin)
        found[how] = step, next_t, len(tried)
    assert torch.equal(found["glance"][0], found["none"][0])
    assert torch.equal(found["glance"][1], found["none"][1])
    assert found["none"][0].tolist() == pytest.approx((0.45 * 2.0**-halvings).tolist())
    assert (found["glance"][2], found["none"][2]) == (6, 11)


def test_a_restored_state_goes_on_to_the_same_bytes_and_leaves_what_was_saved() -> None:
    x, y, net = problem(10, 12, 40, range(2), torch.float32)
    how = {"loss": "exponential", "ln_target": ln10(-10), "momentum": 0.7, "max_steps": 10_000}
    saved: dict[str, np.ndarray] = {}

    def save(state: flow.FlowState) -> None:
        if len(state.history) == 7:
            saved.update({name: array.copy() for name, array in state.arrays().items()})

    whole, _ = flow.train(x, y, net, watch=save, **how)
    before = {name: array.copy() for name, array in saved.items()}
    resumed, _ = flow.train(x, y, net, state=flow.FlowState.restore(saved, torch.device("cpu")), **how)
    assert all(torch.equal(getattr(resumed, name), getattr(whole, name)) for name in ("w", "b", "v"))
    assert all(np.array_equal(saved[name], array) for name, array in before.items())


def test_protocol_plain_flow_and_accelerated_flow_reach_the_same_network() -> None:
    """Same c within 2 %, same margin set within 2 % of the samples, seed by seed."""
    d, m, seeds = 60, 60, range(4)
    x, y, net = problem(d, m, 300, seeds, torch.float32)
    how = {"loss": "exponential", "ln_target": ln10(-30)}
    nets = {
        "protocol": protocol.train(x, y, net, **how, **PROTOCOL)[0],
        "plain": flow.train(x, y, net, **how, momentum=0.0, max_steps=10_000)[0],
        "accelerated": flow.train(x, y, net, **how, momentum=0.7, max_steps=10_000)[0],
    }
    x, y = x.double(), y.double()
    c, margin = {}, {}
    for name, trained in nets.items():
        trained = trained.to(torch.float64)
        probes = [probe(TwoLayer(*(p[i : i + 1] for p in vars(trained).values())), x[i], y[i], 1.1) for i in seeds]
        c[name] = np.array([p.c for p in probes])
        margin[name] = torch.stack([p.margin for p in probes])
    for name in ("plain", "accelerated"):
        np.testing.assert_allclose(c[name], c["protocol"], rtol=0.02, err_msg=name)
        assert float((margin[name] != margin["protocol"]).double().mean()) <= 0.02, name
    np.testing.assert_allclose(c["plain"], c["protocol"], rtol=0.01)  # plain descent is the path itself


@pytest.mark.parametrize(("d", "m", "width"), [(37, 52, 50), (37, 52, 150), (60, 40, 90)])
def test_narrow_networks_end_within_two_percent_of_the_protocols_c(d: int, m: int, width: int) -> None:
    """With the steps and the momentum of wide networks they end up to 36 % off (width 50, the first of these seeds)."""
    seeds = range(10, 14)
    x, y, net = problem(d, m, width, seeds, torch.float32)
    how = {"loss": "exponential", "ln_target": ln10(-30)}
    nets = {
        "protocol": protocol.train(x, y, net, **how, **PROTOCOL | {"every": 20})[0],
        "flow": flow.train(x, y, net, **how, momentum=0.7, max_steps=10_000)[0],
        "as wide": flow.train(x, y, net, **how, momentum=0.7, max_steps=10_000, search=flow.BACKTRACKING)[0],
    }
    c = {}
    for name, trained in nets.items():
        alone = (TwoLayer(*(p[i : i + 1].double() for p in vars(trained).values())) for i in range(len(seeds)))
        c[name] = np.array([probe(one, *part, 1.1).c for one, *part in zip(alone, x.double(), y.double(), strict=True)])
    np.testing.assert_allclose(c["flow"], c["protocol"], rtol=0.02)
    if width == 50:
        assert np.abs(c["as wide"] / c["protocol"] - 1).max() > 0.1


def test_exact_c_of_a_trained_network_agrees_with_bisection() -> None:
    x, y, net = problem(30, 30, 100, range(1))
    trained, _ = flow.train(x, y, net, loss="exponential", ln_target=ln10(-30), momentum=0.7, max_steps=10_000)
    found = probe(trained, x[0], y[0], 1.1)
    on = on_margin(y * trained(x), 1.1)[0]
    xi, yi = x[0][on], y[0][on]
    z = (yi[:, None] * xi).sum(0)
    low, high = 0.0, math.sqrt(30)
    for _ in range(60):
        c = (low + high) / 2
        all_flipped = bool((yi * trained((xi - c * yi[:, None] * z / z.norm())[None])[0] < 0).all())
        low, high = (low, c) if all_flipped else (c, high)
    assert found.c == pytest.approx(high, abs=1e-10)


def test_a_narrow_network_in_low_dimension_slides_along_its_kinks() -> None:
    """Descent that insists on falling creeps up to a kink here and stands still at ln loss -2.3 and -6.8."""
    x, y, net = problem(6, 14, 60, range(6))
    trained, _ = flow.train(x, y, net, loss="exponential", ln_target=ln10(-8), momentum=0.0, max_steps=20_000)
    assert (y * trained(x) > 0).all()


def test_a_target_of_1e_minus_10000_is_an_ordinary_parameter() -> None:
    x, y, net = problem(20, 10, 50, range(2), torch.float32)
    trained, _ = flow.train(x, y, net, loss="logistic", ln_target=ln10(-10_000), momentum=0.7, max_steps=100_000)
    assert (ln_loss(y * trained(x), "logistic")[0] <= ln10(-10_000) * (1 - 1e-5)).all()
    assert torch.isfinite(trained.w).all()


def test_ln_loss_falls_at_every_step_of_flow() -> None:
    x, y, net = problem(20, 40, 200, range(3))
    _, state = flow.train(x, y, net, loss="exponential", ln_target=ln10(-30), momentum=0.7, max_steps=10_000)
    assert (torch.stack(state.history).diff(dim=0) <= 1e-9).all()


def test_a_finished_network_that_a_refresh_lifts_above_the_target_goes_on() -> None:
    # Rounding: preactivations computed afresh may put a network that had arrived a hair above the target again.
    x, y, net = problem(20, 30, 60, range(3), torch.float32)
    rested = 0

    def lift(state: flow.FlowState) -> None:
        nonlocal rested
        arrived = state.ln_loss <= ln10(-10)
        rested += bool(arrived.any())
        if rested == 3:  # two steps of the others later
            assert not arrived.all()
            state.ln_loss = torch.where(arrived, ln10(-10) + 1e-3, state.ln_loss)

    how = {"loss": "exponential", "ln_target": ln10(-10), "max_steps": 10_000}
    trained, _ = flow.train(x, y, net, momentum=0.0, watch=lift, **how)
    assert rested > 3
    assert (ln_loss(y * trained(x), "exponential")[0] <= ln10(-10) + 1e-3).all()


def test_flow_that_runs_out_of_steps_says_how_far_it_got() -> None:
    x, y, net = problem(10, 10, 20, range(1))
    with pytest.raises(NotReached, match=r"^ln loss .* after 3 steps, target -69.08$"):
        flow.train(x, y, net, loss="exponential", ln_target=ln10(-30), momentum=0.7, max_steps=3)


@pytest.mark.parametrize("method", ["flow", "protocol"])
def test_a_loss_that_is_no_number_is_not_success(method: str) -> None:
    x, y, net = problem(10, 10, 20, range(2), torch.float32)
    net.w[1] = math.nan
    how = {"flow": {"momentum": 0.7, "max_steps": 10}, "protocol": PROTOCOL}[method]
    train = {"flow": flow.train, "protocol": protocol.train}[method]
    with pytest.raises(NotReached, match="not a number"):
        train(x, y, net, loss="exponential", ln_target=ln10(-30), **how)


def test_a_network_with_a_sample_wrong_has_no_margin() -> None:
    x, y, net = problem(10, 10, 20, range(1))
    wrong = int((y * net(x) <= 0).sum())
    assert wrong > 0
    with pytest.raises(NotSeparated, match=f"{wrong} of 10 training samples are wrong"):
        probe(net, x[0], y[0], 1.1)


def test_flow_that_cannot_descend_says_so() -> None:
    # Two equal samples of opposite labels: the loss cannot fall below 1.
    x = torch.ones(1, 2, 3, dtype=torch.float64)
    y = torch.tensor([[1.0, -1.0]], dtype=torch.float64)
    net = initial(3, 10, 1.0, [rng(0, "init")]).to(torch.float64)
    with pytest.raises(NotReached):
        flow.train(x, y, net, loss="exponential", ln_target=-1.0, momentum=0.7, max_steps=2000)


@given(q=st.lists(st.floats(-300, 300), min_size=1, max_size=5), kind=st.sampled_from(["exponential", "logistic"]))
def test_ln_loss_and_its_gradient_agree_with_fifty_digits(q: list[float], kind: str) -> None:
    getcontext().prec = 350
    tails = [(-Decimal(v)).exp() for v in q]
    each = tails if kind == "exponential" else [(1 + t).ln() for t in tails]
    slopes = tails if kind == "exponential" else [t / (1 + t) for t in tails]
    ln, pull = ln_loss(torch.tensor([q], dtype=torch.float64), kind)
    assert float(ln) == pytest.approx(float((sum(each) / len(q)).ln()), rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(pull[0], [float(s / sum(each)) for s in slopes], rtol=1e-9, atol=1e-300)


def test_margin_set_is_the_papers_definition() -> None:
    assert on_margin(torch.tensor([2.0, 2.2, 2.21, 5.0]), 1.1).tolist() == [True, True, False, False]


def test_clustered_data_attain_the_margin_on_a_few_nearly_orthogonal_samples() -> None:
    """The premise of Cor 4.1: the margin set is smaller than the data and consists of cluster centres."""
    x, y = (torch.from_numpy(a)[None] for a in clusters.sample(100, 100, 10, 0.1, rng(0, "data")))
    net = initial(100, 300, 1.0, [rng(0, "init")]).to(torch.float64)
    trained, _ = flow.train(x, y, net, loss="exponential", ln_target=ln10(-30), momentum=0.7, max_steps=10_000)
    (on,) = on_margin(y * trained(x), 1.1)
    assert 2 <= int(on.sum()) < 50
    assert on.nonzero().flatten().remainder(10).eq(0).all()


def test_from_small_weights_bounded_steps_come_closer_to_a_kkt_point() -> None:
    d, m = 60, 20
    x, y = (torch.from_numpy(a)[None] for a in orthogonal.sample(d, m))
    net = initial(d, 100, 0.01, [rng(0, "init")]).to(torch.float64)
    settings = {"loss": "exponential", "ln_target": ln10(-300), "momentum": 0.0, "max_steps": 20_000}
    bounded, _ = flow.train(x, y, net, **settings)
    leaping, _ = flow.train(x, y, net, search=Armijo(bold=math.inf), **settings)
    near, far = (residuals(trained, x[0], y[0], kink=1e-3).stationarity for trained in (bounded, leaping))
    assert near < 0.05
    assert near < 0.5 * far
