"""Tuning never chooses a step that looks best in a short run and diverges in a long one."""

import os
from pathlib import Path

import numpy as np
import pytest

import amble
from amble import networks
from amble.losses import LeastSquares
from amble.simulation import tuning

pytestmark = pytest.mark.long

FOLDER = Path(os.environ.get("AMBLE_DATA", Path(__file__).parents[2] / "shared" / "data"))
LONG_ROUNDS = 4000


def needs(name):
    return pytest.mark.skipif(not (FOLDER / name).is_file(), reason=f"no {name} in {FOLDER}")


def stays_down(method, problem, network, seed):
    """Whether a run of 4,000 rounds ends no higher than it stands after 500."""
    run = amble.simulate(method, problem, network, rounds=LONG_ROUNDS, every=500, seed=seed, progress=False)
    losses = run.history["objective"]
    return run.stopped == "rounds" and bool(losses[-1] <= 1.001 * losses[1])


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(
    ("method", "data", "agents", "too_large"),
    [
        pytest.param(amble.EXTRA(), "cadata", 50, 0.19, marks=needs("cadata.bz2")),
        pytest.param(amble.DGD(), "cpusmall", 20, 0.2, marks=needs("cpusmall.bz2")),
    ],
)
def test_a_step_that_diverges_late_is_not_chosen_on_real_data(method, data, agents, too_large, seed, monkeypatch):
    monkeypatch.setenv("AMBLE_DATA", str(FOLDER))
    problem = amble.split(amble.load(data), agents=agents, seed=seed, ridge=1e-4)
    network = networks.random(agents, 0.7, seed)
    tuned, record = tuning.tune(method, problem, network, laps=20, powers=(-2.0, 2.0, 7), seed=seed)
    assert record["chosen"] < too_large
    assert stays_down(tuned, problem, network, seed)


@pytest.fixture
def unsteady():
    """One direction is steep and has nearly nothing to learn: a step a little too large falls for long, then rises."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(400, 6)) * np.array([1.0, 1.0, 1.0, 0.3, 0.1, 3.0])
    y = X @ np.array([1.0, -2.0, 0.5, 3.0, 5.0, 1e-3]) + 0.01 * rng.normal(size=400)
    problem = amble.Problem.from_arrays(X, y, agents=8, task="regression", scale=False, intercept=False, seed=0)
    return problem, networks.ring(8)


@pytest.mark.filterwarnings("ignore:.*diverged")
def test_the_best_of_the_pilot_runs_is_refused_where_it_rises_in_a_long_run(unsteady):
    problem, network = unsteady
    method = amble.DGD()
    search = {"laps": 20, "powers": (-1.0, 1.0, 13), "seed": 0}
    short, _ = tuning.tune(method, problem, network, long=1, **search)
    assert not stays_down(short, problem, network, 0)  # what the pilot runs alone would choose
    tuned, record = tuning.tune(method, problem, network, **search)
    assert stays_down(tuned, problem, network, 0)
    assert f"{short.alpha:g}" in record["refused"]
    assert f"{tuned.alpha:g}" not in (*record["refused"], *record["rising"])


def test_a_rise_is_measured_against_the_fall_where_the_loss_is_negative():
    """A constant added to each f_i changes no model, so it changes no choice either, though the loss is below zero."""
    targets = np.random.default_rng(1).normal(3.0, 0.5, size=(6, 4))
    each = [LeastSquares.build(np.eye(4), b, np.ones(4), np.zeros(4)) for b in targets]
    lowered = [own._replace(c=own.c - 50.0) for own in each]
    ring = networks.ring(6)
    _, plain = tuning.tune(amble.WPG(), amble.Problem.from_objectives(each, 4), ring, laps=20, seed=0)
    below = amble.Problem.from_objectives(lowered, 4)
    assert below.value(np.mean(targets, axis=0)) < 0
    tuned, record = tuning.tune(amble.WPG(), below, ring, laps=20, seed=0)
    assert (record["rising"], record["refused"]) == (plain["rising"], plain["refused"])
    assert tuned.alpha == plain["chosen"]
    assert len(record["rising"]) < len(record["tried"])


def falling(end, after=100):
    """A run of a thousand hops whose loss falls from 10 to `end` in a straight line, `after` so many hops."""
    hops = list(range(0, 1001, 10))
    return tuning.Trial(hops, [end + (10.0 - end) * max(0.0, 1 - hop / after) for hop in hops])


def test_of_values_that_arrive_the_first_wins_and_not_the_most_accurate():
    slow, quick = falling(1.0, after=900), falling(1.0008, after=100)  # the fall is nine, and CLOSE 1e-4 of it
    coarse, late = falling(1.01, after=10), falling(0.9999, after=1000)
    assert tuning.rank({1.0: slow, 2.0: quick, 3.0: coarse, 4.0: late}) == [2.0, 1.0, 4.0, 3.0]
    assert tuning.rank({1.0: slow, 3.0: coarse}) == [1.0, 3.0]  # what never comes close is not fast
    again = quick._replace(losses=[*quick.losses[:-20], *[5.0] * 10, *quick.losses[-10:]])
    assert tuning.rank({1.0: slow, 2.0: again}) == [1.0, 2.0]  # close once is not enough


def test_a_rise_counts_from_a_quarter_of_the_run_on():
    early = falling(1.0)
    early.losses[20] = 0.5  # a dip
    assert not early.rises
    late = falling(1.0)
    late.losses[30] = 0.5
    assert late.rises
    assert falling(1.0)._replace(losses=[10.0, *[1.0] * 99, np.inf]).rises
    assert falling(1.0)._replace(losses=[10.0, np.nan, *[1.0] * 99]).rises
    assert tuning.rank({1.0: late, 2.0: falling(9.0)}) == [2.0, 1.0]


class Recorded:
    """Full runs whose losses are known; `asked` says which were made."""

    def __init__(self, loss_of, rising=()):
        self.loss_of, self.rising, self.asked = loss_of, rising, []

    def __call__(self, value):
        self.asked.append(value)
        own = falling(self.loss_of(value))
        return own._replace(losses=[*own.losses[:-1], 9.0]) if value in self.rising else own


RECORD = {"tried": {"1": 2.0, "2": 2.5, "4": 3.0}, "ranked": ["1", "2", "4"], "refused": [], "chosen": 1.0}


def test_full_runs_go_on_outwards_and_then_between():
    trials = Recorded(lambda value: 1 + abs(np.log(value / 60)))
    record = tuning.rescore(RECORD, trials, 4.0, tries=9)
    assert trials.asked == [1, 0.25, 4, 16, 64, 256, 32, 128, 45.3]
    assert record["chosen"] == 64
    assert set(record["full"]) == {f"{value:g}" for value in trials.asked}
    few = Recorded(trials.loss_of)
    assert tuning.rescore(RECORD, few, 4.0, tries=3)["chosen"] == 4
    assert len(few.asked) == 3


def test_what_rises_in_a_full_run_is_refused_and_the_next_best_is_a_full_run_too():
    trials = Recorded({1.0: 1.0, 0.25: 1.2, 4.0: 1.5}.__getitem__, rising=(1.0,))
    record = tuning.rescore(RECORD, trials, 4.0, tries=3)
    assert (record["refused"], record["chosen"]) == (["1"], 0.25)
    assert tuning.refuse(record)["chosen"] == 4
    assert tuning.refuse(tuning.refuse(record))["chosen"] == 2  # of the pilot runs, what is left


def test_gossip_is_judged_by_its_agents_losses_at_every_horizon():
    """All agents have the same curvature, so the mean of the x_i moves as if they agreed; a step of DGD that makes them
    run away from each other rises, though the loss of their mean falls."""
    targets = np.random.default_rng(0).normal(size=(8, 4))
    curvatures = np.array([1.0, 0.05, 0.2, 0.5])
    each = [LeastSquares.build(np.eye(4), b, curvatures, np.zeros(4)) for b in targets]
    problem, ring = amble.Problem.from_objectives(each, 4), networks.ring(8)
    for alpha, rises in ((0.3, False), (1.5, True)):
        run = amble.simulate(amble.DGD(alpha=alpha), problem, ring, rounds=80, every=20, seed=0, progress=False)
        models = [
            amble.simulate(amble.DGD(alpha=alpha), problem, ring, rounds=k, seed=0, progress=False).models
            for k in (20, 40, 80)
        ]
        losses = [np.mean([problem.value(x) for x in each]) for each in models]
        trial = tuning.trial(run, problem)
        assert list(trial.hops) == [0, 20, 40, 60, 80]
        assert [trial.losses[k] for k in (1, 2, 4)] == pytest.approx(losses, rel=1e-12)
        assert trial.rises == rises == (losses[-1] > 1.001 * min(losses))


@pytest.mark.parametrize("method", [amble.IBCD(), amble.DGD()], ids=lambda method: method.label)
def test_pilot_runs_as_lanes_choose_what_single_ones_do(method, monkeypatch):
    problem, network = amble.split(amble.load("diabetes"), agents=6), networks.ring(6)
    _, alone = tuning.tune(method, problem, network, laps=20, long=2, seed=0)
    monkeypatch.setattr(tuning, "VISITS_FEW", 0)
    _, lanes = tuning.tune(method, problem, network, laps=20, long=2, seed=0)
    assert lanes["tried"] == pytest.approx(alone["tried"], rel=1e-10)
    assert {**lanes, "tried": {}} == {**alone, "tried": {}}
