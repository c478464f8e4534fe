"""How long the estimators take beside scikit-learn's own with the same coefficients: python benchmarks/estimators.py

10,000 rows of 20 columns; both are fitted in turn, after a first fit each, and the medians are compared.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import statistics
import time

import numpy as np
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, PoissonRegressor, Ridge

import amble

ROWS, COLUMNS, TIMES = 10_000, 20, 15


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


def main():
    print(f"{'':<30} {'amble ms':>9} {'scikit-learn ms':>16} {'ratio':>6} {'difference':>11}")
    for name, X, y, ours, theirs in pairs():
        spent = {ours: [], theirs: []}
        for estimator in [ours, theirs] * (TIMES + 1):
            began = time.process_time()
            estimator.fit(X, y)
            spent[estimator].append(1e3 * (time.process_time() - began))
        mine, other = (statistics.median(each[1:]) for each in spent.values())
        difference = abs(ours.coef_ - theirs.coef_).max()
        print(f"{name:<30} {mine:9.1f} {other:16.1f} {mine / other:6.1f} {difference:11.0e}")


if __name__ == "__main__":
    main()
