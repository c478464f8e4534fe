"""f(w) = sum_l rows_l log(1 + exp(-s_l x_l.w)) + ridge/2 |w without intercept|^2, labels s in {-1, +1}."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, namespace
from amble.losses import newton
from amble.losses.rows import pooled


class Logistic(NamedTuple):
    """Mean log loss of two classes."""

    X: Array
    s: Array  # +1 or -1; padding has row weight zero
    rows: Array  # the weight of a row: share/d
    ridge: Array  # a coordinate: share * ridge, zero for the intercept
    L: Array  # largest eigenvalue of X' diag(rows) X / 4 + ridge

    @staticmethod
    def fits(classes: int) -> bool:
        return classes == 2

    @staticmethod
    def unknowns(columns: int, classes: int) -> int:  # noqa: ARG004 - as of every loss
        return columns

    @staticmethod
    def keeps_rows() -> bool:
        return True

    @staticmethod
    def link() -> str:
        return "logit"

    @staticmethod
    def predict(W: Array, X: Array) -> Array:
        return (W @ X.T > 0).astype(np.intp)

    @staticmethod
    def build(X: Any, y: Any, rows: Any, ridge: Any, classes: int = 2) -> "Logistic":  # noqa: ARG004 - as above
        """The loss of one agent, or of several stacked along the first axes.

        Parameters
        ----------
        X : rows (.., d, p)
        y : labels (.., d), 0 or 1
        rows : the weight of each row (.., d): share/d, or zero for padding
        ridge : the penalty on each coordinate (.., p)
        classes : two

        Returns
        -------
        Logistic

        Example
        -------
        >>> import numpy as np
        >>> import amble
        >>> X, rows, ridge = np.array([[0.0], [1.0], [2.0]]), np.full(3, 1 / 3), np.zeros(1)
        >>> f = amble.Logistic.build(X, np.array([0, 1, 1]), rows, ridge)
        >>> round(float(f.value(np.zeros(1))), 3)
        0.693
        """
        gram = np.swapaxes(X * (rows / 4)[..., None], -1, -2) @ X + ridge[..., None] * np.eye(X.shape[-1])
        return Logistic(X, np.where(y > 0, 1.0, -1.0), rows, ridge, np.linalg.eigvalsh(gram)[..., -1])

    def pooled(self) -> "Logistic":
        return pooled(self, ("X", "s", "rows"))

    def value(self, w: Array) -> Array:
        xp = namespace(w)
        losses = xp.logaddexp(0.0, -self.s * (self.X @ w))
        return self.rows @ losses + 0.5 * self.ridge @ (w * w)

    def grad(self, w: Array) -> Array:
        wrong = sigmoid(-self.s * (self.X @ w))  # the probability given to the other class
        return (-self.rows * self.s * wrong) @ self.X + self.ridge * w

    def hessian(self, w: Array) -> Array:
        xp = namespace(w)
        return self.X.T @ (self._bend(w)[:, None] * self.X) + xp.diag(self.ridge)

    def hessian_times(self, w: Array) -> Callable[[Array], Array]:
        bend = self._bend(w)
        return lambda v: (bend * (self.X @ v)) @ self.X + self.ridge * v

    def prox(self, center: Array, weight: Array, start: Array) -> Array:
        return newton.minimise(self, center, weight, start)

    def stride(self, step: Array) -> Array:
        """Half of how far a step moves the scores, in the root mean square over rows: a single far row bends little."""
        xp = namespace(step)
        return xp.sqrt(self.rows @ (self.X @ step) ** 2 / xp.sum(self.rows)) / 2

    def _bend(self, w: Array) -> Array:
        chance = sigmoid(self.X @ w)
        return self.rows * chance * (1 - chance)

    @property
    def quadratic(self) -> bool:
        return False

    @property
    def curvature(self) -> Array:
        xp = namespace(self.ridge)
        squares = xp.sum(self.X * self.X, axis=-1)
        trace = xp.sum(self.rows * squares, axis=-1) / 4 + xp.sum(self.ridge, axis=-1)
        return trace / self.ridge.shape[-1]

    @property
    def curvatures(self) -> Array:
        return (self.rows[..., None] * self.X * self.X).sum(axis=-2) / 4 + self.ridge

    @property
    def share(self) -> Array:
        return namespace(self.rows).sum(self.rows, axis=-1)

    @property
    def smoothness(self) -> Array:
        return self.L

    def flops(self, kind: str) -> Array:
        return newton.flops(kind, (self.rows > 0).sum(axis=-1), self.ridge.shape[-1])


def sigmoid(t: Array) -> Array:
    """1 / (1 + exp(-t)), without overflow on either side."""
    xp = namespace(t)
    small = xp.exp(-xp.abs(t))
    return xp.where(t >= 0, 1.0, small) / (1.0 + small)
