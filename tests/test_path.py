"""Regularisation paths by a token, against scikit-learn's on the pooled rows."""

import csv

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import Lasso, LogisticRegression, enet_path, lasso_path
from typer.testing import CliRunner

import amble
from amble import AmbleError
from amble.cli import app

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


def test_the_command(tmp_path):
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["path", "--agents", "5", "--lambdas", "30", "--positive", "bmi,8", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "best" in done.output
    assert "simplest within an error" in done.output
    with (out / "path.csv").open() as file:
        table = list(csv.DictReader(file))
    assert len(table) == 30
    assert all(float(row["coef bmi"]) >= 0 for row in table)
    assert table[0]["nonzero"] == "0"
    assert (out / "path.png").read_bytes().startswith(b"\x89PNG")
