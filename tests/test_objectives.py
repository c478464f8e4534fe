"""The agents' losses: value, gradient, Hessian and prox agree with each other, on NumPy and JAX, and with SciPy and
scikit-learn."""

import jax
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge

import amble
from amble.arrays import tree_map
from amble.objectives import LeastSquares, Logistic, Softmax, newton

CLASSES = 3
KINDS = ("least squares", "logistic", "softmax")
CLASSIFIERS = KINDS[1:]
EPSILON = np.finfo(float).eps


def build(kind, X, y, ridge, rows=None, classes=CLASSES):
    """One agent's objective of the mean loss over its rows; y has numbers or labels 0, 1, ..."""
    rows = np.full(len(y), 1 / len(y)) if rows is None else rows
    penalty = np.full(X.shape[-1], ridge)
    if kind == "softmax":
        return Softmax.build(X, y, rows, penalty, classes)
    return {"least squares": LeastSquares, "logistic": Logistic}[kind].build(X, y, rows, penalty)


def some_rows(kind, rng, rows, features, size=1.0, classes=CLASSES):
    X = size * rng.normal(size=(rows, features))
    if kind == "least squares":
        return X, rng.normal(size=rows)
    return X, rng.integers(0, 2 if kind == "logistic" else classes, rows).astype(float)


def unknowns(f):
    return f.b.shape[-1] if isinstance(f, LeastSquares) else f.ridge.shape[-1]


def some_objective(kind, seed=0, rows=9, features=4, ridge=0.1):
    """An objective and a point to look at it."""
    rng = np.random.default_rng(seed)
    f = build(kind, *some_rows(kind, rng, rows, features), ridge)
    return f, rng.normal(size=unknowns(f))


def task_of(kind):
    return "regression" if kind == "least squares" else "classification"


def iris(classes=3):
    """Flowers of the last two or of all three kinds; the first kind is separable from the rest."""
    X, y = load_iris(return_X_y=True)
    kept = y >= 3 - classes
    return X[kept], y[kept]


def regression_rows(rows=90, features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)) * [1.0, 5.0, 0.1, 1.0, 2.0][:features] + 3
    return X, X @ rng.normal(size=features) + 0.5 * rng.normal(size=rows) + 7


def some_problem(kind, **options):
    X, y = regression_rows() if kind == "least squares" else iris(2 if kind == "logistic" else 3)
    return X, y, amble.Problem.from_arrays(X, y, task=task_of(kind), **{"agents": 7, **options})


def agents_of_unlike_sizes(X, y):
    """Rows sorted by target and cut unevenly, so that agents differ in both what and how much they hold."""
    order = np.argsort(y, kind="stable")
    parts = np.split(order, [4, 10, 30])
    return [(X[part], y[part]) for part in parts], np.concatenate([np.full(len(part), len(part)) for part in parts])


def in_model_units(problem, X, y):
    s = problem.scaling
    return (X - s.X_mean) / s.X_std, (y - s.y_mean) / s.y_std


def check_prox(f, center, weight, start):
    """grad f(x) + weight (x - center) = 0, to 1e-9 of the gradient at the centre.

    That gradient is the size of the two terms: both are at most as long. Where the terms are differences of much larger
    numbers, no solver can do better than the rounding of those.
    """
    x = f.prox(center, weight, start)
    left = np.linalg.norm(f.grad(x) + weight * (x - center))
    L, length = f.smoothness, np.linalg.norm
    rounding = (L + weight) * length(x) + weight * length(center) + np.sqrt(L)
    assert left <= 1e-9 * length(f.grad(center)) + 50 * EPSILON * rounding
    return x


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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["agents", "rows"])
def test_problem_is_the_sum_of_its_objectives(kind, weights):
    _, _, problem = some_problem(kind, weights=weights)
    w = np.random.default_rng(0).normal(size=problem.dimension)
    each = [problem.objective(i) for i in range(problem.agents)]
    assert problem.value(w) == pytest.approx(sum(f.value(w) for f in each), rel=1e-12)
    np.testing.assert_allclose(problem.grad(w), sum(f.grad(w) for f in each), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("ridge", [1e-4, 1.0])
def test_optimum_has_no_slope(kind, scale, ridge):
    _, _, problem = some_problem(kind, scale=scale, ridge=ridge)
    best = problem.optimum()
    slope = np.linalg.norm(problem.grad(best.w))
    assert slope <= 1e-9 * np.linalg.norm(problem.grad(np.zeros(problem.dimension)))
    assert best.value == pytest.approx(sum(problem.objective(i).value(best.w) for i in range(7)), rel=1e-12)


@pytest.mark.parametrize("scale", [True, False])
def test_pooled_optimum_is_sklearns_ridge(scale):
    """weights="rows" has sum of losses + D ridge/2 |w|^2 (times N/D), Ridge twice that with alpha = D ridge."""
    ridge = 0.05
    X, y, problem = some_problem("least squares", weights="rows", scale=scale, ridge=ridge)
    X, y = in_model_units(problem, X, y)
    fit = Ridge(alpha=len(y) * ridge, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(problem.optimum().w, [*fit.coef_, fit.intercept_], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("scale", [True, False])
def test_pooled_optimum_is_sklearns_logistic_regression(scale):
    """It minimises C sum of losses + |w|^2/2, so C = 1 / (D ridge)."""
    ridge = 0.01
    X, y, problem = some_problem("logistic", weights="rows", scale=scale, ridge=ridge)
    X, _ = in_model_units(problem, X, y)
    fit = LogisticRegression(C=1 / (len(y) * ridge), solver="newton-cholesky", tol=1e-10).fit(X, y)
    np.testing.assert_allclose(problem.optimum().w, [*fit.coef_[0], *fit.intercept_], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("scale", [True, False])
def test_pooled_optimum_is_sklearns_multinomial_regression(scale):
    """Adding one number to all intercepts changes no chance; both take the shortest, whose intercepts sum to zero."""
    ridge = 0.01
    X, y, problem = some_problem("softmax", weights="rows", scale=scale, ridge=ridge)
    X, _ = in_model_units(problem, X, y)
    fit = LogisticRegression(C=1 / (len(y) * ridge), solver="newton-cholesky", tol=1e-10).fit(X, y)
    W = problem.optimum().w.reshape(3, -1)
    np.testing.assert_allclose(W[:, :-1], fit.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(W[:, -1], fit.intercept_ - fit.intercept_.mean(), rtol=1e-5, atol=1e-6)


def test_weights_agents_count_every_agent_once():
    """sum_i f_i gives a row of agent i the weight 1/d_i: scikit-learn's sample weights; the pooled fit is another."""
    ridge = 0.05
    X, y = regression_rows()
    rows, sizes = agents_of_unlike_sizes(X, y)
    X, y = (np.concatenate(side) for side in zip(*rows, strict=True))
    found = {
        weights: amble.Problem.from_agents(rows, ridge=ridge, scale=False, weights=weights).optimum().w
        for weights in ("agents", "rows")
    }
    each = Ridge(alpha=len(rows) * ridge, tol=1e-12).fit(X, y, sample_weight=1 / sizes)
    pooled = Ridge(alpha=len(y) * ridge, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(found["agents"], [*each.coef_, each.intercept_], rtol=1e-8)
    np.testing.assert_allclose(found["rows"], [*pooled.coef_, pooled.intercept_], rtol=1e-8)
    assert np.linalg.norm(found["agents"] - found["rows"]) > 1e-2 * np.linalg.norm(found["rows"])


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_weights_agents_count_every_agent_once_in_classification(kind):
    ridge = 0.05
    X, y = iris(2 if kind == "logistic" else 3)
    rows, sizes = agents_of_unlike_sizes(X, y)
    X, y = (np.concatenate(side) for side in zip(*rows, strict=True))
    options = {"task": "classification", "ridge": ridge, "scale": False}
    problem = amble.Problem.from_agents(rows, weights="agents", **options)
    C = 1 / (len(rows) * ridge)
    each = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10).fit(X, y, sample_weight=1 / sizes)
    W = problem.optimum().w.reshape(-1, X.shape[1] + 1)
    np.testing.assert_allclose(W[:, :-1], each.coef_, rtol=1e-5, atol=1e-6)
    pooled = amble.Problem.from_agents(rows, weights="rows", **options).optimum().w.reshape(W.shape)
    assert np.linalg.norm(W - pooled) > 1e-2 * np.linalg.norm(pooled)


def test_equal_sizes_make_both_weightings_one():
    X, y = regression_rows(rows=84)
    found = [amble.Problem.from_arrays(X, y, agents=7, weights=weights).optimum().w for weights in ("agents", "rows")]
    np.testing.assert_allclose(*found, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("constant", [0.0, 3.0])
def test_constant_column_changes_no_prediction(kind, scale, constant):
    """What it could say the intercept says without a penalty, so the column's own weights are zero."""
    X, y, without = some_problem(kind, scale=scale, ridge=1e-2)
    wider = np.column_stack([X, np.full(len(y), constant)])
    problem = amble.Problem.from_arrays(wider, y, task=task_of(kind), agents=7, scale=scale, ridge=1e-2)
    W = problem.optimum().w.reshape(-1, wider.shape[1] + 1)
    np.testing.assert_allclose(W[:, -2], 0.0, atol=1e-9)
    W_without = without.optimum().w.reshape(-1, X.shape[1] + 1)
    np.testing.assert_allclose(np.delete(W, -2, axis=1), W_without, rtol=1e-6, atol=1e-8)
    check_prox(problem.objective(0), np.ones(problem.dimension), 0.1, np.zeros(problem.dimension))


@pytest.mark.parametrize("kind", KINDS)
def test_constant_column_without_a_ridge(kind):
    """The Hessian has a row of zeros, so there are many minimisers; the shortest leaves the column alone."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(120, 2)), np.zeros(120)])
    noisy = X[:, 0] + 2 * rng.normal(size=120)
    y = noisy if kind == "least squares" else np.digitize(noisy, [0.0] if kind == "logistic" else [-1.0, 1.0])
    problem = amble.Problem.from_arrays(X, y, task=task_of(kind), agents=4, ridge=0.0)
    best = problem.optimum().w
    assert np.linalg.norm(problem.grad(best)) <= 1e-9 * np.linalg.norm(problem.grad(0 * best))
    np.testing.assert_allclose(best.reshape(-1, 4)[:, 2], 0.0, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ridge", [1e-4, 1e-8])
def test_separable_classes_with_a_tiny_ridge(classes, ridge):
    """Their optimum is far away, and every training row is right there."""
    rng = np.random.default_rng(0)
    y = np.arange(60) % classes
    X = 4 * np.eye(3)[y] + rng.uniform(-1, 1, size=(60, 3))
    problem = amble.Problem.from_arrays(
        X, y, task="classification", agents=5, X_test=X, y_test=y, ridge=ridge, scale=False
    )
    best = problem.optimum()
    assert problem.metric(best.w) == 1.0
    assert np.linalg.norm(problem.grad(best.w)) <= 1e-9 * np.linalg.norm(problem.grad(0 * best.w))
    for weight in (1e-6, 1e-2):
        check_prox(problem.objective(0), best.w, weight, 0 * best.w)


@pytest.mark.parametrize("classes", [2, 3])
def test_separable_classes_without_a_ridge_are_refused(classes):
    """They have no optimum: any model far enough out has next to no slope, so a small slope alone proves nothing."""
    y = np.arange(30) % classes
    X = np.eye(3)[y] + 0.01 * np.arange(30)[:, None]
    problem = amble.Problem.from_arrays(X, y, task="classification", agents=3, ridge=0.0)
    with pytest.raises(amble.AmbleError, match="the classes are separable"):
        problem.optimum()


def test_nmse_is_relative_to_the_mean_of_the_training_targets():
    """NMSE: |Xw - y|^2 / |y - mean(y_train)|^2 on test rows, whatever the scaling."""
    X, y = regression_rows()
    X_test, y_test = regression_rows(rows=20, seed=1)
    values = []
    for scale in (True, False):
        problem = amble.Problem.from_arrays(X, y, X_test=X_test, y_test=y_test, agents=5, ridge=0.0, scale=scale)
        w = problem.optimum().w
        values.append(problem.metric(w))
        mean = in_model_units(problem, 0.0, y)[1].mean()
        assert problem.metric(np.append(np.zeros(5), mean)) == pytest.approx(1.0, rel=1e-12)
    fit = np.linalg.lstsq(np.column_stack([X, np.ones(90)]), y, rcond=None)[0]
    errors = np.column_stack([X_test, np.ones(20)]) @ fit - y_test
    # with parts of 18 rows each, sum_i f_i is the pooled loss, and its fit does not depend on units
    np.testing.assert_allclose(values, np.sum(errors**2) / np.sum((y_test - y.mean()) ** 2), rtol=1e-9)


@pytest.mark.parametrize("names", [("no", "yes"), ("a", "b", "c")])
def test_accuracy_is_the_share_of_test_labels_that_are_right(names):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % len(names)
    X[:, 0] += 2 * y
    labels = np.array(names)[y]
    problem = amble.Problem.from_arrays(
        X[:40], labels[:40], task="classification", X_test=X[40:], y_test=labels[40:], agents=4
    )
    w = problem.optimum().w
    scores = problem.heldout.X @ w.reshape(-1, 4).T
    best = (scores[:, 0] > 0).astype(int) if len(names) == 2 else scores.argmax(axis=1)
    right = sum(np.array(names)[k] == label for k, label in zip(best, labels[40:], strict=True))
    assert problem.metric(w) == right / 20
    assert 0.5 < problem.metric(w) < 1
    assert set(problem.predict(w, problem.heldout.X)) <= set(names)


@pytest.mark.parametrize("kind", KINDS)
def test_without_test_rows_there_is_no_metric(kind):
    _, _, problem = some_problem(kind)
    assert np.isnan(problem.metric(np.zeros(problem.dimension)))


def test_scaling_is_fitted_on_training_rows_only():
    X, y = regression_rows()
    far_off = 1e6 * np.ones((3, 5))
    problem = amble.Problem.from_arrays(X, y, X_test=far_off, y_test=np.full(3, -1e6), agents=4)
    s = problem.scaling
    np.testing.assert_allclose(s.X_mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(s.X_std, X.std(axis=0), rtol=1e-14)
    assert (s.y_mean, s.y_std) == pytest.approx((y.mean(), y.std()), rel=1e-14)
    np.testing.assert_allclose(problem.heldout.X[:, :-1], (far_off - X.mean(axis=0)) / X.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(problem.heldout.y, (-1e6 - y.mean()) / y.std(), rtol=1e-12)
    np.testing.assert_array_equal(problem.heldout.X[:, -1], 1.0)


def test_split_fits_the_scaling_on_the_rows_it_kept():
    X, y = regression_rows(rows=50)
    data = amble.Dataset("rows", "regression", X, y)
    problem = amble.split(data, agents=4, test=0.3, seed=2)
    assert sum(map(len, problem.parts)) == 35
    assert len(problem.heldout.y) == 15
    s = problem.scaling
    out = problem.heldout.X[:, :-1] * s.X_std + s.X_mean
    kept = np.array([row for row in X if np.abs(out - row).sum(axis=1).min() > 1e-9])
    assert len(kept) == 35
    np.testing.assert_allclose(s.X_mean, kept.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(s.X_std, kept.std(axis=0), rtol=1e-12)


def test_classification_scales_features_and_not_labels():
    X, y, problem = some_problem("logistic")
    np.testing.assert_allclose(problem.scaling.X_mean, X.mean(axis=0), rtol=1e-14)
    assert (problem.scaling.y_mean, problem.scaling.y_std) == (0.0, 1.0)
    np.testing.assert_array_equal(problem.labels, np.unique(y))


@pytest.mark.parametrize("kind", KINDS)
def test_intercept_is_not_penalised(kind):
    """A huge ridge leaves the intercept alone: the model says the mean, or the classes' shares."""
    X, y = regression_rows() if kind == "least squares" else iris(2 if kind == "logistic" else 3)
    X, y = X[:-7], y[:-7]  # so that classes are not all alike
    problem = amble.Problem.from_arrays(X, y, task=task_of(kind), agents=1, ridge=1e6)
    W = problem.optimum().w.reshape(-1, X.shape[1] + 1)
    np.testing.assert_allclose(W[:, :-1], 0.0, atol=1e-5)
    _, y = in_model_units(problem, X, y) if kind == "least squares" else (X, y)
    if kind == "least squares":
        np.testing.assert_allclose(W[0, -1], y.mean(), atol=1e-9)
        return
    share = np.array([np.mean(y == label) for label in np.unique(y)])
    logits = np.append(0.0, W[:, -1]) if kind == "logistic" else W[:, -1]
    np.testing.assert_allclose(np.exp(logits) / np.exp(logits).sum(), share, rtol=1e-5)


def test_partly_separable_classes_without_a_ridge_are_refused():
    """Iris: one species is apart from the two others, which are not, so part of the model could grow for ever."""
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    problem = amble.Problem.from_arrays(X, y, task="classification", agents=3, ridge=0.0)
    with pytest.raises(amble.AmbleError, match="separable, in part at least"):
        problem.optimum()
