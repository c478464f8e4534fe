"""The schedule against an event loop written for the test alone, its limits, and the draws that it is made of."""

import heapq
from collections import deque
from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amble
from amble import networks
from amble.networks import walks
from amble.randomness import LINK, TIE, WALK, draw
from amble.schedule import schedule as scheduling
from amble.schedule import timing as timings
from amble.schedule.cost import compute_seconds
from amble.schedule.timing import Timing

ENDS, ARRIVES = 0, 1  # at the same time, an agent becomes free before anyone arrives

NETWORKS = {
    "ring": networks.ring(6),
    "random": networks.random(9, 0.5, seed=1),
    "star": networks.from_edges(5, [(0, i) for i in range(1, 5)]),
    "pair": networks.ring(2),
    "alone": networks.ring(1),
}
TIMINGS = {
    "paper": (Timing(), 3e-6),
    "paper, slow agents": (Timing(), 2e-4),
    "walkman": (timings.timing_from("walkman"), 0.3),
    "latency and bandwidth": (timings.link(2e-3, bytes_per_s=1e5), 1e-3),
    "a straggler": (Timing(slowdown={0: 50.0, 1: 0.5}), 1e-5),
    "no compute": (Timing(), 0.0),
    "latency, no compute": (timings.link(0.25), 0.0),
    "ties": (timings.link(1.0), 1.0),
}
MESSAGE_BYTES = 400.0


def reference(network, walk, timing, *, tokens, compute_s, message_bytes, seed, hops):
    """Tokens arrive, queue first come first served, are served, and leave. Ties go to the lowest token."""
    fixed, width, mean = timing.link(message_bytes)
    agent, memory = walk.begin(np)
    where = [int(i) for i in agent]
    crossed, done = [False] * tokens, [0] * tokens
    busy, queues = [False] * network.agents, [deque() for _ in range(network.agents)]
    events = [(0.0, ARRIVES, token, 0) for token in range(tokens)]
    arrivals, served = 0, []

    def serve(i, token, serial, now):
        busy[i] = True
        heapq.heappush(events, (now + compute_s[i], ENDS, token, serial))

    while len(served) < hops + tokens:
        now, kind, token, serial = heapq.heappop(events)
        i = where[token]
        if kind == ARRIVES:
            arrivals += 1
            if busy[i]:
                queues[i].append((token, arrivals))
            else:
                serve(i, token, arrivals, now)
            continue
        served.append((now, serial, token, i, crossed[token]))
        busy[i] = False
        if queues[i]:
            serve(i, *queues[i].popleft(), now)
        name, hop = np.uint64(token), np.uint64(done[token])
        u = draw(np, np.uint64(seed), name, hop, WALK)
        following, memory = walk.step(np, memory, token, np.int32(i), u, np.uint64(seed))
        u = draw(np, np.uint64(seed), name, hop, LINK)
        crossed[token] = bool(following != i)
        takes = fixed + width * u - mean * np.log1p(-u) if crossed[token] else 0.0
        where[token] = int(following)
        done[token] += 1
        heapq.heappush(events, (now + takes, ARRIVES, token, 0))
    served.sort()
    return [np.array(column) for column in zip(*((t, m, i, c) for t, _, m, i, c in served[:hops]), strict=True)]


def setting(network="random", walk="metropolis", timing="paper", tokens=3, seed=0):
    """All that a schedule is made from, but for its limits."""
    net = NETWORKS[network]
    model, seconds = TIMINGS[timing]
    positional = (net, walks.walk_for(walk, net, tokens, seed), model)
    compute_s = seconds * model.factors(net.agents)
    return positional, {"tokens": tokens, "compute_s": compute_s, "message_bytes": MESSAGE_BYTES, "seed": seed}


def made(*names, hops=None, time_s=None, comm_units=None, **more):
    positional, named = setting(*names, **more)
    return scheduling.plan_hops(*positional, **named, hops=hops, time_s=time_s, comm_units=comm_units)


def check_against_reference(hops=300, **names):
    positional, named = setting(**names)
    schedule = scheduling.plan_hops(*positional, **named, hops=hops)
    time_s, token, agent, moved = reference(*positional, **named, hops=hops)
    assert schedule.token.tolist() == token.tolist()
    assert schedule.agent.tolist() == agent.tolist()
    assert schedule.moved.tolist() == moved.tolist()
    # the compiler may fuse a product and a sum, so the last bit may differ
    assert np.allclose(schedule.time_s, time_s, rtol=1e-13, atol=0)


@pytest.mark.parametrize("timing", TIMINGS)
@pytest.mark.parametrize("walk", ["cycle", "metropolis", "least-visited"])
def test_hop_for_hop_for_every_timing(timing, walk):
    check_against_reference(network="random", walk=walk, timing=timing, tokens=4, seed=3)


@pytest.mark.parametrize("tokens", [1, 2, 7])
@pytest.mark.parametrize("network", ["star", "pair", "alone"])
def test_hop_for_hop_for_every_number_of_tokens(network, tokens):
    for timing in ("paper, slow agents", "walkman", "ties"):
        check_against_reference(network=network, walk="uniform", timing=timing, tokens=tokens, seed=8)


@pytest.mark.parametrize("walk", ["cycles", "uniform"])
def test_hop_for_hop_on_a_ring(walk):
    for timing in ("paper", "a straggler", "ties"):
        check_against_reference(network="ring", walk=walk, timing=timing, tokens=7, seed=2)


def test_hop_for_hop_past_the_end_of_a_compiled_block():
    check_against_reference(network="pair", walk="uniform", timing="walkman", tokens=2, hops=scheduling.BLOCK + 500)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**63), timing=st.sampled_from(list(TIMINGS)), walk=st.sampled_from(["cycle", "metropolis"]))
def test_invariants(seed, timing, walk):
    positional, named = setting(walk=walk, timing=timing, tokens=4, seed=seed)
    network, compute_s = positional[0], named["compute_s"]
    schedule = scheduling.plan_hops(*positional, **named, hops=400)
    assert schedule.hops == 400
    assert (np.diff(schedule.time_s) >= 0).all()
    check_no_agent_serves_two_at_once(schedule, compute_s)
    check_tokens_walk_in_order(schedule, network, compute_s)


def check_no_agent_serves_two_at_once(schedule, compute_s):
    for i, seconds in enumerate(compute_s):
        ends = schedule.time_s[schedule.agent == i]
        assert (np.diff(ends) >= seconds * (1 - 1e-9)).all()


def check_tokens_walk_in_order(schedule, network, compute_s):
    for token in range(4):
        mine = schedule.token == token
        agents, times, moved = schedule.agent[mine], schedule.time_s[mine], schedule.moved[mine]
        assert not moved[:1].any()
        for before, after, crossed in zip(agents, agents[1:], moved[1:], strict=False):
            assert crossed == (before != after)
            assert not crossed or after in network.neighbours_of(before)
        assert (np.diff(times) >= compute_s[agents[1:]] * (1 - 1e-9)).all()


def begins(long, short, hops):
    """Whether one schedule is the beginning of the other; a column that a walk has no use for is absent in both."""
    assert [column is None for column in short] == [column is None for column in long]
    there = [(one, other) for one, other in zip(short, long, strict=True) if one is not None]
    return all(np.array_equal(one, other[:hops]) for one, other in there)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**63), timing=st.sampled_from(list(TIMINGS)), hops=st.integers(1, 500))
def test_a_longer_schedule_only_adds_to_a_shorter_one(seed, timing, hops):
    short, again, long = (made(timing=timing, seed=seed, hops=count) for count in (hops, hops, 700))
    assert begins(again, short, hops)
    assert begins(long, short, hops)


@pytest.mark.parametrize("hops", [scheduling.BLOCK - 3, scheduling.BLOCK, 2 * scheduling.BLOCK])
def test_longer_ones_only_add_across_compiled_blocks(hops):
    """Visits to a straggler end long after later ones: the block must not end before those are known."""
    for seed in range(8):
        short, long = (made(timing="a straggler", seed=seed, hops=count) for count in (hops, 3 * scheduling.BLOCK))
        assert begins(long, short, hops)


@pytest.mark.parametrize("walk", ["cycle", "metropolis"])
def test_another_seed_is_another_schedule(walk):
    one, other = (made(walk=walk, seed=seed, hops=50) for seed in (0, 1))
    assert not np.array_equal(one.agent, other.agent)
    assert not np.array_equal(one.time_s, other.time_s)


@pytest.mark.parametrize("timing", ["paper", "walkman", "ties", "latency, no compute"])
def test_time_s_stops_exactly(timing):
    whole = made(timing=timing, hops=900)
    for limit in (whole.time_s[500], whole.time_s[500] * (1 - 1e-12), whole.time_s[3], whole.time_s[0] / 2):
        schedule = made(timing=timing, time_s=float(limit))
        expected = whole.first(int((whole.time_s <= limit).sum()))
        assert all(np.array_equal(one, other) for one, other in zip(schedule, expected, strict=True))


def test_time_s_stops_exactly_where_a_compiled_block_ends():
    """Four tokens in step: the last visits of the block all end before the limit, the next ones all after it."""
    network = networks.ring(4)
    parts = {"tokens": 4, "compute_s": np.zeros(4), "message_bytes": 8.0, "seed": 0}
    places = (network, walks.walk_for("cycle", network, 4, 0), timings.link(1.0))
    limit_s = scheduling.BLOCK / 4 - 0.5
    assert scheduling.plan_hops(*places, **parts, time_s=limit_s).hops == scheduling.BLOCK


@pytest.mark.parametrize("walk", ["cycle", "metropolis", "least-visited"])
@pytest.mark.parametrize("units", [1, 2, 250])
def test_comm_units_stop_exactly(walk, units):
    """Hops that stay put cost nothing, so they go on until the next crossing would be one too many."""
    whole = made(walk=walk, hops=900)
    expected = whole.first(int((np.cumsum(whole.moved) <= units).sum()))
    schedule = made(walk=walk, comm_units=units)
    assert schedule.moved.sum() == units
    assert all(np.array_equal(one, other) for one, other in zip(schedule, expected, strict=True))


def test_the_first_of_several_limits_wins():
    whole = made(hops=900)
    late, much = float(whole.time_s[-1]), int(whole.moved.sum())
    assert made(hops=100, time_s=late, comm_units=much).hops == 100
    assert made(hops=900, time_s=float(whole.time_s[99]), comm_units=much).hops == 100
    assert made(hops=900, time_s=late, comm_units=20).moved.sum() == 20


def test_one_agent_alone_cannot_reach_a_number_of_units():
    with pytest.raises(amble.AmbleError, match=r"one agent never communicates.*stop by hops or time_s"):
        made(network="alone", comm_units=5)


@cache
def many_draws(stream):
    hop = np.arange(20_000, dtype=np.uint64)
    return draw(np, np.uint64(9), np.arange(5, dtype=np.uint64)[:, None], hop, stream)


@pytest.mark.parametrize("stream", [LINK, WALK, TIE])
def test_draws_are_uniform(stream):
    u = many_draws(stream)
    assert u.min() >= 0
    assert u.max() < 1
    for power in (1, 2, 3, 4):
        assert np.allclose((u**power).mean(axis=1), 1 / (power + 1), atol=0.01)
    counts = np.histogram(u, bins=50, range=(0, 1))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < 49 + 5 * np.sqrt(2 * 49)


@pytest.mark.parametrize("stream", [LINK, WALK, TIE])
def test_draws_of_neighbouring_hops_tokens_streams_and_seeds_are_unrelated(stream):
    u = many_draws(stream)
    hop = np.arange(20_000, dtype=np.uint64)
    other_seed = draw(np, np.uint64(10), np.uint64(0), hop, stream)
    other_stream = many_draws((stream + 1) % 3)
    pairs = [(u[0, 1:], u[0, :-1]), (u[0], u[1]), (u[0], other_seed), (u[0], other_stream[0])]
    for one, other in pairs:
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**64 - 1), token=st.integers(0, 2**40), first=st.integers(0, 2**60))
def test_draws_are_the_same_bits_on_numpy_and_jax(seed, token, first):
    hop = np.uint64(first) + np.arange(64, dtype=np.uint64)
    for stream in (LINK, WALK, TIE):
        on_numpy = draw(np, np.uint64(seed), np.uint64(token), hop, stream)
        with jax.enable_x64(True):
            on_jax = draw(jax.numpy, jax.numpy.uint64(seed), jax.numpy.uint64(token), jax.numpy.asarray(hop), stream)
        assert np.array_equal(on_numpy, np.asarray(on_jax))


def small_problem(agents=4, task="regression"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=40)
    return amble.Problem.from_arrays(X, y if task == "regression" else y > 0, task=task, agents=agents)


def simulated(method, timing, problem=None, **limits):
    problem = problem or small_problem()
    return amble.simulate(method, problem, networks.ring(problem.agents), timing=timing, **(limits or {"hops": 40}))


def seconds_of(method, problem, timing="paper"):
    return compute_seconds(timings.timing_from(timing), method, problem)


METHODS = [amble.IBCD(), amble.APIBCD(tokens=2), amble.GAPIBCD(tokens=2), amble.WPG(alpha=0.1)]


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("method", [*METHODS, amble.SyncWalks()], ids=lambda method: method.label)
def test_modelled_compute_is_positive_and_always_the_same(method, task):
    one, again = (seconds_of(method, small_problem(task=task)) for _ in range(2))
    assert one.shape == (4,)
    assert (one > 0).all()
    assert np.array_equal(one, again)


def test_modelled_compute_grows_with_the_work():
    few, many = (small_problem(agents=agents, task="classification") for agents in (20, 2))
    assert seconds_of(amble.IBCD(), many).min() > seconds_of(amble.IBCD(), few).max()
    assert (seconds_of(amble.IBCD(), few) > seconds_of(amble.WPG(), few)).all()


@pytest.mark.parametrize("method", [*METHODS, amble.SyncWalks()], ids=lambda method: method.label)
def test_measured_compute_is_positive_and_stored_in_the_run(method, tmp_path):
    run = simulated(method, {"compute": "measured"})
    assert run.compute_s.shape == (4,)
    assert (run.compute_s > 0).all()
    loaded = amble.load_run(run.save(tmp_path / "run"))
    assert np.array_equal(loaded.compute_s, run.compute_s)
    assert loaded.timing.compute == "measured"


def test_measured_compute_is_what_a_resumed_run_goes_on_with():
    run = simulated(amble.IBCD(), {"compute": "measured"})
    longer = amble.resume(run, small_problem(), hops=80)
    assert np.array_equal(longer.compute_s, run.compute_s)
    assert np.array_equal(longer.schedule.time_s[:40], run.schedule.time_s)


def test_fixed_compute_is_the_seconds_given_times_the_slowdown():
    run = simulated(amble.IBCD(), Timing(compute=0.25, slowdown={2: 8}))
    assert run.compute_s.tolist() == [0.25, 0.25, 2.0, 0.25]
    assert run.schedule.time_s[0] == run.compute_s[run.schedule.agent[0]]


def test_bytes_count_where_bandwidth_is_finite():
    """Four doubles over 320 bytes a second: a tenth of a second a hop, after the first visit where the token starts."""
    run = simulated(amble.IBCD(), timings.link(0.0, bytes_per_s=320, compute=0.0))
    assert run.message_bytes == 32
    assert np.allclose(run.schedule.time_s, 0.1 * np.arange(40))
    assert np.array_equal(run.history["bytes"], 32 * run.history["comm_units"])


def test_a_round_ends_when_its_slowest_agent_has_ended():
    """Every agent hears, computes and says; all wait for the straggler."""
    timing = timings.link(1.0, compute=0.5, slowdown={1: 4.0})
    run = simulated(amble.SyncWalks(), timing, rounds=6)
    assert np.allclose(run.schedule.time_s, 4.0 * np.arange(1, 7))
    paper = simulated(amble.SyncWalks(), Timing(compute=1e-3), rounds=200)
    spans = np.diff(paper.schedule.time_s, prepend=0)
    assert (spans >= 1e-3 + 2e-5).all()
    assert (spans <= 1e-3 + 2e-4 + 1e-12).all()
    assert spans.std() > 0


def test_in_unit_time_each_hop_takes_a_second_and_visits_what_is_asked():
    run = simulated(amble.IBCD(), {"model": "unit", "compute": 2.0})
    assert run.schedule.time_s.tolist() == [2.0 + 3.0 * k for k in range(40)]
