"""Tuning never chooses a step that looks best in a short run and diverges in a long one."""

import os
from pathlib import Path

import numpy as np
import pytest

import amble
from amble import networks, tuning

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
