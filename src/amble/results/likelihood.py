"""What one row adds to a likelihood: half its deviance, with the slope and the bend of that in the linear predictor.

eta = x.w + offset is the linear predictor, mu the mean that it predicts. Half the deviance of a row is

    least-squares   1/2 (y - eta)^2
    logistic        log(1 + exp(-s eta)), s = +1 or -1
    softmax         log sum_c exp(eta_c) - eta_y
    poisson         y log(y/mu) - y + mu, mu = exp(eta)
    gamma           log(mu/y) + y/mu - 1, mu = exp(eta)
    huber           1/2 r^2 up to |r| = t, then t |r| - t^2/2, r = eta - y: no deviance of any distribution

The row's loss and its half deviance differ by what depends on y alone, so slopes and bends are the loss's.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from amble.arrays import Array
from amble.losses.huber import DELTA
from amble.losses.logistic import sigmoid

Entries = Callable[[int, int], Array]  # (d,) for each pair of linear predictors


class Rows(NamedTuple):
    """One entry per row, and one column for each of the K linear predictors: one, or one per class."""

    deviance: Array  # (d,) half of it
    slope: Array  # (d, K)
    bend: Entries  # with several classes there are too many for one array
    expected: Entries  # the mean of the bend over y
    mean: Array  # (d, K): mu
    pearson: Array  # (d,): (y - mu)^2 over the variance that mu implies


def rows_of(loss: str, eta: Array, y: Array) -> Rows:
    """Of rows with these linear predictors (d, K) and targets in the model's units."""
    return KINDS[loss](eta, y)


def _single(deviance: Array, slope: Array, bend: Array, expected: Array, mean: Array, pearson: Array) -> Rows:
    return Rows(deviance, slope[:, None], lambda *_: bend, lambda *_: expected, mean[:, None], pearson)


def least_squares(eta: Array, y: Array) -> Rows:
    off = eta[:, 0] - y
    one = np.ones(len(y))
    return _single(off**2 / 2, off, one, one, eta[:, 0], off**2)


def huber(eta: Array, y: Array) -> Rows:
    off = eta[:, 0] - y
    inside = np.abs(off) <= DELTA
    value = np.where(inside, off**2 / 2, DELTA * np.abs(off) - DELTA**2 / 2)
    bend = inside.astype(np.float64)
    return _single(value, np.clip(off, -DELTA, DELTA), bend, bend, eta[:, 0], off**2)


def logistic(eta: Array, y: Array) -> Rows:
    s = np.where(y > 0, 1.0, -1.0)
    chance, wrong = sigmoid(eta[:, 0]), sigmoid(-s * eta[:, 0])
    bend = chance * sigmoid(-eta[:, 0])
    return _single(np.logaddexp(0.0, -s * eta[:, 0]), -s * wrong, bend, bend, chance, wrong / sigmoid(s * eta[:, 0]))


def softmax(eta: Array, y: Array) -> Rows:
    K = eta.shape[1]
    Y = (y[:, None] == np.arange(K)).astype(np.float64)
    lead = eta - eta.max(axis=1, keepdims=True)
    total = np.log(np.exp(lead).sum(axis=1))
    P = np.exp(lead - total[:, None])
    off = P - Y

    def bend(a: int, b: int) -> Array:
        return np.asarray(P[:, a] * (float(a == b) - P[:, b]))

    pearson = (off**2 / np.maximum(P, np.finfo(float).tiny)).sum(axis=1)
    return Rows(total - (lead * Y).sum(axis=1), off, bend, bend, P, pearson)


def poisson(eta: Array, y: Array) -> Rows:
    mu = np.exp(eta[:, 0])
    return _single(times_log(y) - y * eta[:, 0] - y + mu, mu - y, mu, mu, mu, (y - mu) ** 2 / mu)


def gamma(eta: Array, y: Array) -> Rows:
    mu = np.exp(eta[:, 0])
    ratio = y / mu
    return _single(ratio - 1 - np.log(ratio), 1 - ratio, ratio, np.ones(len(y)), mu, (ratio - 1) ** 2)


def times_log(y: Array) -> Array:
    """y log y, zero at zero."""
    return y * np.log(np.where(y > 0, y, 1.0))


KINDS: dict[str, Callable[[Array, Array], Rows]] = {
    "least-squares": least_squares,
    "logistic": logistic,
    "softmax": softmax,
    "poisson": poisson,
    "gamma": gamma,
    "huber": huber,
}
