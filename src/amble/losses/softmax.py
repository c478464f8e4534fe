"""f(w) = sum_l rows_l [ log sum_c exp(W_c.x_l) - W_{y_l}.x_l ] + ridge/2 |w without intercepts|^2, W = w as (C, p).

Adding the same number to all classes' intercepts changes no probability, so the loss alone has a line of minimisers.
One more term, 1/2 sum_j pin_j (sum_c W_cj)^2 over the coordinates without a penalty, is zero at the shortest one only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, namespace
from amble.losses import newton
from amble.losses.penalty import Penalty
from amble.losses.rows import pooled


class Softmax(NamedTuple):
    """Mean log loss of C classes; the unknown w is the (C, p) weight matrix, row after row."""

    X: Array
    Y: Array  # one-hot labels (d, C)
    rows: Array  # the weight of a row: share/d
    ridge: Array  # a coordinate of w: share * ridge, zero for intercepts
    pin: Array  # a coordinate of a class: zero with a ridge, else as stiff as the loss can be there
    L: Array  # largest eigenvalue of X' diag(rows) X / 2, plus the largest ridge

    @staticmethod
    def fits(classes: int) -> bool:
        return classes >= 2

    @staticmethod
    def unknowns(columns: int, classes: int) -> int:
        return columns * classes

    @staticmethod
    def keeps_rows() -> bool:
        return True

    @staticmethod
    def link() -> str:
        return "logit"

    @staticmethod
    def predict(W: Array, X: Array) -> Array:
        return (W.reshape(-1, X.shape[1]) @ X.T).reshape(len(W), -1, len(X)).argmax(axis=1)

    @staticmethod
    def build(X: Any, y: Any, rows: Any, ridge: Any, classes: int) -> "Softmax":
        """The loss of one agent, or of several stacked along the first axes.

        Parameters
        ----------
        X : rows (.., d, p)
        y : labels (.., d), 0 to classes - 1
        rows : the weight of each row (.., d): share/d, or zero for padding
        ridge : the penalty on each coordinate (.., p)
        classes : how many there are

        Returns
        -------
        Softmax

        Example
        -------
        >>> import numpy as np
        >>> import amble
        >>> X, rows, ridge = np.array([[0.0], [1.0], [2.0]]), np.full(3, 1 / 3), np.zeros(1)
        >>> f = amble.Softmax.build(X, np.array([0, 1, 2]), rows, ridge, classes=3)
        >>> round(float(f.value(np.zeros(3))), 3)
        1.099
        """
        Y = (y[..., None] == np.arange(classes)).astype(np.float64)
        gram = np.swapaxes(X * (rows / 2)[..., None], -1, -2) @ X
        pin = np.where(ridge == 0, np.diagonal(gram, axis1=-2, axis2=-1), 0.0) / classes
        L = np.linalg.eigvalsh(gram)[..., -1] + ridge.max(axis=-1)
        return Softmax(X, Y, rows, np.concatenate([ridge] * classes, axis=-1), pin, L)

    def under(self, penalty: Penalty) -> "Softmax":
        """Without pins where another penalty than the ridge chooses among the minimisers."""
        first = self.pin.shape[-1]  # unknowns of the first class; the others' are alike
        return self._replace(pin=np.where((penalty.l1 > 0)[:first] | penalty.positive[:first], 0.0, self.pin))

    def pooled(self) -> "Softmax":
        return pooled(self, ("X", "Y", "rows"))

    def value(self, w: Array) -> Array:
        """Each row's loss is log(1 + sum_c exp(gap_c)), gap the lead of a wrong class over the right one: computed so,
        a row that is right by far has a loss that is small, not rounded away."""
        xp = namespace(w)
        scores = self._scores(w)
        gap = scores - xp.sum(scores * self.Y, axis=-1)[:, None]
        wrong = 1 - self.Y
        lead = xp.maximum(xp.max(xp.where(wrong > 0, gap, -xp.inf), axis=-1), 0.0)
        rest = xp.sum(wrong * xp.exp(xp.where(wrong > 0, gap - lead[:, None], 0.0)), axis=-1)
        loss = self.rows @ (lead + xp.log1p(rest + xp.expm1(-lead)))
        return loss + 0.5 * self.ridge @ (w * w) + 0.5 * self.pin @ self._sum(w) ** 2

    def grad(self, w: Array) -> Array:
        wrong = self._chances(w) * (1 - self.Y)
        off = self.rows[:, None] * (wrong - self.Y * namespace(w).sum(wrong, axis=-1)[:, None])
        return (off.T @ self.X + self.pin * self._sum(w)).reshape(-1) + self.ridge * w

    def hessian(self, w: Array) -> Array:
        """Block (a, b) is X' diag(rows P_a (1[a=b] - P_b)) X, for the chances P."""
        xp = namespace(w)
        P = self._chances(w)
        C, p = P.shape[-1], self.X.shape[-1]
        bend = self.rows[:, None, None] * P[:, :, None] * (xp.eye(C)[None] - P[:, None, :])
        half = bend[:, :, :, None] * self.X[:, None, None, :]
        blocks = xp.tensordot(half, self.X, axes=((0,), (0,))) + xp.diag(self.pin)  # a, b, j, k
        return xp.permute_dims(blocks, (0, 2, 1, 3)).reshape(C * p, C * p) + xp.diag(self.ridge)

    def hessian_times(self, w: Array) -> Callable[[Array], Array]:
        xp = namespace(w)
        P = self._chances(w).T  # classes first: both products are faster so
        C, p = P.shape[0], self.X.shape[-1]

        def times(v: Array) -> Array:
            s = v.reshape(C, p) @ self.X.T
            bent = self.rows * P * (s - xp.sum(P * s, axis=0))
            return (bent @ self.X + self.pin * self._sum(v)).reshape(-1) + self.ridge * v

        return times

    def prox(self, center: Array, weight: Array, start: Array) -> Array:
        return newton.minimise(self, center, weight, start)

    def stride(self, step: Array) -> Array:
        """Half of how far a step moves the scores, in the root mean square over rows: a single far row bends little."""
        xp = namespace(step)
        return xp.sqrt(self.rows @ xp.max(self._scores(step) ** 2, axis=-1) / xp.sum(self.rows)) / 2

    def _sum(self, w: Array) -> Array:
        """sum_c W_c."""
        return namespace(w).sum(w.reshape(self.Y.shape[-1], self.X.shape[-1]), axis=0)

    def _scores(self, w: Array) -> Array:
        return self.X @ w.reshape(self.Y.shape[-1], self.X.shape[-1]).T

    def _chances(self, w: Array) -> Array:
        xp = namespace(w)
        scores = self._scores(w)
        up = xp.exp(scores - xp.max(scores, axis=-1)[:, None])
        return up / xp.sum(up, axis=-1)[:, None]

    @property
    def quadratic(self) -> bool:
        return False

    @property
    def curvature(self) -> Array:
        xp = namespace(self.ridge)
        C = self.Y.shape[-1]
        squares = xp.sum(self.X * self.X, axis=-1)
        trace = xp.sum(self.rows * squares, axis=-1) * (C - 1) / C + xp.sum(self.ridge, axis=-1)
        trace = trace + C * xp.sum(self.pin, axis=-1)
        return trace / self.ridge.shape[-1]

    @property
    def curvatures(self) -> Array:
        xp = namespace(self.ridge)
        C = self.Y.shape[-1]
        each = (self.rows[..., None] * self.X * self.X).sum(axis=-2) * (C - 1) / C**2 + self.pin
        return xp.concatenate([each] * C, axis=-1) + self.ridge

    @property
    def share(self) -> Array:
        return namespace(self.rows).sum(self.rows, axis=-1)

    @property
    def smoothness(self) -> Array:
        return self.L

    def flops(self, kind: str) -> Array:
        q = self.ridge.shape[-1]
        d = (self.rows > 0).sum(axis=-1)
        if kind == "value":
            return 2.0 * d * q
        if kind == "grad":
            return 4.0 * d * q
        if kind == "hessian":
            return 2.0 * d * q * q
        system = 2.0 * d * q * q / self.Y.shape[-1] + q**3 / 3 if q <= newton.DIRECT_UP_TO else 40.0 * d * q
        return newton.STEPS_TYPICAL * (system + 6.0 * d * q)
