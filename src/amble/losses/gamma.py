"""f(w) = sum_l rows_l [ y_l / mu_l - 1 - log(y_l / mu_l) ] + ridge/2 |w without intercept|^2, mu_l = exp(x_l.w + o_l).

Half the deviance of amounts y with means mu and a spread that grows with the mean. Its curvature y / mu grows where the
mean is too small, so that it has no global smoothness L.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, namespace
from amble.losses import newton
from amble.losses.log_link import excess, growth
from amble.losses.rows import largest, pooled, reach


class Gamma(NamedTuple):
    """Half the mean deviance of amounts above zero; the model is the logarithm of their mean."""

    X: Array
    log_y: Array  # less the offset of the row, which is added to x.w
    rows: Array  # the weight of a row: share/d
    ridge: Array  # a coordinate: share * ridge, zero for the intercept
    L: Array  # largest eigenvalue of the Hessian with the means min(y, exp(offset)): of the region, no bound

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
        return "log"

    @staticmethod
    def flaw(y: Array) -> str | None:
        return f"amounts above zero, and there is {y.min():g}" if (y <= 0).any() else None

    @staticmethod
    def predict(W: Array, X: Array, offset: Array | float = 0.0) -> Array:
        return growth(W @ X.T + offset)

    @staticmethod
    def build(X: Any, y: Any, rows: Any, ridge: Any, classes: int = 0, offset: Any = 0.0) -> "Gamma":  # noqa: ARG004 - as above
        """The loss of one agent, or of several stacked along the first axes.

        Parameters
        ----------
        X : rows (.., d, p)
        y : amounts (.., d), above zero
        rows : the weight of each row (.., d): share/d, or zero for padding
        ridge : the penalty on each coordinate (.., p)
        classes : none
        offset : what is added to x.w (.., d), such as the logarithm of the exposure

        Returns
        -------
        Gamma

        Example
        -------
        >>> import numpy as np
        >>> import amble
        >>> X, rows, ridge = np.array([[0.0], [1.0], [2.0]]), np.full(3, 1 / 3), np.zeros(1)
        >>> f = amble.Gamma.build(X, np.array([1.0, 2.0, 3.0]), rows, ridge)
        >>> round(float(f.value(np.zeros(1))), 3)
        0.403
        """
        offset = np.broadcast_to(np.asarray(offset, np.float64), rows.shape)
        log_y = np.log(np.where(rows > 0, y, 1.0)) - offset  # padding has a target of zero
        return Gamma(X, log_y, rows, ridge, largest(X, rows * np.maximum(growth(log_y), 1.0), ridge))

    def pooled(self) -> "Gamma":
        return pooled(self, ("X", "log_y", "rows"))

    def value(self, w: Array) -> Array:
        return self.rows @ excess(self.log_y - self.X @ w) + 0.5 * self.ridge @ (w * w)

    def grad(self, w: Array) -> Array:
        return (self.rows * (1 - growth(self.log_y - self.X @ w))) @ self.X + self.ridge * w

    def hessian(self, w: Array) -> Array:
        return self.X.T @ (self._bend(w)[:, None] * self.X) + namespace(w).diag(self.ridge)

    def hessian_times(self, w: Array) -> Callable[[Array], Array]:
        bend = self._bend(w)
        return lambda v: (bend * (self.X @ v)) @ self.X + self.ridge * v

    def prox(self, center: Array, weight: Array, start: Array) -> Array:
        return newton.minimise(self, center, weight, start)

    def reach(self, step: Array) -> Array:
        return reach(self.X, step)

    def _bend(self, w: Array) -> Array:
        return self.rows * growth(self.log_y - self.X @ w)

    @property
    def quadratic(self) -> bool:
        return False

    @property
    def curvature(self) -> Array:
        return namespace(self.ridge).mean(self.curvatures, axis=-1)

    @property
    def curvatures(self) -> Array:
        bend = self.rows * growth(self.log_y)
        return (bend[..., None] * self.X * self.X).sum(axis=-2) + self.ridge

    @property
    def share(self) -> Array:
        return namespace(self.rows).sum(self.rows, axis=-1)

    @property
    def local_smoothness(self) -> Array:
        return self.L

    def flops(self, kind: str) -> Array:
        return newton.flops(kind, (self.rows > 0).sum(axis=-1), self.ridge.shape[-1])
