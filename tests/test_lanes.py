"""Lanes: many runs as one compiled program, each equal to the run that simulate makes alone."""

from dataclasses import replace

import numpy as np
import pytest

import amble
from amble import methods, networks
from amble.engines.lane_program import IN_TURN, TOGETHER
from amble.engines.lanes import Lanes, lanes_that_fit
from amble.schedule.many import plan_many
from amble.simulation.many import run_many, trip
from amble.simulation.planning import plan
from amble.simulation.running import begin
from amble.sweeps.executors import Here

AGENTS = 6
SQUARES = [amble.split(amble.load("diabetes"), agents=AGENTS, seed=seed) for seed in (0, 1)]
LOGISTIC = [amble.split(amble.load("breast_cancer"), agents=AGENTS, seed=seed) for seed in (0, 1)]
LIMITS = [{"hops": 150}, {"time_s": 0.003}, {"comm_units": 90}, {"hops": 2000, "tolerance": 1e-2}]


def several(kind):
    """The method with three values of its step or penalty, and with three tokens where it may have them."""
    settings = {"tokens": 3} if methods.walks(kind) and kind.label not in ("I-BCD", "WADMM") else {}
    first = methods.from_settings(kind.label, settings)
    name = methods.tunable(first)
    return [first, *([replace(first, **{name: getattr(first, name) * by}) for by in (0.3, 3.0)] if name else [])]


def asked(chosen, problems, seeds=(0, 3), **options):
    own = {seed: networks.as_network(None, AGENTS, seed=seed) for seed in seeds}
    cases = [(method, problem, own[seed], seed) for method in chosen for problem in problems for seed in seeds]
    begun = [begin(method, problem, network, seed=seed, **options) for method, problem, network, seed in cases]
    return cases, begun


def check_equal(lane, run):
    """Where it ended and what it recorded is the same, and the numbers are, to the last digits."""
    assert (lane.stopped, lane.schedule.hops) == (run.stopped, run.schedule.hops)
    np.testing.assert_array_equal(lane.recorded, run.recorded)
    if run.stopped == "diverged":
        return
    for side in ("consensus", "local"):
        np.testing.assert_allclose(getattr(lane, side), getattr(run, side), rtol=0, atol=1e-12 * abs(run.local).max())
    for name, column in run.history.items():
        scale = max(1.0, np.nanmax(np.abs(run.history["objective"]))) if name != "bytes" else np.inf
        np.testing.assert_allclose(lane.history[name], column, rtol=1e-12, atol=1e-12 * scale if name != "bytes" else 0)


@pytest.mark.filterwarnings("ignore:.*diverged")
@pytest.mark.parametrize("label", methods.METHODS)
def test_every_lane_of_every_method_equals_the_run_alone(label):
    cases, begun = asked(several(methods.METHODS[label]), SQUARES)
    for limits in LIMITS if label in ("API-BCD", "DGD", "AD-PSGD") else LIMITS[:1]:
        lanes = run_many(begun, [problem for _, problem, _, _ in cases], **limits)
        for (method, problem, network, seed), lane in list(zip(cases, lanes, strict=True))[::5]:
            run = amble.simulate(method, problem, network, seed=seed, progress=False, **limits)
            check_equal(lane, run)


@pytest.mark.parametrize("label", ["API-BCD", "Relay"])
def test_lanes_in_turn_have_the_very_digits_of_a_run_alone(label):
    """Where a visit searches for its answer, lanes go in turn: the arithmetic is that of a single run."""
    chosen = several(methods.METHODS[label])
    cases, begun = asked(chosen, LOGISTIC)
    lanes = run_many(begun, [problem for _, problem, _, _ in cases], hops=60)
    for (method, problem, network, seed), lane in list(zip(cases, lanes, strict=True))[::5]:
        run = amble.simulate(method, problem, network, seed=seed, progress=False, hops=60)
        check_equal(lane, run)
        if Lanes.way_of(lane.method, problem) == IN_TURN:
            np.testing.assert_array_equal(lane.consensus, run.consensus)
    assert Lanes.way_of(cases[0][0], SQUARES[0]) == TOGETHER


def test_gossip_over_sparse_networks_of_different_links():
    """A ring and a grid are linked by few pairs, so agents hear link by link; the shorter list is padded."""
    problem = amble.split(amble.load("diabetes"), agents=36)
    own = [networks.ring(36), networks.grid(6, 6)]
    begun = [begin(amble.EXTRA(), problem, network) for network in own]
    for lane, network in zip(run_many(begun, [problem] * 2, hops=360), own, strict=True):
        check_equal(lane, amble.simulate(amble.EXTRA(), problem, network, hops=360))


@pytest.mark.filterwarnings("ignore:.*diverged")
def test_a_lane_that_diverges_ends_early_and_the_others_go_on():
    chosen = [amble.WPG(alpha=alpha) for alpha in (0.1, 1e6, 0.5)]
    cases, begun = asked(chosen, SQUARES[:1], seeds=(0,))
    lanes = run_many(begun, SQUARES[:1] * 3, hops=400)
    assert [lane.stopped for lane in lanes] == ["hops", "diverged", "hops"]
    assert lanes[1].schedule.hops < 400
    alone = amble.simulate(chosen[1], *cases[1][1:3], hops=400)
    assert lanes[1].schedule.hops == alone.schedule.hops


def test_records_every_so_many_hops_an_initial_model_a_penalty_and_objectives_of_your_own():
    problem = SQUARES[0]
    start = np.linspace(-1, 1, problem.dimension)
    _, begun = asked([amble.IBCD(), amble.IBCD(tau=0.1)], [problem], seeds=(0,), every=7, start=start)
    lanes = run_many(begun, [problem] * 2, hops=40)
    alone = amble.simulate(amble.IBCD(tau=0.1), problem, begun[0].network, hops=40, every=7, start=start)
    assert lanes[1].recorded.tolist() == [0, 7, 14, 21, 28, 35, 40]
    check_equal(lanes[1], alone)
    lasso = amble.split(amble.load("diabetes"), agents=AGENTS, l1=0.05)
    _, begun = asked([amble.Relay(tokens=2)], [lasso])
    lanes = run_many(begun, [lasso] * 2, hops=60)
    check_equal(lanes[1], amble.simulate(amble.Relay(tokens=2), lasso, begun[1].network, hops=60, seed=3))
    own = amble.Problem.from_objectives([problem.objective(i) for i in range(AGENTS)], problem.dimension)
    _, begun = asked([amble.WPG()], [own])
    lanes = run_many(begun, [own] * 2, hops=30)
    check_equal(lanes[1], amble.simulate(amble.WPG(), own, begun[1].network, hops=30, seed=3))


@pytest.mark.parametrize("walk", ["cycles", "stretches", "meeting", "metropolis", "least-visited"])
def test_schedules_made_in_batches_are_those_made_alone(walk):
    problem = SQUARES[0]
    own = [networks.as_network(None, AGENTS, seed=seed) for seed in range(5)]
    method = amble.WPG(tokens=3) if walk == "meeting" else amble.APIBCD(tokens=3)
    runs = [begin(method, problem, network, seed=k, walk=walk) for k, network in enumerate(own)]
    for stop in ({"hops": 700}, {"hops": None, "time_s": 0.01}, {"hops": None, "comm_units": 300}):
        stop = {"time_s": None, "comm_units": None, **stop}
        for run, schedule in zip(runs, plan_many([trip(run) for run in runs], **stop), strict=True):
            alone = plan(run, stop)
            for name in ("agent", "token", "moved"):
                np.testing.assert_array_equal(getattr(schedule, name), getattr(alone, name))
            np.testing.assert_allclose(schedule.time_s, alone.time_s, rtol=1e-14)


def test_programs_have_as_many_lanes_as_fit():
    problem, network = SQUARES[0], networks.ring(AGENTS)
    assert lanes_that_fit(amble.IBCD(), problem, network) == 128
    large = amble.Problem.from_arrays(np.eye(400), np.arange(400.0), task="regression", agents=20)
    assert lanes_that_fit(amble.Relay(tokens=5, form="full"), large, networks.ring(20)) == 1


def test_jobs_in_this_process_fail_as_futures_do():
    assert Here().submit(divmod, 7, 2).result() == (3, 1)
    with pytest.raises(ZeroDivisionError):
        Here().submit(divmod, 7, 0).result()
