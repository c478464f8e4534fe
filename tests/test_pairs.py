"""Pair methods: AD-PSGD against a simulation by events, with every message on its own."""

import heapq

import numpy as np
import pytest

import amble
from amble import engines, networks
from amble.live.settings.parts import make_method
from amble.methods import own
from amble.networks.errands import errands
from amble.randomness import LINK, WALK, draw_one
from amble.results.animation import animation
from amble.schedule import timing as timings
from rival_samples import NETWORK, PROBLEM, A, B, N, P, go, make_problem

SLOW = timings.timing_from({"model": "paper", "compute": 5e-5, "slowdown": {2: 10.0, 5: 0.1}})


def by_events(timing, alpha, until_s, network=NETWORK, compute=None, seed=3):
    """AD-PSGD as its agents see it. Each computes a gradient at its model; meanwhile it sends the model to a random
    neighbour, who moves half the way towards it and answers with that move; the sender moves the opposite way.
    When the gradient and the answer are there, the agent steps and begins anew. Yields (time, x) after each event."""
    count = network.agents
    x, g, answer = np.zeros((count, P)), np.zeros((count, P)), np.zeros((count, P))
    compute = np.full(count, timing.compute) * timing.factors(count) if compute is None else compute
    messages, ready_s = np.zeros(count, int), np.zeros(count)

    def link_s(i):
        u = draw_one(seed, i, int(messages[i]), LINK)
        messages[i] += 1
        return timing.low_s + (timing.high_s - timing.low_s) * u

    events, order = [], iter(range(10**9))
    for i in range(count):
        heapq.heappush(events, (0.0, next(order), "step", i, None, None))
    while events and events[0][0] <= until_s:
        now, _, what, i, j, model = heapq.heappop(events)
        if what == "step":
            x[i] = x[i] - answer[i] - alpha * g[i]
            g[i] = A[i] @ x[i] - B[i]
            near = network.neighbours_of(i)
            j = int(near[int(draw_one(seed, i, int(messages[i]), WALK) * len(near))])
            heapq.heappush(events, (now + link_s(i), next(order), "asked", i, j, x[i].copy()))
            ready_s[i] = now + compute[i]
        elif what == "asked":
            half = (model - x[j]) / 2
            x[j] = x[j] + half
            heapq.heappush(events, (now + link_s(i), next(order), "answered", i, j, half))
        else:
            answer[i] = model
            heapq.heappush(events, (max(now, ready_s[i]), next(order), "step", i, None, None))
            continue
        yield now, i, i if what == "step" else j, x.copy()


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_ad_psgd_is_what_its_messages_do(engine):
    """Times, places and every agent's model, hop by hop, with agents ten times as slow and as fast as the others."""
    method, hops = amble.ADPSGD(alpha=0.05), 400
    run = go(method, hops=hops, timing=SLOW, engine=engine)
    machine = engines.engine_for(engine, method, PROBLEM, NETWORK)
    state = machine.start()
    expected = list(by_events(SLOW, 0.05, float(run.schedule.time_s[-1])))
    assert len(expected) == hops
    for k, (now, token, agent, x) in enumerate(expected):
        assert run.schedule.time_s[k] == pytest.approx(now, rel=1e-12, abs=1e-18)
        assert (run.schedule.token[k], run.schedule.agent[k]) == (token, agent)
        state = machine.advance(state, run.schedule, k, k + 1)
        np.testing.assert_allclose(np.asarray(state.agents.x), x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.model, x.mean(axis=0), rtol=0, atol=1e-12)


def test_the_sum_of_all_models_only_changes_by_steps():
    """Without steps, what agents hold and what is on its way back sum to N times the first model, always."""
    start = np.arange(1.0, P + 1)
    method = amble.ADPSGD(alpha=1e-300)
    rng = np.random.default_rng(0)
    machine = engines.engine_for("plain", method, PROBLEM, NETWORK, start)
    state = machine.start()
    state.agents.x[:] = rng.normal(size=(N, P))
    total = state.agents.x.sum(axis=0)
    spread = np.ptp(state.agents.x, axis=0).max()
    schedule = go(method, hops=600, timing=SLOW).schedule
    for k in range(schedule.hops):
        state = machine.advance(state, schedule, k, k + 1)
        back = state.tokens.place == 0  # on the way home, with a change
        held = state.agents.x.sum(axis=0) - state.tokens.cargo[back].sum(axis=0)
        np.testing.assert_allclose(held, total, atol=1e-12)
    assert np.ptp(state.agents.x, axis=0).max() < 1e-3 * spread  # and they agree in the end


def test_with_equal_losses_it_finds_the_optimum_and_with_others_it_stays_near():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, P))
    rows = (X, X @ np.arange(1.0, P + 1) + 0.1 * rng.normal(size=30))
    alike = amble.Problem.from_agents([rows] * N, ridge=0.1, intercept=False, scale=False)
    assert go(amble.ADPSGD(alpha=0.1), alike, hops=12_000).history["distance"][-1] < 1e-10
    far, near = (go(amble.ADPSGD(alpha=alpha), hops=40_000, every=500).history["distance"] for alpha in (0.1, 0.01))
    assert 1e-4 < np.median(near[-20:]) < np.median(far[-20:]) / 3


def test_costs_and_idle_times():
    """A message per move, of p numbers. An agent idles while it waits for its messenger, and never for an agent."""
    run = go(amble.ADPSGD(), hops=2000, timing=timings.link(1.0, compute=3.0, slowdown={1: 4.0}))
    assert run.history["comm_units"][-1] == 2000 - N  # all but the first visit of each messenger
    assert run.history["bytes"][-1] == (2000 - N) * 8 * P
    others = np.arange(N) != 1
    assert run.idle[others] == pytest.approx(0, abs=0.02)  # a trip takes 2 s, a gradient 3 s
    trips = run.schedule.time_s[(run.schedule.agent == 1) & (run.schedule.token == 1)]
    assert np.allclose(np.diff(trips), 12.0)
    waiting = go(amble.ADPSGD(), hops=2000, timing=timings.link(2.0, compute=1.0))
    assert waiting.idle == pytest.approx(0.75, abs=0.01)  # a trip takes 4 s, a gradient 1 s
    assert waiting.history["idle"][-1] == pytest.approx(waiting.idle.mean(), abs=1e-12)


@pytest.mark.parametrize("method", [amble.Relay(), amble.IBCD(tokens=3), amble.DGD(), amble.ADPSGD()], ids=repr)
def test_idle_times_of_agents_have_the_mean_of_the_history(method):
    run = go(method, hops=800, timing=SLOW)
    assert run.idle.mean() == pytest.approx(run.history["idle"][-1], abs=1e-12)
    assert (run.idle < 1).all()


def test_every_neighbour_is_chosen_equally_often():
    run = go(amble.ADPSGD(), hops=40_000)
    s = run.schedule
    for i in range(N):
        hosts = s.agent[(s.token == i) & (s.agent != i)]
        counts = np.bincount(hosts, minlength=N)
        near = NETWORK.neighbours_of(i)
        assert set(np.flatnonzero(counts)) == set(near.tolist())
        assert counts[near] == pytest.approx(len(hosts) / len(near), rel=0.15)


def test_one_agent_takes_a_gradient_at_each_visit():
    """It has nobody to average with: gradient descent, a step per compute time."""
    run = go(
        amble.ADPSGD(alpha=0.05), make_problem(1), networks.ring(1), hops=50, timing=timings.link(1.0, compute=2.0)
    )
    assert np.allclose(run.schedule.time_s, 2.0 * np.arange(50))
    problem = make_problem(1)
    x = np.zeros(P)
    for _ in range(49):
        x = x - 0.05 * (problem.stacked.A[0] @ x - problem.stacked.b[0])
    np.testing.assert_allclose(run.model, x, atol=1e-12)
    assert errands(networks.ring(1)).home.tolist() == [0]


class Slope:
    """An objective of which only the gradient is known."""

    def __init__(self, i):
        self.i = i

    def value(self, w):
        return float(w @ A[self.i] @ w / 2 - B[self.i] @ w)

    def grad(self, w):
        return A[self.i] @ w - B[self.i]


def test_a_gradient_is_enough():
    problem = amble.Problem.from_objectives([Slope(i) for i in range(N)], P)
    found = go(amble.ADPSGD(alpha=0.05), problem, hops=300, optimum=False)
    compiled = go(amble.ADPSGD(alpha=0.05), hops=300, timing=amble.Timing(compute=1e-6))
    np.testing.assert_allclose(found.model, compiled.model, atol=1e-12)


def test_tuning_looks_at_each_agents_model():
    """The chosen step has the least mean of the losses of the agents' own models, among those tried."""
    tuned = go(amble.ADPSGD(), hops=2000, tune=True)
    tried = {float(value): loss for value, loss in tuned.tuning["tried"].items()}
    assert len(tried) > 3
    mean = np.mean([PROBLEM.value(x) for x in go(amble.ADPSGD(tuned.method.alpha), hops=tuned.tuning["hops"]).models])
    assert tried[tuned.method.alpha] == pytest.approx(mean, rel=1e-9)


def test_there_are_no_live_pairs_and_no_tokens_to_follow():
    with pytest.raises(amble.AmbleError, match="AD-PSGD was given; it works in pairs and has no tokens: choose I-BCD"):
        make_method({"name": "AD-PSGD"}, 4)
    run = go(amble.ADPSGD(), hops=100, timing=SLOW)
    with pytest.raises(amble.AmbleError, match="needs a method with tokens"):
        animation(run, 20)
    assert own.origin(run.method)["pairs"]


def test_pictures_are_drawn(tmp_path):
    run = go(amble.ADPSGD(), hops=100, timing=SLOW)
    for path in (run.plot_timeline(tmp_path / "timeline.png"), run.plot_network(tmp_path / "network.png")):
        assert path.stat().st_size > 5000
