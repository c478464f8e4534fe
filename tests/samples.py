"""Objectives, rows and problems that several tests use."""

import numpy as np
from sklearn.datasets import load_iris

import amble
from amble.losses import LeastSquares, Logistic, Softmax

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
