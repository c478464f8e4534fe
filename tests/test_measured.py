"""The timing of a live run, measured from its record, and the simulator that is given it."""

import numpy as np
import pytest

from amble import load, load_run, networks, simulate, split
from amble.live.cluster import up
from amble.live.journal.journal import Visited
from amble.live.records import collect, measured, record
from amble.methods.wpg import WPG
from amble.simulation.experiment import Experiment

PAUSE_S = 0.05
NAMES = ("anna", "bert", "cleo")


def made_record(compute_s, link_s, waited_s=0.0, clock_s=(0.0, 0.0, 0.0), laps=4, jitter_s=None):
    """One token round a ring of three, agent i's clock being ahead by clock_s[i]."""
    visits, now = {name: [] for name in NAMES}, 100.0
    for hop in range(1, 3 * laps + 1):
        i = (hop - 1) % 3
        now += 0.0 if hop == 1 else link_s + (jitter_s[hop] if jitter_s is not None else 0.0) + waited_s
        now += compute_s[i]
        times = (now + clock_s[i], waited_s, compute_s[i])
        visits[NAMES[i]].append(Visited(len(visits[NAMES[i]]) + 1, 0, 0, 0, hop, NAMES[i - 1], *times, "", ""))
        now += 7.0 if hop == 1 else 0.0  # the others are not up yet
    lines = {name: tuple(each) for name, each in visits.items()}
    return record.Record("run", NAMES, len(NAMES), 1, lines, dict.fromkeys(NAMES, ()), {})


def test_clocks_that_differ_do_not_matter():
    for clock_s in ((0.0, 0.0, 0.0), (0.0, 3600.0, -5.0)):
        timing = measured.timing(made_record((0.1, 0.2, 0.6), 0.03, waited_s=0.4, clock_s=clock_s))
        assert timing.low_s + timing.mean_s == pytest.approx(0.03)
        assert timing.mean_s == pytest.approx(0.0, abs=1e-6)
        np.testing.assert_allclose(timing.compute * timing.factors(3), (0.1, 0.2, 0.6))


def test_the_spread_of_hops_is_that_of_single_ones():
    jitter_s = np.random.default_rng(0).exponential(0.01, 6001)
    timing = measured.timing(made_record((0.1, 0.1, 0.1), 0.03, jitter_s=jitter_s, laps=2000))
    assert timing.low_s + timing.mean_s == pytest.approx(0.04, rel=0.02)
    assert timing.mean_s == pytest.approx(0.01, rel=0.1)


def test_a_visit_that_is_missing_is_not_measured_across():
    whole = made_record((0.1, 0.1, 0.1), 0.03)
    holed = whole._replace(visits={name: lines for name, lines in whole.visits.items() if name != "bert"})
    assert measured.hops_of(holed) == (0.0, 0.0)
    np.testing.assert_allclose(measured.compute_s(holed), 0.1)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A live run with a pause, replayed."""
    settings = Experiment(data="diabetes", agents=4, network="complete", methods=[{"name": "WPG", "alpha": 0.1}])
    plan = up.prepare(settings, {"hops": 40}, tmp_path_factory.mktemp("measured") / "run", False, PAUSE_S)
    with up.start(plan) as agents:
        agents.start_all()
        for process in agents.processes.values():
            process.wait(60)
    assert up.again(collect.agent_folders([plan.folder]), plan=plan).whole
    return collect.collect(collect.agent_folders([plan.folder])), load_run(plan.folder / up.RUN)


def test_a_visit_takes_its_pause_and_the_run_says_so(done):
    gathered, run = done
    for lines in gathered.visits.values():
        assert all(line.compute_s >= PAUSE_S and line.waited_s >= 0 for line in lines)
    assert (run.compute_s >= PAUSE_S).all()
    np.testing.assert_allclose(run.timing.compute * run.timing.factors(4), run.compute_s)
    assert run.timing.low_s + run.timing.mean_s > 0
    assert run.schedule.time_s[0] >= PAUSE_S
    assert (np.diff(run.schedule.time_s) >= PAUSE_S).all()  # one token, one clock


def test_the_simulator_takes_what_was_measured(done):
    """Its hops are as far apart as the live ones were on average, start-up apart."""
    _, run = done
    problem, network = split(load("diabetes"), agents=4), networks.complete(4)
    again = simulate(WPG(0.1), problem, network, hops=4000, walk="cycle", timing=run.timing, progress=False)
    np.testing.assert_allclose(again.compute_s, run.compute_s)
    a_hop_s = run.compute_s.mean() + run.timing.low_s + run.timing.mean_s
    assert again.schedule.time_s[-1] / 4000 == pytest.approx(a_hop_s, rel=0.05)
