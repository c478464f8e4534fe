"""Regularisation paths by a token, against scikit-learn's on the pooled rows."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import ElasticNetCV, Lasso, LassoCV, LogisticRegression, enet_path, lasso_path
from sklearn.metrics import log_loss
from typer.testing import CliRunner

import amble
from amble import AmbleError
from amble.cli import app
from amble.simulation import path as path_module
from amble.simulation.folds import deal_folds

TIGHT = {"tol": 1e-12, "max_iter": 1_000_000}


def scaled(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_least_squares_in_one_lap(l1_ratio):
    data = amble.load("diabetes")
    path = amble.path(data, agents=10, lambdas=40, l1_ratio=l1_ratio, network="ring")
    X, y = scaled(data.X), scaled(data.y)
    largest = np.abs(X.T @ y).max() / len(y) / l1_ratio
    assert path.lambdas[0] == pytest.approx(largest, rel=1e-7)
    assert path.lambdas == pytest.approx(np.geomspace(largest, largest / 1000, 40), rel=1e-7)
    central = lasso_path if l1_ratio == 1 else enet_path
    options = {} if l1_ratio == 1 else {"l1_ratio": l1_ratio}
    _, coef, _ = central(X, y, alphas=path.lambdas, **options, **TIGHT)
    assert np.abs(path.models[:, :-1] - coef.T).max() < 1e-8
    assert path.hops.tolist() == [10] + [0] * 39  # one lap is enough for the whole path
    assert path.nonzero[0] == 0
    p = path.problem.dimension
    assert path.message_bytes == 8 * (p + p * (p + 1) // 2 + 1)  # total, weight, and the share of the agents inside


def test_coefficients_are_in_the_datas_units():
    data = amble.load("diabetes")
    path = amble.path(data, agents=5, lambdas=[0.3, 0.01], held_out=0)
    expected = data.X @ path.coef[1] + path.intercept[1]
    assert path.predict(data.X, 1) == pytest.approx(expected, rel=1e-10)
    central = Lasso(alpha=0.01, **TIGHT).fit(scaled(data.X), scaled(data.y))
    assert path.coef[1] == pytest.approx(central.coef_ * data.y.std() / data.X.std(axis=0), rel=1e-6, abs=1e-6)
    assert not path.chooses
    with pytest.raises(AmbleError, match="no rows were held out"):
        _ = path.best


@pytest.mark.parametrize("how", ["even", "sorted"])
def test_logistic_path(how):
    data = amble.load("breast_cancer")
    path = amble.path(data, agents=6, how=how, lambdas=12, smallest=0.02, held_out=0, tolerance=1e-10)
    X, y = scaled(data.X), data.y == path.problem.labels[1]
    assert path.lambdas[0] == pytest.approx(np.abs(X.T @ (y - y.mean())).max() / len(y), rel=1e-6)
    assert path.nonzero[0] == 0
    A = np.column_stack([X, np.ones(len(y))])
    for strength, w in zip(path.lambdas, path.models, strict=True):  # the conditions of a minimiser
        slope, inside = A.T @ (1 / (1 + np.exp(-A @ w)) - y) / len(y), np.append(w[:-1] != 0, False)
        assert np.abs(slope[inside] + strength * np.sign(w[inside])).max(initial=0) < 1e-8
        assert np.abs(slope[:-1]).max() <= strength * (1 + 1e-7)
        assert abs(slope[-1]) < 1e-8
    central = LogisticRegression(
        C=1 / (path.lambdas[8] * len(y)), l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=10**5
    )
    assert np.abs(central.fit(X, y).coef_[0] - path.models[8, :-1]).max() < 1e-5


def test_each_agent_holds_rows_out_to_choose_by():
    """The choice, computed again from the rows: no agent sees the held-out rows of another, and the best is theirs."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    y = X[:, :3] @ [1.0, -1.0, 0.5] + rng.normal(size=200)
    path = amble.path(amble.Dataset("few matter", "regression", X, y), agents=8, lambdas=30)
    assert 0 < path.best < 29
    assert path.simplest <= path.best
    assert path.nonzero[path.simplest] <= path.nonzero[path.best]
    assert set(np.flatnonzero(path.coef[path.simplest])) >= {0, 1, 2}
    assert path.loss[path.best] < path.loss[0] / 1.5
    assert path.loss[path.best] < path.loss[-1]
    assert (path.loss_error > 0).all()


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_are_those_of_scikit_learn(l1_ratio, weighted):
    """LassoCV and ElasticNetCV with the same folds and penalties, on rows that are scaled as amble scales them."""
    data = amble.load("diabetes")
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(data.y)) if weighted else None
    data = replace(data, sample_weight=weight)
    path = amble.path(data, agents=7, lambdas=25, l1_ratio=l1_ratio, folds=5, seed=3)
    scaling = path.problem.scaling
    X, y = (data.X - scaling.X_mean) / scaling.X_std, (data.y - scaling.y_mean) / scaling.y_std
    parts = path.problem.parts
    held = deal_folds(parts, 5, 3)
    assert np.array_equal(np.sort(np.concatenate(held)), np.arange(len(y)))
    for part in parts:  # every agent deals its own rows evenly
        counts = [np.isin(part, out).sum() for out in held]
        assert max(counts) - min(counts) <= 1
    cv = [(np.setdiff1d(np.arange(len(y)), out), out) for out in held]
    kind, options = (LassoCV, {}) if l1_ratio == 1 else (ElasticNetCV, {"l1_ratio": l1_ratio})
    central = kind(alphas=path.lambdas, cv=cv, **options, **TIGHT).fit(X, y, sample_weight=weight)
    counts = np.array([len(out) if weight is None else weight[out].sum() for out in held])
    expected = np.average(central.mse_path_, axis=1, weights=counts)
    spread = np.average((central.mse_path_ - expected[:, None]) ** 2, axis=1, weights=counts)
    np.testing.assert_allclose(path.loss, expected / 2, rtol=1e-9)
    np.testing.assert_allclose(path.loss_error, np.sqrt(spread / 4) / 2, rtol=1e-7)
    assert path.simplest < path.best < 24
    if weighted:  # without weights scikit-learn counts folds alike, whatever their sizes
        assert path.lambdas[path.best] == central.alpha_


def test_folds_of_equal_size_choose_as_lassocv():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(240, 12))
    y = X[:, :3] @ [1.0, -1.0, 0.5] + 2 * rng.normal(size=240)
    path = amble.path(amble.Dataset("even", "regression", X, y), agents=6, lambdas=30, folds=4, scale=False)
    held = deal_folds(path.problem.parts, 4, 0)
    assert [len(out) for out in held] == [60] * 4
    cv = [(np.setdiff1d(np.arange(240), out), out) for out in held]
    central = LassoCV(alphas=path.lambdas, cv=cv, **TIGHT).fit(X, y)
    assert path.lambdas[path.best] == central.alpha_
    np.testing.assert_allclose(path.coef[path.best], central.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(path.intercept[path.best], central.intercept_, rtol=1e-7)
    np.testing.assert_allclose(path.loss, central.mse_path_.mean(axis=1) / 2, rtol=1e-9)


def test_folds_of_labels():
    """Each fold's loss is the log loss of scikit-learn's model of the other rows."""
    data = amble.load("breast_cancer")
    path = amble.path(data, agents=5, how="sorted", lambdas=[0.02], folds=3, tolerance=1e-10)
    X, held = scaled(data.X), deal_folds(path.problem.parts, 3, 0)
    losses, accuracy = [], []
    for out in held:
        kept = np.setdiff1d(np.arange(len(X)), out)
        central = LogisticRegression(C=1 / (0.02 * len(kept)), l1_ratio=1.0, solver="saga", tol=1e-9, max_iter=10**5)
        central.fit(X[kept], data.y[kept])
        losses.append(log_loss(data.y[out], central.predict_proba(X[out])))
        accuracy.append(central.score(X[out], data.y[out]))
    sizes = [len(out) for out in held]
    assert path.loss[0] == pytest.approx(np.average(losses, weights=sizes), rel=1e-6)
    assert path.metric[0] == pytest.approx(np.average(accuracy, weights=sizes))


def test_a_label_of_one_row_is_always_trained_on():
    rng = np.random.default_rng(0)
    y = np.array(["rare"] + ["a", "b"] * 20)
    path = amble.path(
        amble.Dataset("rare", "classification", rng.normal(size=(41, 3)), y), agents=4, lambdas=3, folds=5
    )
    assert np.isfinite(path.loss).all()
    assert path.coef.shape == (3, 3, 3)


def test_a_problem_may_have_folds():
    data = amble.load("diabetes")
    options = {"lambdas": [0.1, 0.01], "folds": 4}
    apart = amble.path(data, agents=5, **options)
    problem = amble.path(amble.split(data, agents=5, test=0, ridge=0.0), **options)
    np.testing.assert_array_equal(problem.loss, apart.loss)
    ridged = amble.path(amble.split(data, agents=5, ridge=1.0), **options)
    assert (ridged.loss > apart.loss).all()


def test_progress_counts_all_folds(monkeypatch):
    seen = []

    class Counted(path_module.Meter):
        def update(self, done, total=None):
            super().update(done, total)
            seen.append((done, self.total))

    monkeypatch.setattr(path_module, "Meter", Counted)
    amble.path(amble.load("diabetes"), agents=3, lambdas=4, folds=3)
    assert seen == [(k, 16) for k in range(1, 17)]


def test_a_problem_is_scored_on_its_own_test_rows():
    data = amble.load("diabetes")
    problem = amble.split(data, agents=4, ridge=0.0, unpenalised=["bmi"], positive=["bp"])
    path = amble.path(problem, lambdas=10)
    assert path.metric == pytest.approx([problem.metric(w) for w in path.models])
    held = problem.heldout
    expected = [np.mean((held.X @ w - held.y) ** 2) / 2 for w in path.models]
    assert path.loss == pytest.approx(expected, rel=1e-12)
    assert path.coef[0, 2] != 0  # bmi has no penalty
    assert path.nonzero[0] == 1
    assert (path.coef[:, 3] >= 0).all()


def test_softmax_path():
    X, y = load_iris(return_X_y=True)
    path = amble.path(amble.Dataset("iris", "classification", X, y), agents=3, lambdas=5, smallest=0.01)
    assert path.coef.shape == (5, 3, 4)
    assert path.intercept.shape == (5, 3)
    assert path.nonzero[0] == 0
    assert path.metric[-1] > 0.9
    assert np.array_equal(path.predict(X, 4), np.argmax(X @ path.coef[4].T + path.intercept[4], axis=1))
    central = LogisticRegression(
        C=1 / (path.lambdas[3] * len(y)), l1_ratio=1.0, solver="saga", tol=1e-10, max_iter=10**6
    )
    assert np.abs(central.fit(scaled(X), y).coef_ - path.models[3].reshape(3, 5)[:, :4]).max() < 1e-5
    assert "coef x3 of 2" in path.columns()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"l1_ratio": 0}, "l1_ratio=0 was given; it must be a number above 0 up to 1"),
        ({"held_out": 1}, "held_out=1 was given; it must be a number from 0 to below 1"),
        ({"folds": 1}, "folds=1 was given; give a whole number, two or more"),
        ({"folds": 2.5}, "folds=2.5 was given; give a whole number, two or more"),
        ({"folds": 5, "held_out": 0.1}, "folds=5 and held_out=0.1 were given; each holds rows out: give one"),
        ({"folds": 443}, "the agents have too few rows to hold fold .* of 443 out; give fewer folds"),
        ({"lambdas": 0}, "lambdas=0 was given"),
        ({"lambdas": [-1.0]}, "finite numbers, zero or more"),
        ({"lambdas": "many"}, "lambdas='many' was given"),
    ],
)
def test_bad_paths(options, message):
    with pytest.raises(AmbleError, match=message):
        amble.path(amble.load("diabetes"), agents=3, **options)


def test_a_problem_is_given_alone():
    problem = amble.split(amble.load("diabetes"), agents=3)
    with pytest.raises(AmbleError, match="positive was given with a Problem"):
        amble.path(problem, positive=True)
    own = amble.Problem.from_objectives([problem.objective(i) for i in range(3)], problem.dimension)
    with pytest.raises(AmbleError, match="made from rows"):
        amble.path(own)


@pytest.mark.parametrize("words", [[], ["--folds", "3"]])
def test_the_command(tmp_path, words):
    out = tmp_path / "out"
    words = ["--agents", "5", "--lambdas", "30", "--positive", "bmi,8", *words]
    done = CliRunner().invoke(app, ["path", *words, "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "best" in done.output
    assert "simplest within an error" in done.output
    with (out / "path.csv").open() as file:
        table = list(csv.DictReader(file))
    assert len(table) == 30
    assert all(float(row["coef bmi"]) >= 0 for row in table)
    assert table[0]["nonzero"] == "0"
    assert (out / "path.png").read_bytes().startswith(b"\x89PNG")
