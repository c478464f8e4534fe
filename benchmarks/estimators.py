"""How long the estimators take beside scikit-learn's own with the same coefficients: python benchmarks/estimators.py

10,000 rows of 20 columns; both are fitted in turn, after a first fit each. Half a minute.
"""

import os

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, before anything starts threads

import sys
from collections.abc import Iterator
from functools import partial

import numpy as np
from measure import Row, clocked, compare, each, parser, table
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, PoissonRegressor, Ridge

import amble

ROWS, COLUMNS = 10_000, 20
DIFFERENCE_MAX = 1e-3  # of a coefficient; scikit-learn stops at its own tolerances


def pairs():
    """Name, rows, targets, amble's estimator and scikit-learn's."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(ROWS, COLUMNS))
    eta = X @ generator.normal(size=COLUMNS) / 2
    amounts, labels = eta + generator.normal(size=ROWS), eta + generator.logistic(size=ROWS) > 0
    counts, classes = generator.poisson(np.exp(eta / 4)), np.digitize(eta + generator.logistic(size=ROWS), [-1, 1])
    C = 1 / (1e-3 * ROWS)
    yield "Ridge", X, amounts, amble.Regressor(alpha=1e-3), Ridge(alpha=1e-3 * ROWS)
    yield "Lasso", X, amounts, amble.Regressor(alpha=0.1, l1_ratio=1.0), Lasso(alpha=0.1)
    yield "ElasticNet", X, amounts, amble.Regressor(alpha=0.1, l1_ratio=0.5), ElasticNet(alpha=0.1, l1_ratio=0.5)
    yield "PoissonRegressor", X, counts, amble.Regressor("poisson", alpha=1e-3), PoissonRegressor(alpha=1e-3)
    yield "LogisticRegression", X, labels, amble.Classifier(alpha=1e-3), LogisticRegression(C=C)
    yield "LogisticRegression, 3 classes", X, classes, amble.Classifier(alpha=1e-3), LogisticRegression(C=C)


def rows() -> Iterator[Row]:
    for name, X, y, ours, theirs in pairs():
        own, other = (clocked(each(partial(estimator.fit, X, y))) for estimator in (ours, theirs))
        size = f"{ROWS:,} rows, {COLUMNS} columns"
        yield compare(f"a fit of amble's estimator, {size}", own, f"scikit-learn's {name}", other, "ms")
        difference = abs(ours.coef_ - theirs.coef_).max()
        if not difference <= DIFFERENCE_MAX:
            sys.exit(f"{name}: the coefficients are {difference:.0e} apart, so the two fits are not the same.")


if __name__ == "__main__":
    table(rows(), parser(__doc__).parse_args().json)
