"""TokenSGD against gradient descent by hand and PyTorch's optimisers; and stopping at a metric."""

import jax.numpy as jnp
import numpy as np
import pytest

import amble
from amble import AmbleError
from amble.live.core.packing import flat
from amble.live.core.visits import visits_for
from amble.losses import JaxLoss

ROWS = np.random.default_rng(0).normal(size=(4, 12, 3))
Y = np.random.default_rng(1).normal(size=(4, 12))


def squares(w, batch):
    X, y = batch
    return jnp.mean((jnp.tanh(X @ w) - y) ** 2)


def problem(**options):
    return amble.Problem.from_objectives(JaxLoss(squares, np.full(3, 0.1), list(zip(ROWS, Y, strict=True)), **options))


def go(method, given=None, hops=30, **options):
    return amble.simulate(
        method, given or problem(), "ring", hops=hops, every=1, optimum=False, progress=False, **options
    )


def optimiser(kind, w):
    torch = pytest.importorskip("torch")
    if kind == "adam":
        return torch.optim.Adam([w], lr=0.05)
    return torch.optim.SGD([w], lr=0.05, momentum={"plain": 0.0, "momentum": 0.9}[kind])


@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("kind", ["plain", "momentum", "adam"])
def test_a_token_steps_as_pytorch_does(kind, engine):
    """With u, v and t at the token, its walk is one run of the optimiser, two steps per agent."""
    torch = pytest.importorskip("torch")
    run = go(amble.TokenSGD(alpha=0.05, step=kind, local_steps=2), engine=engine)
    w = torch.full((3,), 0.1, dtype=torch.float64, requires_grad=True)
    steps = optimiser(kind, w)
    for agent in run.schedule.agent:
        for _ in range(2):
            steps.zero_grad()
            X, y = torch.as_tensor(ROWS[agent]), torch.as_tensor(Y[agent])
            ((torch.tanh(X @ w) - y) ** 2).mean().backward()
            steps.step()
    np.testing.assert_allclose(run.model, w.detach().numpy(), rtol=1e-9)


def test_moments_at_the_agents_are_an_optimiser_each():
    torch = pytest.importorskip("torch")
    run = go(amble.TokenSGD(alpha=0.05, step="adam", memory="agent"))
    w = torch.full((3,), 0.1, dtype=torch.float64, requires_grad=True)
    each = [optimiser("adam", w) for _ in range(4)]
    for agent in run.schedule.agent:
        w.grad = None
        ((torch.tanh(torch.as_tensor(ROWS[agent]) @ w) - torch.as_tensor(Y[agent])) ** 2).mean().backward()
        each[agent].step()
    np.testing.assert_allclose(run.model, w.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize(
    ("schedule", "rate"),
    [
        ("constant", lambda _: 1.0),
        ("sqrt", lambda k: 1 / np.sqrt(1 + k / 10)),
        ("cosine", lambda k: (1 + np.cos(np.pi * min(1.0, k / 10))) / 2),
    ],
)
def test_the_schedule_counts_the_hops_of_the_token(schedule, rate):
    """By hand, with mix and the proximal term."""
    alpha, mu, mix = 0.2, 0.5, 0.3
    method = amble.TokenSGD(alpha=alpha, schedule=schedule, span=10, mu=mu, mix=mix, local_steps=3)
    run = go(method)
    f, z, x = problem(), np.full(3, 0.1), np.full((4, 3), 0.1)
    for k, i in enumerate(run.schedule.agent):
        first = w = z + mix * (x[i] - z)
        for _ in range(3):
            w = w - alpha * rate(k) * (f.objective(i).grad(w) + mu * (w - first))
        z = x[i] = w
    np.testing.assert_allclose(run.model, z, rtol=1e-9)


@pytest.mark.parametrize("memory", ["token", "agent"])
@pytest.mark.parametrize("kind", ["plain", "momentum", "adam"])
def test_both_engines_draw_the_same_batches_and_messages_are_counted(kind, memory):
    method = amble.TokenSGD(alpha=0.05, step=kind, memory=memory, tokens=2, local_steps=2)
    given = problem(batch_size=5)
    runs = [go(method, given, engine=engine) for engine in ("plain", "compiled")]
    np.testing.assert_allclose(runs[0].model, runs[1].model, rtol=1e-10)
    parcel = visits_for(method, 7, 4).parcel(0)
    assert len(flat(parcel.token)) == method.message_numbers(7)


@pytest.mark.parametrize("bad", [{"beta": 1.0}, {"mu": -1.0}, {"mix": 1.5}, {"step": "sgd"}, {"span": 0.0}])
def test_wrong_settings_are_refused(bad):
    with pytest.raises(AmbleError, match=next(iter(bad))):
        amble.TokenSGD(**bad)


def test_a_run_stops_at_a_metric():
    """The first record that is good enough, in both directions, and nothing after it."""
    split = amble.split(amble.load("digits"), agents=5)
    run = amble.simulate(amble.WPG(alpha=0.3), split, "ring", hops=500, every=10, metric=0.9, progress=False)
    whole = amble.simulate(amble.WPG(alpha=0.3), split, "ring", hops=500, every=10, progress=False)
    first = int(np.flatnonzero(whole.history["metric"] >= 0.9)[0])
    assert (run.stopped, run.schedule.hops) == ("metric", int(whole.recorded[first]))
    np.testing.assert_array_equal(run.history["metric"], whole.history["metric"][: first + 1])
    on = amble.resume(run, split, hops=500, metric=0.93, progress=False)
    assert on.history["metric"][-1] >= 0.93
    nmse = amble.split(amble.load("diabetes"), agents=5)
    low = amble.simulate(amble.WPG(alpha=0.3), nmse, "ring", hops=2000, metric=0.6, progress=False)
    assert low.stopped == "metric"
    assert low.history["metric"][-1] <= 0.6


def test_a_metric_to_stop_at_needs_held_out_rows():
    with pytest.raises(AmbleError, match="has no metric on held-out rows; stop by hops"):
        go(amble.WPG(), metric=0.5)
    with pytest.raises(AmbleError, match="metric='high' was given"):
        go(amble.WPG(), metric="high")
