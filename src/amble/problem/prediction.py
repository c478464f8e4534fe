"""Predictions of a linear model, for problems, runs and saved models."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amble import losses
from amble.errors import AmbleError, shown
from amble.problem.assemble import Scaling, prepare
from amble.problem.rows import check_width, in_order

METRICS = {"regression": "NMSE", "classification": "accuracy"}


def predict(
    w: ArrayLike,
    X: ArrayLike,
    scaling: Scaling,
    intercept: bool,
    labels: Sequence[Any] | NDArray[Any] | None,
    columns: Sequence[str] | None = None,
) -> NDArray[Any]:
    """On rows in the units of training: targets in their own units, or labels (None: a regression)."""
    rows = prepare(check_width(in_order(X, columns, "the rows"), len(scaling.X_mean), "the rows"), scaling, intercept)
    predicted = guess(check_model(w)[None], rows, 0 if labels is None else len(labels))[0]
    return np.asarray(predicted * scaling.y_std + scaling.y_mean if labels is None else np.asarray(labels)[predicted])


def guess(W: Any, rows: Any, classes: int) -> Any:
    """Predictions of several models, one per row of W, on rows in the models' units: targets, or label numbers."""
    numbers, columns = W.shape[1], rows.shape[1]
    kind = losses.for_model(numbers, columns, classes)
    if kind is None:
        unknowns = losses.LOSSES[losses.choose(None, classes)].unknowns(columns, classes)
        raise AmbleError(
            f"the model has {numbers} numbers and these rows {unknowns} unknowns; give a model of such rows."
        )
    return kind.predict(W, rows)


def score(predicted: Any, y: Any, mean: float, regression: bool) -> Any:
    """Of each row of predictions the NMSE |predicted - y|^2 / |y - mean|^2 (nan if all y are the mean), or accuracy."""
    if not regression:
        return np.mean(predicted == y, axis=-1)
    return np.sum((predicted - y) ** 2, axis=-1) / (np.sum((y - mean) ** 2) or np.nan)


def check_model(w: ArrayLike) -> NDArray[Any]:
    """A model as an array of numbers; anything else is an error of one sentence."""
    W = np.asarray(w)
    if W.dtype.kind not in "biuf" or W.ndim != 1:
        raise AmbleError(f"{shown(w)} was given as the model; give its numbers, run.model, or use run.predict(X).")
    return W
