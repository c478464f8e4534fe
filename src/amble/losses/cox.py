"""f(w) = sum over events j of pull_j [ log D_j - x_j.w ] + ridge/2 |w|^2: Cox's partial likelihood of the agent's rows.

    D_j = sum of e_l over the rows l at risk (time_l >= time_j) - part_j * sum of e_l over the events at time_j
    e_l = (weight of row l) exp(x_l.w)

Each agent is a stratum: its rows are compared with each other only, so that agents may differ in their base hazard, and
there is no intercept. Of d events at one time the k-th has part k/d, k = 0 .. d-1 (Efron), or 0 (Breslow); pull is the
mean weight of these events. A target is the time of an event, or minus the time at which a row was censored.

Rows are sorted, the latest first, so that all sums over rows at risk are cumulative sums.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, Indices, namespace
from amble.losses import newton
from amble.losses.rows import reach

SPREAD_MAX = 600.0  # of x.w: exp(-600) of the largest hazard is nothing, and its square does not underflow to zero
LEAST = 1e-9  # the curvature of an agent without events, or with one row, to divide by


class Cox(NamedTuple):
    """Mean negative log partial likelihood, ties by Efron. Axes before the rows' are strata, of the pooled loss."""

    X: Array  # sorted by time, the latest first; less the stratum's mean, which changes nothing
    event: Array  # 1 at an event, 0 where censored; padding is last, with row weight zero
    rows: Array  # the weight of a row: share/d
    begin: Indices  # the first row with the same time
    end: Indices  # the last row with the same time
    part: Array
    pull: Array
    ridge: Array  # a coordinate: share * ridge
    bends: Array  # the Hessian's diagonal at zero
    L: Array  # sum of pull * (largest distance of a row from the mean)^2 + the largest ridge

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
        return "hazard"

    @staticmethod
    def flaw(y: Array) -> str | None:
        if not y.all():
            return "times above zero (with a minus where the row is censored), and there is a time of zero"
        return None if (y > 0).any() else "events, and all times have a minus: every row is censored"

    @staticmethod
    def predict(W: Array, X: Array) -> Array:
        return W @ X.T

    @classmethod
    def build(cls, X: Any, y: Any, rows: Any, ridge: Any, classes: int = 0) -> "Cox":  # noqa: ARG003 - as above
        """The loss of one agent, or of several stacked along the first axes.

        Parameters
        ----------
        X : rows (.., d, p)
        y : times (.., d): of an event, or with a minus where the row is censored
        rows : the weight of each row (.., d): share/d, or zero for padding
        ridge : the penalty on each coordinate (.., p)
        classes : none

        Returns
        -------
        Cox

        Example
        -------
        >>> import numpy as np
        >>> import amble
        >>> X, rows, ridge = np.array([[0.0], [1.0], [2.0]]), np.full(3, 1 / 3), np.zeros(1)
        >>> f = amble.Cox.build(X, np.array([5.0, 3.0, -4.0]), rows, ridge)
        >>> round(float(f.value(np.zeros(1))), 3)
        0.366
        """
        order = np.argsort(np.where(rows > 0, -np.abs(y), np.inf), axis=-1, kind="stable")
        X, y, rows = (
            np.take_along_axis(a, order[(..., *[None] * (a.ndim - y.ndim))], y.ndim - 1) for a in (X, y, rows)
        )
        X = np.where(
            rows[..., None] > 0, X - np.average(X, axis=-2, weights=rows[..., None] + 0 * X, keepdims=True), 0.0
        )
        event, time = ((y > 0) & (rows > 0)).astype(np.float64), np.where(rows > 0, np.abs(y), 0.0)
        first = np.concatenate([np.ones_like(time[..., :1]), np.diff(time, axis=-1)], axis=-1) != 0
        place = np.broadcast_to(np.arange(time.shape[-1]), time.shape)
        begin = np.maximum.accumulate(np.where(first, place, 0), axis=-1)
        last = np.concatenate([first[..., 1:], np.ones_like(first[..., :1])], axis=-1)
        end = np.flip(np.minimum.accumulate(np.flip(np.where(last, place, place[..., -1:]), -1), axis=-1), -1)
        count, weight = between(np, event, begin, end), between(np, rows * event, begin, end)
        before = np.cumsum(event, axis=-1) - event
        part = np.where(event > 0, before - at(np, before, begin), 0.0) / np.maximum(count, 1.0)
        pull = event * weight / np.maximum(count, 1.0)
        share, farthest = rows.sum(axis=-1), np.max(np.sum(X * X, axis=-1), axis=-1)
        L = np.maximum(pull.sum(axis=-1), LEAST * share) * np.maximum(farthest, LEAST) + ridge.max(axis=-1)
        f = cls(X, event, rows, begin, end, cls.parts(part), pull, ridge, ridge, L)
        _, means, bend = f._at(np.zeros(X.shape[-1]))
        diagonal = np.sum(bend[..., None] * X * X - pull[..., None] * means**2, axis=-2)
        return f._replace(bends=np.maximum(diagonal, LEAST * share[..., None]) + ridge)

    @staticmethod
    def parts(efron: Array) -> Array:
        """How much of its ties' hazards is taken from each event's sum."""
        return efron

    def pooled(self) -> "Cox":
        return self._replace(**{name: getattr(self, name).sum(axis=0) for name in ("ridge", "bends", "L")})

    def value(self, w: Array) -> Array:
        xp = namespace(w)
        sums, _, _ = self._at(w, means=False)
        return xp.sum(self.pull * sums - self.rows * self.event * (self.X @ w)) + 0.5 * self.ridge @ (w * w)

    def grad(self, w: Array) -> Array:
        xp = namespace(w)
        _, _, bend = self._at(w, means=False)
        return xp.tensordot(bend - self.rows * self.event, self.X, axes=bend.ndim) + self.ridge * w

    def hessian(self, w: Array) -> Array:
        xp, p = namespace(w), self.X.shape[-1]
        _, means, bend = self._at(w)
        X, means = self.X.reshape(-1, p), means.reshape(-1, p)
        H = X.T @ (bend.reshape(-1, 1) * X) - means.T @ (self.pull.reshape(-1, 1) * means)
        return H + xp.diag(self.ridge)

    def hessian_times(self, w: Array) -> Callable[[Array], Array]:
        p = self.X.shape[-1]
        _, means, bend = self._at(w)
        X, means, bend, pull = self.X.reshape(-1, p), means.reshape(-1, p), bend.reshape(-1), self.pull.reshape(-1)
        return lambda v: (bend * (X @ v)) @ X - (pull * (means @ v)) @ means + self.ridge * v

    def prox(self, center: Array, weight: Array, start: Array) -> Array:
        return newton.minimise(self, center, weight, start)

    def reach(self, step: Array) -> Array:
        return reach(self.X, step)

    def _at(self, w: Array, means: bool = True) -> tuple[Array, Array, Array]:
        """For each row log D and the mean x over its D, and sum_j pull_j (part of row l in D_j) / D_j."""
        xp = namespace(w)
        eta, used = self.X @ w, self.rows > 0
        top = xp.max(xp.where(used, eta, -xp.inf), axis=-1)[..., None]
        weight = self.rows * (xp.sum(used, axis=-1) / xp.sum(self.rows, axis=-1))[..., None]  # 1 on average
        e = weight * xp.exp(xp.clip(eta - top, -SPREAD_MAX, 0.0))

        def sums(a: Array) -> Array:
            """Over the rows at risk, less the part of the ties."""
            lift = (...,) + (None,) * (a.ndim - e.ndim)
            begin, end = self.begin[lift], self.end[lift]
            tied = between(xp, a * self.event[lift], begin, end, e.ndim - 1)
            return at(xp, xp.cumsum(a, axis=e.ndim - 1), end, e.ndim - 1) - self.part[lift] * tied

        D = xp.where(self.pull > 0, sums(e), 1.0)
        each = self.pull / D
        after = xp.flip(xp.cumsum(xp.flip(each, -1), axis=-1), -1)
        bend = e * (at(xp, after, self.begin) - self.event * between(xp, each * self.part, self.begin, self.end))
        return xp.log(D) + top, sums(e[..., None] * self.X) / D[..., None] if means else e, bend

    @property
    def quadratic(self) -> bool:
        return False

    @property
    def curvature(self) -> Array:
        return (self.L - self.ridge.max(axis=-1) + self.ridge.sum(axis=-1)) / self.ridge.shape[-1]

    @property
    def curvatures(self) -> Array:
        return self.bends

    @property
    def share(self) -> Array:
        return self.rows.sum(axis=self._row_axes)

    @property
    def smoothness(self) -> Array:
        return self.L

    def flops(self, kind: str) -> Array:
        return newton.flops(kind, (self.rows > 0).sum(axis=self._row_axes), self.ridge.shape[-1])

    @property
    def _row_axes(self) -> tuple[int, ...]:
        """Those of the rows and, in a pooled loss, of the strata; not those of stacked agents."""
        return tuple(range(self.ridge.ndim - 1, self.rows.ndim))


def at(xp: Any, a: Array, index: Indices, axis: int = -1) -> Array:
    return xp.take_along_axis(a, index, axis=axis)


def between(xp: Any, a: Array, begin: Indices, end: Indices, axis: int = -1) -> Array:
    """The sum of a from row begin to row end."""
    total = xp.cumsum(a, axis=axis)
    return at(xp, total, end, axis) - at(xp, total - a, begin, axis)
