"""The share of agents' seconds in which they do not compute, against a count of every agent's busy intervals."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import amble
from amble import networks
from amble.report.made import made
from amble.report.sections import Section
from amble.report.text import percent
from amble.schedule.timing import Timing

N = 8
RNG = np.random.default_rng(5)
PROBLEM = amble.Problem.from_arrays(RNG.normal(size=(80, 3)), RNG.normal(size=80), agents=N)
NETWORK = networks.random(N, 0.6, seed=1)
SLOW = Timing(compute=4e-5, slowdown={2: 5.0, 3: 0.5})  # tokens queue at agent 2, and rounds wait for it
WALKS = [amble.IBCD(), amble.APIBCD(tokens=3), amble.WPG(), amble.Relay(tokens=2)]
ROUNDS = [amble.DGD(), amble.Central(), amble.SyncWalks(tokens=3)]


def go(method, **options):
    return amble.simulate(method, PROBLEM, NETWORK, **{"timing": SLOW, "every": 1, "progress": False, **options})


def busy_in(intervals, until_s):
    """Seconds up to then covered by any of the intervals; intervals of one agent may touch and not overlap."""
    ends = sorted(intervals)
    for (_, end), (begin, _) in pairwise(ends):
        assert begin >= end - 1e-12
    return sum(end - begin for begin, end in ends if end <= until_s + 1e-15)


@pytest.mark.parametrize("method", WALKS, ids=lambda method: method.label)
def test_idle_is_what_no_visit_covers(method):
    run = go(method, hops=150)
    visits = {i: [] for i in range(N)}
    for end, i, visit in zip(run.schedule.time_s, run.schedule.agent.tolist(), run.schedule.visits, strict=True):
        if visit:  # and no passing by, delivering or taking
            visits[i].append((end - run.compute_s[i], end))
    for k in (20, 40, 150):  # later than the first visits, which end together
        now = run.history["time_s"][k]
        busy = sum(busy_in(visits[i], now) for i in range(N))
        assert run.history["idle"][k] == pytest.approx(1 - busy / (N * now), abs=1e-12)
    assert run.history["idle"][0] == 1
    assert 0.2 < run.history["idle"][-1] < 1


@pytest.mark.parametrize("method", ROUNDS, ids=lambda method: method.label)
def test_in_rounds_all_who_wait_for_the_slowest_are_idle(method):
    run = go(method, rounds=30)
    begin, busy = 0.0, 0.0
    for k, end in enumerate(run.schedule.time_s.tolist(), 1):
        assert end - begin > max(run.compute_s)
        waiting = sum((end - begin) - run.compute_s[i] for i in range(N))
        busy += N * (end - begin) - waiting
        assert run.history["idle"][k] == pytest.approx(1 - busy / (N * end), abs=1e-12)
        begin = end
    alike = go(method, rounds=30, timing=Timing(compute=4e-5))
    assert alike.history["idle"][-1] < run.history["idle"][-1]  # nobody waits for a straggler


def test_with_more_tokens_agents_are_idle_for_less():
    one, five = (go(amble.APIBCD(tokens=tokens), time_s=0.05) for tokens in (1, 5))
    assert five.history["idle"][-1] < one.history["idle"][-1]


def test_where_nothing_is_computed_all_are_idle():
    assert (go(amble.IBCD(), timing="unit", hops=20).history["idle"] == 1).all()


@pytest.mark.parametrize("method", [WALKS[1], ROUNDS[0]], ids=lambda method: method.label)
def test_a_run_that_was_saved_without_the_column_has_it_when_loaded(method, tmp_path):
    run = go(method, hops=40)
    earlier = replace(run, history={key: column for key, column in run.history.items() if key != "idle"})
    loaded = amble.load_run(earlier.save(tmp_path / "earlier"))
    assert np.array_equal(loaded.history["idle"], run.history["idle"])
    assert loaded.history.keys() == run.history.keys()


def test_the_page_shows_it_as_a_share():
    run = go(amble.APIBCD(tokens=3), hops=60)
    shown = str(made(Section("title", (run,))))
    assert f"<td>{100 * run.history['idle'][-1]:.4g} %</td>" in shown
    assert percent(1.0) == "100 %"
    assert percent(0.999999) == "99.99 %"
