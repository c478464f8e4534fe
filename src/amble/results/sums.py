"""Sums over rows at one model, from which all statistics follow: each agent computes its own, and they are added.

Every field is a sum over rows or over agents, so the sums of all agents are those of the pooled rows. Rows are in the
model's own units: scaled, with a column of ones where the model has an intercept; targets scaled, or the numbers of
labels. Row weights count rows: a weight of two is the row twice.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, Indices, leaves
from amble.errors import AmbleError
from amble.results.likelihood import KINDS, Entries, rows_of, times_log
from amble.results.partial import TIES, concordance, partial

KNOWN = {*KINDS, *TIES}  # the losses whose rows have a likelihood
SQUARES_UP_TO = 500  # unknowns; with more, there are no matrices, and so no standard errors
BINS, REACH = 1000, 10.0  # of the log odds, from -REACH to REACH, for the AUC


class Judged(NamedTuple):
    """How good a model is on some rows."""

    rows: Array
    weight: Array  # the sum of the row weights s
    deviance: Array  # sum s half the deviance: of labels, the log loss; of cox, minus the partial log-likelihood
    y: Array  # sum s y; of cox, the weight of the events
    yy: Array
    squared: Array  # sum s (y - mu)^2
    correct: Array  # sum s where the label is the likeliest
    concordant: Array  # of cox and of two classes: pairs of an agent's rows in the right order; a tie is a half
    pairs: Array
    scores: Array  # (2, BINS), of two classes: the weight of each label's rows in each bin of the log odds


class Sums(NamedTuple):
    """What one agent adds at one model; the sum over agents is that of all rows."""

    agents: Array
    train: Judged
    test: Judged  # the agent's held-out rows, or zeros
    labels: Array  # (classes,): the weight of each label's rows
    saturated: Array  # sum s log-likelihood at mu = y: poisson; gamma, but for the part that the dispersion is in
    entropy: Array  # sum s y log y (poisson), -sum s log y (gamma)
    base: Array  # sum s exp(offset) (poisson), sum s y exp(-offset) (gamma)
    crossed: Array  # sum s y offset (poisson), sum s offset (gamma)
    null: Array  # of cox: minus the partial log-likelihood at zero
    pearson: Array  # sum s (y - mu)^2 / variance
    gradient: Array  # (q,): of sum s deviance / 2, as the next three
    hessian: Array  # the upper triangle, q (q + 1) / 2 numbers
    expected: Array  # the same, its mean over y where that differs (gamma)
    by_row: Array  # sum s g g', g the gradient of a row
    by_agent: Array  # g g', g the gradient of the agent

    def vector(self) -> Array:
        """All numbers in one row: its length depends on the loss, the columns and the classes alone.

        Returns
        -------
        array of float64

        Example
        -------
        >>> from amble.results.sums import Sums
        >>> len(Sums.zeros("least-squares", 3).vector())
        46
        """
        return np.concatenate([np.ravel(leaf) for leaf in leaves(self)])

    @staticmethod
    def of_vector(vector: Array, loss: str, columns: int, classes: int = 0) -> "Sums":
        """The sums that `vector` wrote in one row.

        Parameters
        ----------
        vector : the row, or the sum of several agents'
        loss : its name
        columns : of the rows in the model's units, the intercept's too
        classes : how many labels there are; 0 is a regression

        Returns
        -------
        Sums

        Example
        -------
        >>> from amble.results.sums import Sums
        >>> zeros = Sums.zeros("least-squares", 3)
        >>> float(Sums.of_vector(2 + zeros.vector(), "least-squares", 3).agents)
        2.0
        """
        like = Sums.zeros(loss, columns, classes)
        sizes = [leaf.size for leaf in leaves(like)]
        if np.shape(vector) != (sum(sizes),):
            raise AmbleError(f"sums of shape {np.shape(vector)} were given; {loss} here has {sum(sizes)} numbers.")
        parts = iter(np.split(np.asarray(vector, np.float64), np.cumsum(sizes)[:-1]))
        filled: Sums = _fill(like, parts)
        return filled

    @staticmethod
    def zeros(loss: str, columns: int, classes: int = 0) -> "Sums":
        """The sums of nobody.

        Parameters
        ----------
        loss, columns, classes : as of `of_vector`

        Returns
        -------
        Sums

        Example
        -------
        >>> from amble.results.sums import Sums
        >>> Sums.zeros("logistic", 3, 2).hessian.shape
        (6,)
        """
        zero = np.zeros(())
        q = columns * classes if loss == "softmax" else columns
        square = np.zeros(q * (q + 1) // 2 if q <= SQUARES_UP_TO else 0)
        scalars: dict[str, Any] = dict.fromkeys((*Judged._fields, *Sums._fields), zero)
        sizes = {
            "scores": np.zeros((2, BINS) if classes == 2 else (2, 0)),
            "labels": np.zeros(classes),
            "gradient": np.zeros(q),
            "hessian": square,
            "expected": square if loss == "gamma" else np.zeros(0),
            "by_row": square,
            "by_agent": square,
        }
        judged = Judged(**{name: (scalars | sizes)[name] for name in Judged._fields})
        arrays = scalars | sizes | {"train": judged, "test": judged}
        return Sums(**{name: arrays[name] for name in Sums._fields})


def sums_of(
    loss: str,
    w: Array,
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    offset: Array | float | None = None,
    *,
    classes: int = 0,
    test: tuple[Any, ...] | None = None,
) -> Sums:
    """What one agent adds at the model w. The ridge is not in it. Not finite where the model has diverged.

    Parameters
    ----------
    loss : its name
    w : the model, in its own units
    X, y : the agent's rows and targets in these units: for poisson and gamma targets as they are; for cox signed times
    sample_weight : of each row; by default one
    offset : what is added to each row's linear predictor: the logarithm of its exposure, and the scaling's y_mean where
        the link is a logarithm
    classes : how many labels there are; 0 is a regression
    test : held-out rows: (X, y), or (X, y, sample_weight, offset)

    Returns
    -------
    Sums

    Example
    -------
    >>> import numpy as np
    >>> from amble.results.sums import sums_of
    >>> X, y = np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([1.0, 2.0])
    >>> float(sums_of("least-squares", np.array([0.5, 0.5]), X, y).train.squared)
    0.5
    """
    with np.errstate(all="ignore"):
        return _sums_of(loss, np.asarray(w, np.float64), _checked(X, y, sample_weight, offset), classes, test)


def _sums_of(
    loss: str, w: Array, rows: tuple[Array, Array, Array, Array], classes: int, test: tuple[Any, ...] | None
) -> Sums:
    X, y, s, o = rows
    train = _judged(loss, w, X, y, s, o, classes)
    held = None if test is None else _judged(loss, w, *_checked(*test), classes)
    zeros = Sums.zeros(loss, X.shape[1], classes)
    common = zeros._replace(agents=np.ones(()), train=train, test=zeros.test if held is None else held)
    squares = len(zeros.hessian) > 0
    if loss in TIES:
        at, null = partial(w, X, y, s, TIES[loss]), partial(np.zeros_like(w), X, y, s, TIES[loss])
        common = common._replace(null=np.asarray(null.loss), gradient=at.gradient)
        if squares:
            by_row = at.scores.T @ (s[:, None] * at.scores)
            common = common._replace(hessian=packed(at.hessian), by_row=packed(by_row))
    else:
        per_row = rows_of(loss, _predictors(w, X, o), y)
        gradient = ((s[:, None] * per_row.slope).T @ X).ravel()
        common = common._replace(pearson=np.asarray(s @ per_row.pearson), gradient=gradient, **_null(loss, y, s, o))
        if classes:
            common = common._replace(labels=_counts(y.astype(np.intp), s, classes))
        if squares:
            slope, K = per_row.slope, per_row.slope.shape[1]
            by_row = _blocks(X, s, K, lambda a, b: slope[:, a] * slope[:, b])
            common = common._replace(hessian=_blocks(X, s, K, per_row.bend), by_row=by_row)
            if loss == "gamma":
                common = common._replace(expected=_blocks(X, s, K, per_row.expected))
    return common._replace(by_agent=packed(np.outer(common.gradient, common.gradient))) if squares else common


def packed(matrix: Array) -> Array:
    """The upper triangle of a symmetric matrix, row after row."""
    return np.asarray(matrix[_upper(len(matrix))])


def unpacked(triangle: Array) -> Array:
    """The symmetric matrix of an upper triangle."""
    q = (math.isqrt(8 * len(triangle) + 1) - 1) // 2
    matrix = np.zeros((q, q))
    matrix[_upper(q)] = triangle
    return matrix + np.triu(matrix, 1).T


@cache
def _upper(q: int) -> tuple[Indices, Indices]:
    return np.triu_indices(q)


def _checked(X: Any, y: Any, weight: Any = None, offset: Any = None) -> tuple[Array, Array, Array, Array]:
    X, y = np.asarray(X, np.float64), np.asarray(y, np.float64)
    s = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
    return X, y, s, np.broadcast_to(np.asarray(0.0 if offset is None else offset, np.float64), y.shape)


def _predictors(w: Array, X: Array, offset: Array) -> Array:
    """The linear predictors (d, K): one, or one per class."""
    return X @ w.reshape(-1, X.shape[1]).T + offset[:, None]


def _judged(loss: str, w: Array, X: Array, y: Array, s: Array, offset: Array, classes: int) -> Judged:
    zeros = Sums.zeros(loss, X.shape[1], classes).train
    rows, weight = np.asarray(float(len(y))), np.asarray(s.sum())
    if loss in TIES:
        at = partial(w, X, y, s, TIES[loss])
        right, pairs = concordance(X @ w, y)
        common = zeros._replace(rows=rows, weight=weight, deviance=np.asarray(at.loss), y=np.asarray(at.events))
        return common._replace(concordant=np.asarray(right), pairs=np.asarray(pairs))
    eta = _predictors(w, X, offset)
    per_row = rows_of(loss, eta, y)
    common = zeros._replace(rows=rows, weight=weight, deviance=np.asarray(s @ per_row.deviance))
    if not classes:
        off = y - per_row.mean[:, 0]
        return common._replace(y=np.asarray(s @ y), yy=np.asarray(s @ y**2), squared=np.asarray(s @ off**2))
    chosen = eta.argmax(axis=1) if eta.shape[1] > 1 else eta[:, 0] > 0
    common = common._replace(correct=np.asarray(s @ (chosen == y)))
    if classes != 2:
        return common
    odds = eta[:, 1] - eta[:, 0] if eta.shape[1] > 1 else eta[:, 0]
    bins = np.clip((odds + REACH) * (BINS / (2 * REACH)), 0, BINS - 1).astype(np.intp)
    values, place = np.unique(odds, return_inverse=True)  # an agent's own pairs need no bins
    right, pairs = ordered(_by_label(place, y, s, len(values)))
    own = {"concordant": np.asarray(right), "pairs": np.asarray(pairs)}
    return common._replace(scores=_by_label(bins, y, s, BINS), **own)


def _by_label(place: Indices, y: Array, s: Array, size: int) -> Array:
    """(2, size): the weight of each label's rows at each place."""
    return _counts(place + size * y.astype(np.intp), s, 2 * size).reshape(2, size)


def ordered(scores: Array) -> tuple[float, float]:
    """Of pairs with one row of each label: those in which the second label has the larger log odds (at one place, a
    half), and all; `scores` has the weight of each label's rows at each place, from small to large."""
    no, yes = scores
    below = np.cumsum(no) - no / 2
    return float(yes @ below), float(no.sum() * yes.sum())


def _counts(place: Indices, s: Array, size: int) -> Array:
    return np.bincount(place, s, size).astype(np.float64)  # which are whole numbers where there are no rows


def _null(loss: str, y: Array, s: Array, offset: Array) -> dict[str, Any]:
    """What the likelihood needs of the rows alone."""
    if loss == "poisson":
        counts, place = np.unique(y, return_inverse=True)
        factorials = np.array([math.lgamma(count + 1) for count in counts.tolist()])[place]  # no SciPy on an agent
        entropy, base, crossed = s @ times_log(y), s @ np.exp(offset), s @ (y * offset)
        saturated = entropy - s @ y - s @ factorials
    elif loss == "gamma":
        entropy, base, crossed = -(s @ np.log(y)), s @ (y * np.exp(-offset)), s @ offset
        saturated = entropy
    else:
        return {}
    numbers = {"saturated": saturated, "entropy": entropy, "base": base, "crossed": crossed}
    return {name: np.asarray(number) for name, number in numbers.items()}


def _blocks(X: Array, s: Array, K: int, bend: Entries) -> Array:
    """sum_l s_l bend_l (x) x_l x_l', its upper triangle: block (a, b) is X' diag(s bend_ab) X."""
    p = X.shape[1]
    whole = np.zeros((K, p, K, p))
    for a in range(K):
        for b in range(a, K):
            whole[a, :, b] = X.T @ ((s * bend(a, b))[:, None] * X)
            whole[b, :, a] = whole[a, :, b].T
    return packed(whole.reshape(K * p, K * p))


def _fill(like: Any, parts: Any) -> Any:
    """A tuple such as this one, of other arrays."""
    return type(like)(
        *(_fill(leaf, parts) if isinstance(leaf, tuple) else np.reshape(next(parts), np.shape(leaf)) for leaf in like)
    )
