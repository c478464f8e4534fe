"""f(w) = sum_l rows_l h(x_l.w - y_l) + ridge/2 |w without intercept|^2.

h(r) = r^2 / 2 up to |r| = 1.35, from there on the straight line 1.35 |r| - 1.35^2 / 2: a residual that is larger pulls
no harder. Targets are in units of their standard deviation, unless they are not scaled.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from amble.arrays import Array, namespace
from amble.losses import newton
from amble.losses.rows import largest, pooled

DELTA = 1.35  # 95 % as efficient as least squares where residuals are normal with deviation 1


class Huber(NamedTuple):
    """Mean loss that grows as the square of small residuals and in proportion to large ones."""

    X: Array
    y: Array
    rows: Array  # the weight of a row: share/d
    ridge: Array  # a coordinate: share * ridge, zero for the intercept
    L: Array  # largest eigenvalue of X' diag(rows) X + ridge

    @staticmethod
    def fits(classes: int) -> bool:
        return classes == 0

    @staticmethod
    def unknowns(columns: int, classes: int) -> int:  # noqa: ARG004 - as of every loss
        return columns

    @staticmethod
    def keeps_rows() -> bool:
        return True

    @staticmethod
    def link() -> str:
        return "identity"

    @staticmethod
    def flaw(y: Array) -> str | None:  # noqa: ARG004 - takes any amounts
        return None

    @staticmethod
    def predict(W: Array, X: Array) -> Array:
        return W @ X.T

    @staticmethod
    def build(X: Any, y: Any, rows: Any, ridge: Any, classes: int = 0) -> "Huber":  # noqa: ARG004 - as above
        """The loss of one agent, or of several stacked along the first axes.

        Parameters
        ----------
        X : rows (.., d, p)
        y : targets (.., d)
        rows : the weight of each row (.., d): share/d, or zero for padding
        ridge : the penalty on each coordinate (.., p)
        classes : none

        Returns
        -------
        Huber

        Example
        -------
        >>> import numpy as np
        >>> import amble
        >>> X, rows, ridge = np.array([[0.0], [1.0], [2.0]]), np.full(3, 1 / 3), np.zeros(1)
        >>> f = amble.Huber.build(X, np.array([0.0, 1.0, 3.0]), rows, ridge)
        >>> round(float(f.value(np.zeros(1))), 3)
        1.213
        """
        return Huber(X, y, rows, ridge, largest(X, rows, ridge))

    def pooled(self) -> "Huber":
        return pooled(self, ("X", "y", "rows"))

    def value(self, w: Array) -> Array:
        r = self._residuals(w)
        small = namespace(w).clip(r, -DELTA, DELTA)
        return self.rows @ (small * (r - small / 2)) + 0.5 * self.ridge @ (w * w)

    def grad(self, w: Array) -> Array:
        return (self.rows * namespace(w).clip(self._residuals(w), -DELTA, DELTA)) @ self.X + self.ridge * w

    def hessian(self, w: Array) -> Array:
        return self.X.T @ (self._bend(w)[:, None] * self.X) + namespace(w).diag(self.ridge)

    def hessian_times(self, w: Array) -> Callable[[Array], Array]:
        bend = self._bend(w)
        return lambda v: (bend * (self.X @ v)) @ self.X + self.ridge * v

    def prox(self, center: Array, weight: Array, start: Array) -> Array:
        return newton.minimise(self, center, weight, start)

    def excess(self, w: Array) -> Array:
        """What the rows on the straight line add to the Hessian, so that the quadratic at w is nowhere below the loss."""
        size = abs(self._residuals(w))
        rows = namespace(w).where(size > DELTA, self.rows * DELTA / namespace(w).maximum(size, DELTA), 0.0)
        return self.X.T @ (rows[:, None] * self.X)

    def _residuals(self, w: Array) -> Array:
        return self.X @ w - self.y

    def _bend(self, w: Array) -> Array:
        return namespace(w).where(abs(self._residuals(w)) <= DELTA, self.rows, 0.0)

    @property
    def quadratic(self) -> bool:
        return False

    @property
    def curvature(self) -> Array:
        return namespace(self.ridge).mean(self.curvatures, axis=-1)

    @property
    def curvatures(self) -> Array:
        return (self.rows[..., None] * self.X * self.X).sum(axis=-2) + self.ridge

    @property
    def share(self) -> Array:
        return namespace(self.rows).sum(self.rows, axis=-1)

    @property
    def smoothness(self) -> Array:
        return self.L

    def flops(self, kind: str) -> Array:
        return newton.flops(kind, (self.rows > 0).sum(axis=-1), self.ridge.shape[-1])
