"""What Relay shows on real data: cpusmall, cadata and ijcnn1, where their files are (AMBLE_DATA)."""

import os
from pathlib import Path

import numpy as np
import pytest

import amble

pytestmark = pytest.mark.long

FOLDER = Path(os.environ.get("AMBLE_DATA", Path(__file__).parents[2] / "shared" / "data"))


def problem_of(name, agents, monkeypatch, **options):
    if not (FOLDER / f"{name}.bz2").is_file():
        pytest.skip(f"{name}.bz2 is not in {FOLDER}")
    monkeypatch.setenv("AMBLE_DATA", str(FOLDER))
    return amble.split(amble.load(name), agents=agents, **options)


@pytest.mark.parametrize(("name", "agents", "columns"), [("cpusmall", 20, 12), ("cadata", 50, 8)])
def test_relay_with_nothing_set_is_at_the_optimum_after_one_lap(name, agents, columns, monkeypatch):
    problem = problem_of(name, agents, monkeypatch, ridge=0.0)
    assert problem.dimension == columns + 1
    run = amble.simulate(amble.Relay(), problem, hops=agents, every=agents)
    assert run.method.form == "full"
    assert run.history["distance"][-1] < 1e-9


@pytest.mark.parametrize(("how", "laps"), [("even", 6), ("by-label", 12)])
def test_relay_on_ijcnn1(how, laps, monkeypatch):
    """Within 1e-6 after six laps evenly split, twelve split by label."""
    problem = problem_of("ijcnn1", 50, monkeypatch, how=how)
    run = amble.simulate(amble.Relay(), problem, hops=laps * 50, every=laps * 50)
    assert run.history["distance"][-1] < 1e-6


@pytest.mark.parametrize(("name", "agents", "hops"), [("cpusmall", 20, 2_000), ("cadata", 50, 8_000)])
def test_the_scalar_form_gets_there_too(name, agents, hops, monkeypatch):
    problem = problem_of(name, agents, monkeypatch, ridge=0.0)
    run = amble.simulate(amble.Relay(form="scalar"), problem, hops=hops, every=hops)
    assert run.history["distance"][-1] < 1e-6


def test_the_published_rule_stalls_and_the_tracked_one_recovers(monkeypatch):
    """cpusmall, M = 5, tau = 0.1: the tokens' mean, the mean of x, the tracked rule, the optimum (test NMSE)."""
    problem = problem_of("cpusmall", 20, monkeypatch)
    published, tracked = (
        amble.simulate(amble.APIBCD(tau=0.1, tokens=5, token_rule=rule), problem, hops=20_000).history
        for rule in ("published", "tracked")
    )
    best = problem.metric(problem.optimum().w)
    assert published["metric"][-1] > 2 * best
    assert published["metric_local"][-1] < 1.2 * best
    assert abs(tracked["metric"][-1] - best) < 0.1 * best


def test_softmax_with_one_label_an_agent_converges():
    """Digits, ten agents with one digit each: 650 unknowns, so Relay takes its scalar form."""
    problem = amble.split(amble.load("digits"), agents=10, how="by-label", ridge=1e-2)
    run = amble.simulate(amble.Relay(), problem, hops=3_000, every=1_000)
    assert run.method.form == "scalar"
    assert run.history["distance"][-1] < 1e-6
    assert np.all(np.diff(run.history["distance"]) < 0)
