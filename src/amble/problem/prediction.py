"""Predictions of a linear model, for problems, runs and saved models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amble import losses
from amble.arrays import Array
from amble.data.targets import Targets
from amble.errors import AmbleError, shown
from amble.problem.assemble import Heldout, Scaling, prepare
from amble.problem.extras import extras, refuse_offset
from amble.problem.rows import check_width, in_order

SCORES_AT_ONCE = 2**22  # predictions that are in memory at a time
METRICS = {"regression": "NMSE", "classification": "accuracy"}


def predict(
    w: ArrayLike,
    X: ArrayLike,
    scaling: Scaling,
    intercept: bool,
    labels: Sequence[Any] | NDArray[Any] | None,
    columns: Sequence[str] | None = None,
    loss: str | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
) -> NDArray[Any]:
    """On rows in the units of training: targets in their own units, labels (None: a regression), or log hazards."""
    rows = prepare(check_width(in_order(X, columns, "the rows"), len(scaling.X_mean), "the rows"), scaling, intercept)
    classes = 0 if labels is None else len(labels)
    moved = extras(len(rows), "the rows", offset=offset, exposure=exposure).offset
    if moved is not None:
        refuse_offset(losses.choose(loss, classes))
    link, constant = losses.LOSSES[losses.choose(loss, classes)].link(), 0.0 if moved is None else moved
    predicted = guess(check_model(w)[None], rows, classes, loss, scaling.y_mean + constant)[0]
    if labels is not None:
        return np.asarray(np.asarray(labels)[predicted])
    return np.asarray(predicted * scaling.y_std + scaling.y_mean) if link == "identity" else predicted


def guess(W: Array, rows: Array, classes: int, loss: str | None = None, offset: Array | float = 0.0) -> Array:
    """Predictions of several models, one per row of W, on rows in the models' units: targets, or label numbers. The
    offset counts with a log link only."""
    numbers, columns = W.shape[1], rows.shape[1]
    kind: Any = losses.for_model(numbers, columns, classes, loss)
    if kind is None:
        unknowns = losses.LOSSES[losses.choose(loss, classes)].unknowns(columns, classes)
        raise AmbleError(
            f"the model has {numbers} numbers and these rows {unknowns} unknowns; give a model of such rows."
        )
    return np.asarray(kind.predict(W, rows, offset) if kind.link() == "log" else kind.predict(W, rows))


def score(predicted: Targets, y: Targets, mean: float, regression: bool, weight: Array | None = None) -> Array:
    """Of each row of predictions the NMSE |predicted - y|^2 / |y - mean|^2 (nan if all y are the mean), or accuracy;
    by the weights of the targets, where they have some."""
    s = np.ones(len(y)) if weight is None else weight
    if not regression:
        return np.asarray(np.sum(s * (predicted == y), axis=-1) / (np.sum(s) or np.nan))
    return np.asarray(np.sum(s * (predicted - y) ** 2, axis=-1) / (np.sum(s * (y - mean) ** 2) or np.nan))


def metrics(W: Array, heldout: Heldout | None, classes: int, loss: str | None = None) -> Array:
    """The metric of each row of W on the held-out rows, computed in blocks, so that memory stays bounded."""
    found = np.full(len(W), np.nan)
    finite = np.flatnonzero(np.isfinite(W).all(axis=1))
    if heldout is None or not len(finite):
        return found
    X, y, mean, offset, weight = heldout
    at_once = max(1, SCORES_AT_ONCE * X.shape[1] // (X.shape[0] * W.shape[1] or 1))
    for some in np.split(finite, range(at_once, len(finite), at_once)):
        found[some] = score(guess(W[some], X, classes, loss, offset), y, mean, not classes, weight)
    return found


def check_model(w: ArrayLike) -> NDArray[Any]:
    """A model as an array of numbers; anything else is an error of one sentence."""
    W = np.asarray(w)
    if W.dtype.kind not in "biuf" or W.ndim != 1:
        raise AmbleError(f"{shown(w)} was given as the model; give its numbers, run.model, or use run.predict(X).")
    return W
