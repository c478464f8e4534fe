"""Tokens that gather apart and meet at one place: their walks, clock and account."""

import heapq

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amble
from amble import networks
from amble.errors import AmbleError
from amble.networks import meetings, walks
from amble.networks.cycles import closed_walk
from amble.networks.meetings import DELIVER, PASS, TAKE, VISIT
from amble.randomness import LINK, draw
from amble.schedule import schedule as scheduling
from amble.schedule.timing import Timing
from rival_samples import BOARDED, NETWORK, NETWORKS, N, P, go, hop_by_hop, links_of, make_problem

WIDE = {
    "dense": networks.random(50, 0.7, seed=1),
    "sparse": networks.random(60, 0.15, seed=2),
    "ring": networks.ring(24),
    "grid": networks.grid(6, 6),
    "geometric": networks.geometric(50, seed=3),
}


def eccentricity(network, i):
    return int(meetings.distances(network, i).max())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(agents=st.integers(1, 12), tokens=st.integers(2, 16), density=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_laps_are_closed_walks_that_visit_every_agent_once(agents, tokens, density, seed):
    """Along links, closed, and each agent is in the stretch of one token; all deliver and take at one place."""
    least = 2 / agents + 0.01
    network = networks.random(agents, min(1.0, max(least, density)), seed) if agents > 3 else networks.complete(agents)
    assert_laps(network, tokens)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("tokens", [2, 5, 6, 13])
def test_laps_on_networks_without_a_cycle(network, tokens):
    assert_laps(network, tokens)


def assert_laps(network, tokens):
    laps = meetings.laps(network, closed_walk(network, np.random.default_rng(0)), tokens)
    links, places = links_of(network), set()
    assert len(laps) == tokens
    for lap in laps:
        steps = zip(lap.agent, lap.agent[1:] + lap.agent[:1], strict=True)
        assert {(i, j) for i, j in steps if i != j} <= links
        assert (lap.role.count(DELIVER), lap.role.count(TAKE)) == (1, 1)
        assert lap.role.index(TAKE) == lap.role.index(DELIVER) + 1
        places |= {i for i, role in zip(lap.agent, lap.role, strict=True) if role in (DELIVER, TAKE)}
    visited = [i for lap in laps for i, role in zip(lap.agent, lap.role, strict=True) if role == VISIT]
    assert sorted(visited) == list(range(network.agents))
    assert len(places) == 1


@pytest.mark.parametrize("tokens", [2, 5, 10, 24])
@pytest.mark.parametrize("name", WIDE)
def test_the_first_meeting_is_within_the_bound(name, tokens):
    """ceil(N/M) - 1 hops along a stretch (a cycle was found on each of these), then to the meeting place; and no plan
    can be below N/M - 1 nor below the radius."""
    network = WIDE[name]
    order = closed_walk(network, np.random.default_rng(0))
    assert len(order) == network.agents
    plan = meetings.plan(network, order, tokens)
    along = -(-network.agents // tokens) - 1
    radius = min(eccentricity(network, i) for i in range(network.agents))
    assert max(along, radius) <= plan.first_hops <= along + eccentricity(network, plan.place)
    assert eccentricity(network, plan.place) <= 2 * radius


@pytest.mark.parametrize("tokens", [2, 5, 10, 20])
def test_least_squares_is_exact_when_all_have_met(tokens):
    """One unit of time per hop: every token has the optimum at the first meeting, and none has it before."""
    problem = amble.split(amble.load("diabetes"), agents=20, ridge=0.0)
    network = networks.random(20, 0.5, seed=4)
    run = go(amble.Relay(tokens=tokens), problem, network, hops=200, every=1, timing="unit")
    plan = meetings.plan(network, closed_walk(network, np.random.default_rng([0, 2])), tokens)
    far = np.flatnonzero(run.history["distance"] > 1e-9)[-1]
    assert run.history["time_s"][far + 1] == plan.first_hops
    assert run.schedule.role[far] == TAKE  # hop far is the last token's taking


@pytest.mark.parametrize("name", BOARDED)
def test_what_was_given_is_in_one_place(name):
    """Account + what each token was given since it took = the sum of all agents' last gifts, after every hop; after a
    meeting every token is that sum."""
    method = BOARDED[name]
    run = go(method, hops=120, engine="plain", every=120)
    takes = 0
    for k, (i, m, state) in enumerate(hop_by_hop(method, 120)):
        given, tokens, account = state.agents.given, state.tokens, state.agents.account
        total = account.total.sum(axis=0) + (tokens.total - tokens.taken.total).sum(axis=0)
        weight = account.weight.sum(axis=0) + (tokens.weight - tokens.taken.weight).sum(axis=0)
        expected = N if method.weigh == "agents" else given.w.sum(axis=0)
        assert np.allclose(total, given.v.sum(axis=0), rtol=0, atol=1e-11 * np.abs(given.v).sum() + 1e-300)
        assert np.allclose(weight, expected, rtol=1e-11, atol=1e-12)
        takes += run.schedule.role[k] == TAKE
        if run.schedule.role[k] == TAKE:
            assert np.array_equal(tokens.total[m], account.total[i])
        if run.schedule.role[k] == TAKE and takes % 3 == 0:
            assert np.allclose(tokens.total, total, rtol=1e-11, atol=1e-12)
    assert takes >= 9


def events(network, walk, timing, compute_s, tokens, seed, hops, size):
    """The same clock, by a queue of events and a list of who waits."""
    queue = [(0.0, m, 0) for m in range(tokens)]
    free_s, waiting, done, hop, crossed = np.zeros(network.agents), [], [], [0] * tokens, [False] * tokens
    while len(done) < hops + tokens:
        time_s, m, at = heapq.heappop(queue)
        agent, role, length = int(walk.order[m, at]), int(walk.role[m, at]), int(walk.lengths[m])
        if role == VISIT:
            time_s = free_s[agent] = max(time_s, free_s[agent]) + compute_s[agent]
        done.append((time_s, m, agent, crossed[m], role))
        u = float(draw(np, np.uint64(seed), np.uint64(m), np.uint64(hop[m]), LINK))
        hop[m] += 1
        following = int(walk.order[m, (at + 1) % length])
        crossed[m] = following != agent
        if role == DELIVER:
            waiting.append((m, (at + 1) % length))
            if len(waiting) == tokens:
                for other, there in waiting:
                    heapq.heappush(queue, (time_s, other, there))
                waiting = []
            continue
        fixed, width, _ = timing.link(size)
        heapq.heappush(queue, (time_s + (fixed + width * u if crossed[m] else 0.0), m, (at + 1) % length))
    return sorted(done, key=lambda entry: entry[0])[:hops]


@pytest.mark.parametrize("name", ["dense", "grid"])
def test_the_schedule_is_that_of_an_event_simulation(name):
    """Who waits for whom, by a queue of events; and the messages counted from it."""
    network, tokens, seed, size = WIDE[name], 5, 7, 100
    timing = Timing(low_s=1e-5, high_s=1e-4, bytes_per_s=1e7)
    compute_s = np.random.default_rng(0).uniform(1e-5, 2e-4, network.agents)
    walk = walks.walk_for("meeting", network, tokens, seed)
    made = scheduling.plan_hops(
        network, walk, timing, tokens=tokens, compute_s=compute_s, message_bytes=size, seed=seed, hops=400
    )
    expected = events(network, walk, timing, compute_s, tokens, seed, 400, size)
    assert np.allclose(made.time_s, [entry[0] for entry in expected], rtol=1e-12)
    columns = np.array([entry[1:] for entry in expected])
    assert np.array_equal(np.column_stack([made.token, made.agent, made.moved, made.role]), columns)
    assert {VISIT, DELIVER, TAKE} | ({PASS} if name == "grid" else set()) == set(made.role.tolist())


def test_bytes_are_links_crossed_times_one_account():
    """Counted from the walk itself: each change of agent is a message of p + p(p+1)/2 numbers."""
    run = go(amble.Relay(tokens=4, form="full"), hops=300, every=300)
    crossings = 0
    for m in range(4):
        path = run.schedule.agent[run.schedule.token == m]
        crossings += np.count_nonzero(np.diff(path))
    assert run.history["bytes"][-1] == crossings * 8 * (P + P * (P + 1) // 2) > 0


def test_only_visits_take_compute_time():
    """One second per visit, none per hop: the agents were busy as long as there were visits."""
    run = go(amble.Relay(tokens=3), hops=200, every=200, timing={"low_s": 0.0, "high_s": 0.0, "compute": 1.0})
    busy_s = (1 - run.history["idle"][-1]) * N * run.history["time_s"][-1]
    assert np.isclose(busy_s, np.count_nonzero(run.schedule.role == VISIT))


def test_a_saved_run_goes_on_where_it_stopped(tmp_path):
    problem, method = make_problem(), amble.Relay(tokens=3, form="scalar")
    whole = amble.simulate(method, problem, NETWORK, hops=240, every=40, progress=False)
    half = amble.simulate(method, problem, NETWORK, hops=120, every=40, progress=False)
    rest = amble.resume(amble.load_run(half.save(tmp_path / "half")), problem, hops=240, progress=False)
    assert np.array_equal(rest.consensus, whole.consensus)
    assert np.array_equal(rest.schedule.role, whole.schedule.role)


def test_a_tolerance_waits_for_a_whole_lap():
    """While tokens wait for each other the model stands still; that is no reason to stop."""
    problem = amble.split(amble.load("breast_cancer"), agents=20, ridge=1e-2)
    run = amble.simulate(amble.Relay(tokens=20), problem, networks.ring(20), tolerance=1e-8, progress=False)
    assert run.stopped == "tolerance"
    assert run.history["distance"][-1] < 1e-7


def test_tokens_without_a_common_account_have_nothing_to_meet_for():
    with pytest.raises(AmbleError, match="walk='meeting' was given with API-BCD, whose tokens share no account"):
        go(amble.APIBCD(tokens=3), walk="meeting")
