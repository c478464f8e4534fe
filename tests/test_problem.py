"""All agents' objectives together: the optimum against scikit-learn's, weights, scaling, the metric."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression, Ridge

import amble
from samples import (
    CLASSIFIERS,
    KINDS,
    agents_of_unlike_sizes,
    check_prox,
    in_model_units,
    iris,
    regression_rows,
    some_problem,
    task_of,
)


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


def test_the_loss_is_the_tasks_unless_another_is_asked_for():
    """Two classes by softmax: the optimum's chances are those of the logistic model whose ridge is half as large."""
    rows, labels = load_iris(return_X_y=True)
    rows, labels = rows[50:], labels[50:]
    options = {"task": "classification", "agents": 5}
    logistic = amble.Problem.from_arrays(rows, labels, ridge=0.01, **options)
    softmax = amble.Problem.from_arrays(rows, labels, ridge=0.02, loss="softmax", **options)
    assert logistic.dimension * 2 == softmax.dimension
    low, high = softmax.optimum().w.reshape(2, -1)
    np.testing.assert_allclose(high - low, logistic.optimum().w, rtol=1e-6)
    assert (softmax.predict(softmax.optimum().w, rows) == logistic.predict(logistic.optimum().w, rows)).all()
    same = amble.Problem.from_arrays(rows, labels, ridge=0.01, loss="logistic", **options)
    assert same.digest == logistic.digest


@pytest.mark.parametrize(
    ("kind", "loss", "sentence"),
    [
        ("least squares", "logistic", "loss='logistic' was given for regression; it takes 'least-squares'"),
        ("logistic", "least-squares", "classification with 2 classes; it takes 'logistic' or 'softmax'"),
        ("softmax", "logistic", "classification with 3 classes; it takes 'softmax'"),
        ("softmax", "hinge", "there is no loss named 'hinge'"),
    ],
)
def test_a_loss_that_does_not_fit_is_refused(kind, loss, sentence):
    with pytest.raises(amble.AmbleError, match=sentence):
        some_problem(kind, loss=loss)


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
    assert problem.predict(w, X[40:]).tolist() == np.array(names)[best].tolist()


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
    """Iris: one species is apart from the two others, which are not, so part of the model could grow forever."""

    X, y = load_iris(return_X_y=True)
    problem = amble.Problem.from_arrays(X, y, task="classification", agents=3, ridge=0.0)
    with pytest.raises(amble.AmbleError, match="separable, at least in part"):
        problem.optimum()


def test_a_problem_without_an_optimum_has_no_metric_of_it():
    """Separable classes and no ridge: the optimum is not known, and nothing breaks."""
    problem = amble.split(amble.load("breast_cancer"), agents=5, ridge=0.0)
    with pytest.warns(UserWarning, match="no centralised optimum"):
        run = amble.simulate(amble.WPG(alpha=0.1), problem, hops=20)
    assert run.problem["optimum_metric"] is None
    assert np.isfinite(run.history["metric"]).all()
    assert np.isnan(problem.metric(np.full(problem.dimension, np.nan)))
