"""Units do not matter to full Relay, nor to the optimum: columns from 1 to 1e6, not scaled."""

import numpy as np
import pytest

import amble
from amble import networks
from amble.methods.gifts import estimate

pytestmark = pytest.mark.long

N, P = 10, 6
UNITS = np.geomspace(1, 1e6, P)
KINDS = ("least squares", "logistic", "softmax")


def rows(kind):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(600, P)), rng.normal(size=P)
    if kind == "least squares":
        return X, X @ w + 0.3 * rng.normal(size=600)
    y = (X @ w + rng.logistic(size=600) > 0) * 1
    return X, y if kind == "logistic" else y + (X[:, 1] > 0.5)


def make(kind, X, y):
    task = "regression" if kind == "least squares" else "classification"
    return amble.Problem.from_arrays(X, y, task=task, agents=N, scale=False, ridge=0.0)


def in_units(model):
    """The same model of columns in these units: the intercept is as it was, each class after the other."""
    return (model.reshape(-1, P + 1) / np.append(UNITS, 1.0)).reshape(-1)


def apart(one, other):
    return np.linalg.norm(one - other) / np.linalg.norm(other)


@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_does_not_depend_on_units(kind):
    X, y = rows(kind)
    assert apart(make(kind, X * UNITS, y).optimum().w, in_units(make(kind, X, y).optimum().w)) < 1e-11


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_full_relay_does_not_depend_on_units(kind, tokens, engine):
    X, y = rows(kind)
    method = amble.Relay(form="full", tokens=tokens)
    # of several tokens on a ring each waits for the others' news: a lap in which little moves is not yet the end
    options = {"tolerance": 1e-8 if tokens == 1 else 1e-10, "hops": 3000, "engine": engine, "progress": False}
    run = amble.simulate(method, make(kind, X * UNITS, y), networks.ring(N), **options)
    assert run.stopped == "tolerance"
    assert run.history["distance"][-1] <= 1e-8
    assert apart(run.model, in_units(make(kind, X, y).optimum().w)) <= 1e-8


def test_an_estimate_of_a_singular_weight_fits_what_it_holds_in_any_units():
    """Two rows, six unknowns: both are fitted, also where one column is a million times another."""
    X, y = rows("least squares")
    few, target = X[:2] * UNITS, y[:2]
    z = estimate(amble.Relay(form="full"), few.T @ target, few.T @ few)
    np.testing.assert_allclose(few @ z, target, rtol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_the_curvature_of_each_unknown_is_the_hessian_s_diagonal_at_zero(kind):
    X, y = rows(kind)
    f = make(kind, X, y).objective(0)
    np.testing.assert_allclose(f.curvatures, np.diag(f.hessian(np.zeros(len(f.curvatures)))), rtol=1e-12)
    assert np.mean(f.curvatures) == pytest.approx(f.curvature)
