"""Real losses for the fault simulator. A plane separates the few rows of each agent, but not the rows of all."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from amble.losses import LOSSES

FEATURES, ROWS, RIDGE, CLASSES = 2, 8, 1e-2, 3
NAMES = tuple(name for name, kind in LOSSES.items() if kind.fits(2) or kind.fits(CLASSES))  # rows have labels here


def classes_of(name: str) -> int:
    return CLASSES if LOSSES[name].fits(CLASSES) else 2


def unknowns(name: str) -> int:
    return int(LOSSES[name].unknowns(FEATURES, classes_of(name)))


def some_loss(name: str, seed: int) -> Any:
    """The loss of one agent; agents differ in their rows, and slightly in their true model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, FEATURES)) + rng.normal(size=FEATURES)
    w = np.array([[2.0, -1.0, 0.0], [0.0, 1.0, -2.0]])
    rows, ridge = np.full(ROWS, 1 / ROWS), np.full(FEATURES, RIDGE)
    if classes_of(name) == CLASSES:
        y = np.argmax(X @ w + rng.gumbel(size=(ROWS, CLASSES)), axis=1) * 1.0
    else:
        y = (X @ w[:, 0] + rng.logistic(size=ROWS) > 0) * 1.0
    return LOSSES[name].build(X, y, rows, ridge, classes_of(name))


def optimum(losses: Sequence[Any], dimension: int) -> Any:
    """Newton's method with a line search on the sum of all: an independent answer, without tokens."""
    w = np.zeros(dimension)
    for _ in range(100):
        g, H = sum(f.grad(w) for f in losses), sum(f.hessian(w) for f in losses)
        step, t, before = np.linalg.solve(H, -g), 1.0, sum(f.value(w) for f in losses)
        while t > 1e-9 and sum(f.value(w + t * step) for f in losses) > before + 1e-4 * t * (g @ step):
            t /= 2
        w = w + t * step
        if np.linalg.norm(step) <= 1e-13 * (1 + np.linalg.norm(w)):
            break
    return w
