"""Full Relay on random convex problems, against each problem's optimum."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import amble

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

import convex
import parallel

EACH = 200  # with five losses 1,000 problems


@pytest.mark.parametrize("loss", convex.LOSSES)
def test_full_relay_on_1000_random_convex_problems(loss):
    """Separable classes, tiny ridges, rows sorted by target, agents of unlike size: within 1e-6 of the optimum."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        counts = [convex.laps(convex.random_problem(loss, convex.UNSEEN + k), most=150) for k in range(EACH)]
    assert None not in counts
    assert np.median([count for count in counts if count is not None]) <= 7


@pytest.mark.parametrize("loss", convex.LOSSES)
def test_several_tokens_on_random_convex_problems(loss):
    """Two tokens that meet, and as many as agents: the lift looks at an agent's own last step, whichever token came."""
    for seed in range(30_000, 30_012):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem = convex.random_problem(loss, seed)
            assert convex.laps(problem, most=150, tokens=2) is not None
            assert convex.laps(problem, most=150, tokens=problem.agents) is not None


@pytest.mark.parametrize("tokens", [2, 10])
def test_several_tokens_on_separable_rows(tokens):
    """50 agents whose rows a plane separates, ridge 1e-4: what one token needs 8 laps for takes them at most 13."""
    problem = parallel.generated("logistic", "separable", 310)
    assert convex.laps(problem, most=9) is not None
    assert convex.laps(problem, most=13, tokens=tokens) is not None


class Root:
    """f(w) = sqrt(1 + (w - c)^2): where c is zero, a Newton step from w leads to -w^3."""

    curvature = 1.0

    def __init__(self, c):
        self.c = c

    def value(self, w):
        return np.sqrt(1 + (w[0] - self.c) ** 2)

    def grad(self, w):
        return (w - self.c) / np.sqrt(1 + (w - self.c) ** 2)

    def hessian(self, w):
        return ((1 + (w - self.c) ** 2) ** -1.5).reshape(1, 1)


def test_full_relay_converges_where_newton_diverges():
    """From 100 Newton's method goes to -1e6, and on: the lift brings the token back."""
    problem = amble.Problem.from_objectives([Root(0.0), Root(5.0)], 1)
    options = {"start": np.array([100.0]), "hops": 80, "engine": "plain", "progress": False}
    run = amble.simulate(amble.Relay(form="full"), problem, "complete", **options)
    assert run.history["distance"][-1] < 1e-9


@pytest.mark.parametrize(("start", "converges"), [(1.0, True), (10.0, True), (50.0, True), (100.0, False)])
def test_the_counter_example_of_the_theory(start, converges):
    """Three agents, c = 0, 1 and 7: after 60 laps from 100 the model is still far away; from 50 they converge."""
    problem = amble.Problem.from_objectives([Root(0.0), Root(1.0), Root(7.0)], 1)
    options = {"start": np.array([start]), "hops": 180, "engine": "plain", "progress": False}
    run = amble.simulate(amble.Relay(form="full"), problem, "complete", **options)
    assert (run.history["distance"][-1] < 1e-9) == converges
    assert converges or run.history["distance"][-1] > 1e3
