"""A diverged run names its likely cause, from an agent's rows and the method's settings."""

import re

import numpy as np
import pytest

import amble
from amble.live.divergence import bound_of, has_diverged, likely_cause
from amble.objectives import LeastSquares, Logistic, Softmax

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
    sentence = likely_cause(amble.WPG(alpha=0.5), f, ("age", "income", "rooms"), "north")
    assert sentence.startswith("in the rows of north column 'income' is ")
    assert f"alpha = 0.5 is above 2 / L = {2 / float(f.smoothness):.3g}" in sentence
    assert sentence.endswith("; scale the columns (X_mean and X_std of [model]), or give alpha below that")
    assert "column 2 is" in likely_cause(amble.WPG(alpha=0.5), f, 3, "north")


def test_a_large_column_beside_the_intercept_alone_is_named():
    sentence = likely_cause(amble.Relay(), loss("least squares", np.array([1e5])), 1, "north")
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
    sentence = likely_cause(method, loss("least squares"), 3, "north")
    assert sentence.startswith(words)
    assert "scale" not in sentence


def test_known_trouble_of_a_method_is_named():
    sentence = likely_cause(amble.PWADMM(form="own", tokens=3), loss("least squares"), 3, "north")
    assert sentence.startswith('PW-ADMM with form = "own" and 3 tokens')


@pytest.mark.parametrize("method", [amble.Relay(), amble.WPG(alpha=0.01)])
def test_where_all_is_as_it_should_be_nothing_is_blamed(method):
    assert likely_cause(method, loss("least squares"), 3, "north").startswith("the rows of north show no cause")


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
    assert not has_diverged(f, 0 * w)
    assert not has_diverged(f, 1e3 * w)
    assert has_diverged(f, 1e40 * w)
    assert has_diverged(f, np.nan * w)
