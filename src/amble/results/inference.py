"""Covariances and likelihoods from sums over rows, as of one table with all of them.

With H the Hessian of half the deviance and B the sum of the outer products of gradients, by row or by agent,

    model     dispersion H^-1 (of gamma, with the Hessian's mean over y)
    robust    H^-1 B H^-1, B by row (HC0)
    cluster   H^-1 B H^-1 G/(G-1) (n-1)/(n-k), B by agent, G agents, k coefficients

With more than two classes all are for the differences to the first class, as the likelihood knows no more.
"""

import math

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, few, unknown
from amble.results.judging import null_deviance
from amble.results.partial import TIES
from amble.results.sums import SQUARES_UP_TO, Sums, unpacked

COVARIANCES = ("model", "robust", "cluster", "none")
DISPERSED = ("least-squares", "gamma")  # losses whose likelihood has a dispersion that is estimated
SINGULAR = 1e-12  # of an information matrix with ones in its diagonal, the least eigenvalue that is not zero
FAR = 0.1  # standard errors from the optimum, from where on a model's are those of another


class NoErrors(AmbleError):
    """A model has no standard errors of this kind. `why` says so without the way round it."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why}, or use cov='none' for the table without.")
        self.why = why


def inverse(triangle: Array, classes: int, names: tuple[str, ...]) -> Array:
    """Of an information matrix; the first class left out. Refused by name where columns depend on each other."""
    if not len(triangle):
        raise NoErrors(f"a model of more than {SQUARES_UP_TO} unknowns has no standard errors here; name fewer columns")
    H = block(triangle, classes)
    scale = np.sqrt(np.where(np.diagonal(H) > 0, np.diagonal(H), 1.0))
    values, vectors = np.linalg.eigh(H / scale / scale[:, None])
    if not values[0] > SINGULAR * len(H):
        heavy = np.abs(vectors[:, 0])
        culprits = dict.fromkeys(names[k % len(names)] for k in np.flatnonzero(heavy > 0.1 * heavy.max()))
        raise NoErrors(
            f"the rows do not determine the coefficients of {few(list(culprits))}: a column is constant, or a "
            "combination of others (or of the labels); leave one out and train again"
        )
    return np.asarray((vectors / values) @ vectors.T / scale / scale[:, None])


def block(triangle: Array, classes: int) -> Array:
    """The matrix; with several classes without the first one's rows and columns."""
    H = unpacked(triangle)
    start = len(H) // classes if classes > 1 else 0
    return H[start:, start:]


def covariance(loss: str, sums: Sums, cov: str, classes: int, names: tuple[str, ...]) -> Array:
    """Of the estimate, in the model's own units."""
    if cov == "model" and loss == "huber":
        raise AmbleError("huber is no likelihood, so its errors follow from the rows alone; give cov='robust'.")
    H = inverse(sums.hessian, classes, names)
    k, n, G = len(H), float(sums.train.weight), float(sums.agents)
    if cov == "model":
        least = inverse(sums.expected, classes, names) if loss == "gamma" else H
        return dispersion(loss, sums, k) * least
    if cov == "robust":
        return np.asarray(H @ block(sums.by_row, classes) @ H)
    if G < 2:
        raise AmbleError(f"cov='cluster' was given for {G:.0f} agent; errors by agent need at least two.")
    return np.asarray(H @ block(sums.by_agent, classes) @ H * (G / (G - 1) * (n - 1) / (n - k)))


def check_cov(cov: str) -> None:
    if cov not in COVARIANCES:
        raise unknown("covariance", cov, COVARIANCES)


def distance(loss: str, sums: Sums, classes: int, names: tuple[str, ...]) -> float:
    """From the optimum of all rows, in standard errors: sqrt(g' H^-1 g / dispersion) for the gradient g."""
    H = inverse(sums.hessian, classes, names)
    g = sums.gradient[len(sums.gradient) - len(H) :]
    spread = dispersion(loss, sums, len(H)) if loss in DISPERSED else 1.0
    return math.sqrt(max(float(g @ H @ g), 0.0) / spread) if spread > 0 else 0.0


def dispersion(loss: str, sums: Sums, k: int) -> float:
    """In the model's own units: Pearson's chi2 over the degrees of freedom."""
    if loss not in DISPERSED:
        return 1.0
    freedom = float(sums.train.weight) - k
    if freedom <= 0:
        raise NoErrors(f"there are {k} coefficients and {float(sums.train.weight):g} rows; give more rows")
    return float(sums.pearson) / freedom


def likelihood(loss: str, sums: Sums, k: int, y_std: float) -> tuple[float, float] | None:
    """The log-likelihood of the model, and that of the model with nothing but an intercept; None: there is none."""
    train, S = sums.train, float(sums.train.weight)
    null = null_deviance(loss, sums, y_std, True) / 2
    ours = float(train.deviance)
    if loss == "huber":
        return None
    if loss in TIES or len(sums.labels):
        return -ours, -null
    if loss == "poisson":
        return float(sums.saturated) - ours, float(sums.saturated) - null
    if loss == "gamma":
        shape = 1 / dispersion(loss, sums, k)
        top = S * (shape * math.log(shape) - math.lgamma(shape) - shape) + float(sums.saturated)
        return top - shape * ours, top - shape * null
    return tuple(-S / 2 * (math.log(2 * math.pi * total / S) + 1) for total in (2 * ours * y_std**2, 2 * null))  # type: ignore[return-value]
