"""A diverged run names its likely cause, from an agent's rows and the method's settings."""

import re

import numpy as np
import pytest

import amble
from amble.live.cluster.up import WORSE
from amble.live.cluster.up import has_diverged as has_diverged_in_all
from amble.live.core.divergence import bound_of, has_diverged, likely_cause
from amble.live.model.shared import Plain, Shared
from amble.losses import LeastSquares, Logistic, Softmax

SIZES = np.array([1.0, 2.0, 1.0])


def loss(kind, sizes=SIZES):
    """Of rows with columns of these sizes, and an intercept."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(40, len(sizes))) * sizes, np.ones(40)])
    rows, ridge = np.full(40, 1 / 40), np.full(len(sizes) + 1, 1e-4)
    if kind == "least squares":
        return LeastSquares.build(X, rng.normal(size=40), rows, ridge)
    if kind == "logistic":
        return Logistic.build(X, rng.integers(0, 2, 40) * 1.0, rows, ridge)
    return Softmax.build(X, rng.integers(0, 3, 40) * 1.0, rows, ridge, 3)


@pytest.mark.parametrize("kind", ["least squares", "logistic", "softmax"])
def test_unscaled_columns_are_named(kind):
    f = loss(kind, SIZES * [1, 1e6, 1])
    is_cause, sentence = likely_cause(amble.WPG(alpha=0.5), f, ("age", "income", "rooms"), "north")
    assert is_cause
    assert sentence.startswith("in the rows of north column 'income' is ")
    assert f"alpha = 0.5 is above 2 / L = {2 / float(f.smoothness):.3g}" in sentence
    assert sentence.endswith("; scale the columns (X_mean and X_std of [model]), or give alpha below that")
    assert "column 2 is" in likely_cause(amble.WPG(alpha=0.5), f, 3, "north").sentence


def test_a_large_column_beside_the_intercept_alone_is_named():
    sentence = likely_cause(amble.Relay(), loss("least squares", np.array([1e5])), 1, "north").sentence
    assert re.match("in the rows of north column 1 is [0-9]e[+]0[45] times as large as the intercept; scale", sentence)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (amble.WPG(alpha=50), "alpha = 50 is above 2 / L"),
        (amble.WADMM(beta=1e-3, form="gradient"), "beta = 0.001 is below L / 2"),
        (amble.GAPIBCD(rho=1e-3), "rho = 0.001 is below L / 2"),
    ],
)
def test_a_step_that_is_too_large_is_named_and_the_columns_are_not(method, words):
    sentence = likely_cause(method, loss("least squares"), 3, "north").sentence
    assert sentence.startswith(words)
    assert "scale" not in sentence


def test_known_trouble_of_a_method_is_named():
    sentence = likely_cause(amble.PWADMM(form="own", tokens=3), loss("least squares"), 3, "north").sentence
    assert sentence.startswith('PW-ADMM with form = "own" and 3 tokens')


@pytest.mark.parametrize("method", [amble.Relay(), amble.WPG(alpha=0.01)])
def test_where_all_is_as_it_should_be_nothing_is_blamed(method):
    is_cause, sentence = likely_cause(method, loss("least squares"), 3, "north")
    assert not is_cause
    assert sentence.startswith("the rows of north show no cause")


def test_the_bound_of_a_step_is_where_gradient_descent_stops_converging():
    f = loss("least squares")
    limit = bound_of(amble.WPG(), float(f.smoothness)).limit
    far = []
    for alpha in (0.95 * limit, 1.05 * limit):
        w = f.vectors[:, -1].copy()
        for _ in range(400):
            w = w - alpha * f.grad(w)
        far.append(np.linalg.norm(f.grad(w)))
    assert far[0] < 1e-3 < 1e3 < far[1]


@pytest.mark.parametrize("kind", ["least squares", "logistic", "softmax"])
def test_a_model_that_has_grown_beyond_use_is_told_from_a_bad_one(kind):
    f = loss(kind)
    w = np.ones(len(f.grad(np.zeros(12 if kind == "softmax" else 4))))
    assert not has_diverged(f, 0 * w, 0 * w)
    assert not has_diverged(f, 1e3 * w, 0 * w)
    assert has_diverged(f, 1e12 * w, 0 * w)
    assert has_diverged(f, np.nan * w, 0 * w)


# --- of a whole run, where all rows are at hand ----------------------------------------------------------------------

HEALTHY = [
    amble.Relay(), amble.Relay(form="scalar"), amble.Relay(tokens=2), amble.WPG(), amble.WADMM(), amble.IBCD(),
    amble.PWADMM(tokens=2), amble.APIBCD(tokens=2), amble.GAPIBCD(tokens=2),
]  # fmt: skip


@pytest.fixture(scope="module")
def unlike():
    """Agents whose targets differ as much as they can."""
    return amble.split(amble.load("diabetes"), agents=8, how="sorted")


@pytest.mark.parametrize("method", HEALTHY, ids=repr)
def test_no_end_of_a_healthy_run_is_called_a_divergence(unlike, method):
    laps = 6
    run = amble.simulate(method, unlike, "ring", hops=laps * unlike.agents, every=1, engine="plain")
    objectives, zero = [unlike.objective(i) for i in range(unlike.agents)], np.zeros(unlike.dimension)
    ends = [(hop, run.history["objective"][k]) for k, hop in enumerate(run.recorded) if hop >= 2 * unlike.agents]
    assert len(ends) > (laps - 2) * unlike.agents
    assert max(value for _, value in ends) < sum(f.value(zero) for f in objectives)
    assert not has_diverged_in_all(objectives, run.model, zero, laps)


def test_a_run_that_grows_slowly_has_diverged():
    """A step of twice its bound, and 20 laps: the loss is nowhere near what one agent alone can call diverged."""
    pooled = amble.split(amble.load("diabetes"), agents=3)
    run = amble.simulate(amble.WPG(alpha=1.0), pooled, "random", hops=60, engine="plain")
    objectives, zero = [pooled.objective(i) for i in range(3)], np.zeros(pooled.dimension)
    assert has_diverged_in_all(objectives, run.model, zero, 20)
    assert not any(has_diverged(f, run.model, zero) for f in objectives)
    assert not has_diverged_in_all(objectives, run.model, run.model, 20)  # it began there


def test_a_model_of_one_agents_rows_is_not_called_a_divergence():
    """With fewer rows than unknowns it fits these, and is worse than nothing for all others."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 10)), rng.normal(size=100)
    few = amble.split(amble.Dataset("few", "regression", X, y), agents=12, how="sorted", test=0)
    objectives = [few.objective(i) for i in range(few.agents)]
    f, zero = objectives[0], np.zeros(few.dimension)
    w = np.linalg.lstsq(f.hessian(zero), -f.grad(zero), rcond=None)[0]
    worse = sum(float(g.value(1e3 * w)) for g in objectives) / sum(float(g.value(zero)) for g in objectives)
    assert worse > WORSE
    assert not has_diverged_in_all(objectives, 1e3 * w, zero, 1)
    assert has_diverged_in_all(objectives, 1e3 * w, zero, 2)


class BelowZero:
    """As the logarithm of a likelihood may be; with no value at zero."""

    start = np.ones(3)

    def value(self, w):
        assert w.any()
        return -5.0 + float((w - 2) @ (w - 2)) / 10

    def grad(self, w):
        return (w - 2) / 5


def test_a_loss_of_a_file_is_compared_with_its_first_value():
    f = Shared(Plain(BelowZero()), 1.0, "")
    start = BelowZero.start
    for w in (start, 2 * start, 1.1 * start, -1 * start):
        assert f.value(w) < 0
        assert not has_diverged(f, w, start)
        assert not has_diverged_in_all([f, f], w, start, 2)
    for w in (1e8 * start, np.nan * start, np.inf * start):
        assert has_diverged(f, w, start)
        assert has_diverged_in_all([f, f], w, start, 2)
    assert has_diverged_in_all([f, f], 100 * start, start, 2)
    assert not has_diverged(f, 100 * start, start)
