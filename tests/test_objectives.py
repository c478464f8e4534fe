"""The agents' losses: value, gradient, Hessian and prox agree with each other, on NumPy and JAX, and with SciPy and
scikit-learn."""

import jax
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

import amble
from amble.arrays import tree_map
from amble.losses import LOSSES, Softmax, for_model, newton
from amble.testing import check_objective
from samples import (
    CLASSES,
    CLASSIFIERS,
    KINDS,
    build,
    check_prox,
    iris,
    some_objective,
    some_rows,
    task_of,
    unknowns,
)


@pytest.mark.parametrize("name", LOSSES)
def test_every_named_loss_keeps_the_contract(name):
    """Its functions agree, stacked ones are summed, the optimum has no slope, and its size tells how to predict."""
    kind = LOSSES[name]
    classes = next(count for count in (0, 2, 3) if kind.fits(count))
    X, y = iris(max(classes, 2))
    y = y - y.min() if classes else X[:, 0] ** 2
    problem = amble.Problem.from_arrays(X, y, agents=4, task=None if classes else "regression", loss=name, ridge=1e-2)
    w = np.random.default_rng(1).normal(size=problem.dimension)
    intercept = problem.settings["intercept"]
    assert intercept == (kind.link() != "hazard")
    assert problem.dimension == kind.unknowns(X.shape[1] + intercept, classes)
    each = [problem.objective(i) for i in range(4)]
    assert all(type(f) is kind for f in each)
    check_objective(each[0], problem.dimension)
    for of in ("value", "grad", "hessian"):
        total = sum(getattr(f, of)(w) for f in each)
        np.testing.assert_allclose(getattr(problem.total, of)(w), total, rtol=1e-10, atol=1e-12)
    assert np.linalg.norm(problem.grad(problem.optimum().w)) < 1e-8
    rows, models = np.column_stack([X, np.ones(len(X))]) if intercept else X, w[None]
    like = for_model(len(w), rows.shape[1], classes, name)
    assert np.array_equal(kind.predict(models, rows), like.predict(models, rows))
    assert all((f.flops(work) > 0).all() for f in each for work in ("grad", "prox", "hessian"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_gradient_is_the_slope_of_the_value(kind, seed):
    f, w = some_objective(kind, seed)
    np.testing.assert_allclose(f.grad(w), approx_fprime(w, f.value), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_hessian_is_the_slope_of_the_gradient(kind, seed):
    f, w = some_objective(kind, seed)
    np.testing.assert_allclose(f.hessian(w), approx_fprime(w, f.grad), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_hessian_times_a_vector_is_the_hessian_times_it(kind):
    f, w = some_objective(kind)
    for v in np.eye(len(w)):
        np.testing.assert_allclose(f.hessian_times(w)(v), f.hessian(w) @ v, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_value_is_the_mean_loss_over_the_rows(kind, ridge):
    """Written out row by row, with labels and ridge as in the docstrings."""
    rng = np.random.default_rng(5)
    X, y = some_rows(kind, rng, 6, 3)
    f = build(kind, X, y, ridge)
    w = rng.normal(size=unknowns(f))
    if kind == "least squares":
        losses = [(x @ w - t) ** 2 / 2 for x, t in zip(X, y, strict=True)]
    elif kind == "logistic":
        losses = [np.log(1 + np.exp(-(2 * t - 1) * (x @ w))) for x, t in zip(X, y, strict=True)]
    else:
        W = w.reshape(CLASSES, 3)
        W -= W.mean(axis=0)  # what is common to all classes changes no chance, and models have none of it
        losses = [np.log(np.exp(W @ x).sum()) - W[int(t)] @ x for x, t in zip(X, y, strict=True)]
    assert f.value(w) == pytest.approx(np.mean(losses) + ridge / 2 * w @ w, rel=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_numpy_and_jax_give_the_same_numbers(kind):
    f, w = some_objective(kind, seed=7)
    center = np.roll(w, 1)
    with jax.enable_x64(True):
        g, v, c = tree_map(jax.numpy.asarray, f), jax.numpy.asarray(w), jax.numpy.asarray(center)
        assert g.value(v).dtype == np.float64
        for name, on_jax in {"value": g.value(v), "grad": g.grad(v), "hessian": g.hessian(v)}.items():
            np.testing.assert_allclose(on_jax, getattr(f, name)(w), rtol=1e-12, atol=1e-14)
        for name in ("curvature", "smoothness"):
            np.testing.assert_allclose(getattr(g, name), getattr(f, name), rtol=1e-14)
        for work in ("grad", "prox"):
            assert float(g.flops(work)) == float(f.flops(work)) > 0
        for weight in (1e-3, 1.0, 1e3):
            np.testing.assert_allclose(g.prox(c, weight, v), f.prox(center, weight, w), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_jax_prox_stops_from_any_start_under_jit_and_vmap(kind):
    """The compiled engine calls the prox inside a loop; the stopping rule must hold there as it does on NumPy."""
    f, w = some_objective(kind, seed=8)
    starts = np.stack([0 * w, 30 * w, -30 * w])
    with jax.enable_x64(True):
        g = tree_map(jax.numpy.asarray, f)
        found = np.asarray(jax.jit(jax.vmap(lambda start: g.prox(jax.numpy.asarray(w), 0.01, start)))(starts))
    best = check_prox(f, w, 0.01, w)
    for x in found:
        np.testing.assert_allclose(x, best, rtol=1e-8, atol=1e-10)


# Centres and starts well beyond what a run meets; features from tiny to as large as unscaled data have them.
PROX_CASES = given(
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 24),
    features=st.integers(1, 6),
    classes=st.integers(2, 4),
    ridge=st.sampled_from([0.0, 1e-8, 1e-4, 1.0]),
    weight_log=st.floats(-6, 6),
    size_log=st.floats(-2, 1),
    center_log=st.floats(-2, 2),
    start_log=st.floats(-2, 2),
    one_class=st.booleans(),
)


@pytest.mark.parametrize("kind", KINDS)
@PROX_CASES
@settings(max_examples=150, deadline=None, derandomize=True)
def test_prox_meets_its_optimality_condition(
    kind, seed, rows, features, classes, ridge, weight_log, size_log, center_log, start_log, one_class
):
    rng = np.random.default_rng(seed)
    X, y = some_rows(kind, rng, rows, features, 10**size_log, classes)
    y = y * (kind == "least squares" or not one_class)
    f = build(kind, X, y, ridge, classes=classes)
    center, start = (10**log * rng.normal(size=unknowns(f)) for log in (center_log, start_log))
    check_prox(f, center, 10**weight_log, start)


@given(seed=st.integers(0, 2**32 - 1), weight_log=st.floats(-6, 2), margin=st.floats(5, 60))
@example(seed=1, weight_log=0.0, margin=20.0)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_softmax_prox_of_rows_that_are_already_right(seed, weight_log, margin):
    """The loss there is far smaller than the scores it is computed from: its rounding must not stop the search."""
    rng = np.random.default_rng(seed)
    X, y = some_rows("softmax", rng, 2, 3)
    f = build("softmax", X, y, ridge=1e-8)
    W = np.linalg.lstsq(X, margin * np.eye(CLASSES)[y.astype(int)], rcond=None)[0].T
    check_prox(f, W.ravel(), 10**weight_log, np.zeros(W.size))


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("seed", range(4))
def test_prox_converges_from_a_far_start(kind, seed):
    """newton.minimise: "phi is strongly convex, so this converges from any start"; here with scores of thousands."""
    rng = np.random.default_rng(seed)
    f = build(kind, *some_rows(kind, rng, 20, 6, size=30.0), ridge=1e-4)
    check_prox(f, rng.normal(size=unknowns(f)), 1e-3, 300 * rng.normal(size=unknowns(f)))


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("seed", range(19, 53))
def test_prox_is_not_stopped_by_the_rounding_of_large_scores(kind, seed):
    """Scores of thousands round the loss by more than a last Newton step lowers it: the gradient must decide."""
    rng = np.random.default_rng(seed)
    f = build(kind, *some_rows(kind, rng, 25, 2, size=70.0), ridge=1e-8)
    check_prox(f, 600 * rng.normal(size=unknowns(f)), 1e-5, 10 * rng.normal(size=unknowns(f)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", [1e-2, 1.0, 1e2])
def test_prox_is_where_scipy_finds_the_minimum(kind, weight):
    f, center = some_objective(kind, seed=3)

    def phi(x):
        return f.value(x) + weight / 2 * np.sum((x - center) ** 2)

    found = minimize(
        phi,
        np.zeros_like(center),
        jac=lambda x: f.grad(x) + weight * (x - center),
        hess=lambda x: f.hessian(x) + weight * np.eye(len(x)),
        method="trust-exact",
        options={"gtol": 1e-10},
    )
    np.testing.assert_allclose(f.prox(center, weight, center), found.x, rtol=1e-7, atol=1e-8)


@given(
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 2**32 - 1),
    rows=st.integers(1, 12),
    features=st.integers(1, 5),
    ridge=st.sampled_from([0.0, 1e-3, 1.0]),
    size=st.floats(0, 10),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_smoothness_and_curvature_bound_the_hessian(kind, seed, rows, features, ridge, size):
    rng = np.random.default_rng(seed)
    f = build(kind, *some_rows(kind, rng, rows, features), ridge)
    H = f.hessian(size * rng.normal(size=unknowns(f)))
    rounding = 1 + 1e-12
    assert np.linalg.eigvalsh(H)[-1] <= f.smoothness * rounding
    assert np.trace(H) / len(H) <= f.curvature * rounding


@pytest.mark.parametrize("kind", KINDS)
def test_smoothness_and_curvature_are_reached(kind):
    """At zero every class is as likely as the others, and with two classes all bounds are equalities."""
    rng = np.random.default_rng(2)
    X, y = some_rows(kind, rng, 9, 4, classes=2)
    f = build(kind, X, y, ridge=0.1, classes=2)
    H = f.hessian(np.zeros(unknowns(f)))
    assert np.linalg.eigvalsh(H)[-1] == pytest.approx(f.smoothness, rel=1e-12)
    assert np.trace(H) / len(H) == pytest.approx(f.curvature, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_weight_zero_change_nothing(kind):
    rng = np.random.default_rng(4)
    X, y = some_rows(kind, rng, 6, 4)
    junk = 100 * rng.normal(size=(3, 4))
    weights = np.full(6, 1 / 6)
    f = build(kind, X, y, 0.1, weights)
    padded = build(kind, np.vstack([X, junk]), np.append(y, np.ones(3)), 0.1, np.append(weights, np.zeros(3)))
    w, center = rng.normal(size=(2, unknowns(f)))
    np.testing.assert_allclose(padded.value(w), f.value(w), rtol=1e-14)
    np.testing.assert_allclose(padded.grad(w), f.grad(w), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(padded.hessian(w), f.hessian(w), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(padded.prox(center, 0.5, w), f.prox(center, 0.5, w), rtol=1e-11, atol=1e-13)
    assert padded.smoothness == pytest.approx(f.smoothness, rel=1e-13)
    assert padded.curvature == pytest.approx(f.curvature, rel=1e-13)
    assert padded.flops("prox") == f.flops("prox")


@pytest.mark.parametrize("kind", KINDS)
def test_agents_with_unequal_sizes_are_those_of_their_own_rows(kind):
    """Stacking pads every agent to the largest; each must still be the objective of its rows alone."""
    rng = np.random.default_rng(6)
    rows = [some_rows(kind, rng, size, 3) for size in (2, 11, 5)]
    problem = amble.Problem.from_agents(
        rows, task=task_of(kind), ridge=0.2, intercept=False, scale=False, weights="agents"
    )
    w = rng.normal(size=problem.dimension)
    for i, (X, y) in enumerate(rows):
        alone = build(kind, X, y, 0.2)
        assert problem.objective(i).value(w) == pytest.approx(alone.value(w), rel=1e-13)
        np.testing.assert_allclose(problem.objective(i).grad(w), alone.grad(w), rtol=1e-12, atol=1e-14)
        check_prox(problem.objective(i), w, 0.1, w)


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_rows_than_features(kind):
    """Without a ridge the Hessian is singular, and the prox is still unique."""
    f, center = some_objective(kind, rows=2, features=7, ridge=0.0)
    assert np.linalg.matrix_rank(f.hessian(center)) < len(center)
    x = check_prox(f, center, 1e-6, np.zeros_like(center))
    assert np.isfinite(x).all()


def test_optimum_with_fewer_rows_than_features_is_the_shortest():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(6, 9)), rng.normal(size=6)
    problem = amble.Problem.from_arrays(X, y, agents=3, ridge=0.0, intercept=False, scale=False)
    np.testing.assert_allclose(problem.optimum().w, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-9)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_one_class_only_at_an_agent(kind):
    rng = np.random.default_rng(9)
    X, _ = some_rows(kind, rng, 8, 3)
    for label in range(2 if kind == "logistic" else CLASSES):
        f = build(kind, X, np.full(8, float(label)), ridge=0.0)
        for weight in (1e-4, 1e-2, 1.0):
            check_prox(f, rng.normal(size=unknowns(f)), weight, np.zeros(unknowns(f)))


@pytest.mark.parametrize("classes", [2, 3])
def test_who_holds_which_class_does_not_move_the_pooled_optimum(classes):
    X, y = iris(classes)
    options = {"task": "classification", "agents": 6, "weights": "rows", "ridge": 1e-3}
    mixed = amble.Problem.from_arrays(X, y, how="even", **options)
    apart = amble.Problem.from_arrays(X, y, how="by-label", **options)
    assert all(len(np.unique(y[part])) == 1 for part in apart.parts)
    np.testing.assert_allclose(apart.optimum().w, mixed.optimum().w, rtol=1e-6, atol=1e-8)


def test_two_softmax_classes_are_logistic():
    """Scores (-w/2, w/2) differ by w, and so do the chances."""
    rng = np.random.default_rng(11)
    X, y = some_rows("logistic", rng, 9, 4)
    logistic, softmax = build("logistic", X, y, 0.0), build("softmax", X, y, 0.0, classes=2)
    for size in (0.1, 1.0, 100.0):
        w = size * rng.normal(size=4)
        both = np.concatenate([-w / 2, w / 2])
        assert softmax.value(both) == pytest.approx(logistic.value(w), rel=1e-12, abs=1e-13)
        half = logistic.grad(w)  # what moves the second class's weights up moves the first's down
        np.testing.assert_allclose(softmax.grad(both), np.concatenate([-half, half]), rtol=1e-10, atol=1e-13)


class WithoutHessian(Softmax):
    """Softmax that cannot form its Hessian: the prox must find its way with products alone."""

    def hessian(self, w):
        raise AssertionError(f"the Hessian of {len(w)} unknowns was formed")


def test_large_softmax_prox_uses_conjugate_gradients():
    rng = np.random.default_rng(12)
    classes, features = 7, newton.DIRECT_UP_TO // 7 + 1
    f = WithoutHessian(*build("softmax", *some_rows("softmax", rng, 60, features, 1.0, classes), 1e-4, None, classes))
    assert unknowns(f) > newton.DIRECT_UP_TO
    center, start = rng.normal(size=(2, unknowns(f)))
    found = {weight: check_prox(f, center, weight, start) for weight in (1e-6, 1e-3, 1.0, 1e3, 1e6)}
    with jax.enable_x64(True):
        on_jax = tree_map(jax.numpy.asarray, f).prox(jax.numpy.asarray(center), 1e-3, jax.numpy.asarray(start))
        np.testing.assert_allclose(on_jax, found[1e-3], rtol=1e-6, atol=1e-8)


def test_small_softmax_prox_forms_the_hessian():
    rng = np.random.default_rng(12)
    f = WithoutHessian(*build("softmax", *some_rows("softmax", rng, 6, 2), 1e-4))
    with pytest.raises(AssertionError, match="the Hessian of 6 unknowns"):
        f.prox(np.ones(6), 1.0, np.zeros(6))
