"""Rows as users have them: arrays, lists or DataFrames, with targets that are amounts or labels."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array
from amble.data.datasets import Dataset
from amble.data.frames import Frame, Named, has_names, in_columns
from amble.data.tables import Table
from amble.data.targets import Targets, labels_or_amounts
from amble.errors import AmbleError, is_number, shown
from amble.losses import LOSSES, named
from amble.problem.assemble import check_rows
from amble.problem.extras import extras
from amble.randomness import check_seed


@runtime_checkable
class Sparse(Protocol):
    """A sparse matrix of SciPy, or of a library with its names."""

    shape: tuple[int, ...]
    nnz: int

    def toarray(self) -> Array: ...


def check_width(given: ArrayLike, width: int, whose: str) -> Array:
    """X as numbers of (rows, columns), as many columns as in training."""
    try:
        X = np.asarray(given, np.float64, order="C")  # so that the same rows give the same bits
    except (TypeError, ValueError) as error:
        rows = hasattr(given, "__len__") and not isinstance(given, str)
        what = error if rows else f"{shown(given)} was given"
        raise AmbleError(f"{whose} must hold numbers: {what}.") from error
    if X.ndim != 2 or X.shape[1] != width:
        raise AmbleError(f"{whose} have shape {X.shape}; give (rows, {width}), as in training.")
    if not np.isfinite(X).all():
        raise AmbleError(f"{whose} hold values that are not finite; fill or drop them first.")
    return X


def names_of(X: ArrayLike) -> tuple[str, ...] | None:
    """The names of a DataFrame's columns."""
    return tuple(map(str, X.columns)) if isinstance(X, Frame) else None


def in_order(X: ArrayLike | Named | Sparse, columns: Sequence[str] | None, whose: str) -> ArrayLike:
    """A table's columns in the order of training, by their names; an array as it is. A sparse matrix is refused."""
    if isinstance(X, Sparse):
        size = f"{8 * X.shape[0] * X.shape[-1] / 1e6:,.3g} MB"
        raise AmbleError(f"{whose}: X is sparse and amble computes on dense rows; give X.toarray() ({size}).")
    if columns is not None and has_names(X):
        return in_columns(X, columns, whose)
    if isinstance(X, Mapping | Table):
        raise AmbleError(f"{whose} has names, and the columns of training have none; give an array.")
    return X


def task_of(task: str | None, loss: str | None) -> str | None:
    """The task that was given or, where none was, that of the loss: a loss by name says what its targets are."""
    if task is not None or loss is None:
        return task
    return "regression" if LOSSES[named(loss)].fits(0) else "classification"


def infer_task(y: ArrayLike, task: str | None) -> tuple[ArrayLike, str]:
    """Targets and their task: text and few whole numbers are labels, unless the task is said."""
    if task is not None:
        return y, task
    values = np.asarray(y)
    if values.dtype.kind not in "iuf":
        return values, "classification"
    return labels_or_amounts(values, None) if np.isfinite(values).all() else (values, "regression")


def heldout_rows(
    X: ArrayLike | None, y: ArrayLike | None, task: str, columns: tuple[str, ...] | None
) -> tuple[Array, Targets] | None:
    if X is None and y is not None:
        raise AmbleError("y_test was given without X_test; give both, or neither.")
    return None if X is None else check_rows(in_order(X, columns, "the test data"), y, task, "the test data")


def hold_out(data: Dataset, test: float, seed: int) -> Dataset:
    """The data set with its test rows apart: a published part, or a share of the rows. Every group keeps a row."""
    if not (is_number(test) and 0 <= test < 1):
        raise AmbleError(f"test={test} was given; it is the share of rows kept for testing, from 0 to below 1.")
    X, y, groups = data.X, data.y, data.groups
    if data.X_test is not None or test == 0:
        return data
    if len(y) < 2:
        raise AmbleError(
            f"{data.name} has 1 row, and a share of the rows is kept for testing; give more rows, or test=0."
        )
    order = np.random.default_rng([check_seed(seed), 0]).permutation(len(y))
    out = order[: max(1, round(test * len(y)))]
    if groups is not None:  # the last row of each group that comes in this order is never held out
        last = len(y) - 1 - np.unique(groups[order][::-1].astype(str), return_index=True)[1]
        out = out[~np.isin(out, order[last])]
        if not len(out):
            raise AmbleError(
                f"{data.name} has too few rows per group to keep some for testing; give more rows, or test=0."
            )
    kept = np.setdiff1d(order, out)
    extra = extras(len(y), data.name, data.sample_weight, data.offset, data.exposure)
    rest, mine = None if groups is None else groups[kept], extra.of(kept)
    trained = replace(
        data, X=X[kept], y=y[kept], groups=rest, sample_weight=mine.weight, offset=mine.offset, exposure=None
    )
    held = extra.of(out)
    return replace(trained, X_test=X[out], y_test=y[out], sample_weight_test=held.weight, offset_test=held.offset)


def check_pairs(rows: Sequence[tuple[ArrayLike, ArrayLike]]) -> list[tuple[ArrayLike, ArrayLike]]:
    if not isinstance(rows, Sequence):
        raise AmbleError(f"{shown(rows)} was given as the agents' rows; give a list of pairs (X, y), one per agent.")
    if not rows:
        raise AmbleError("no agents were given; give at least one pair (X, y).")
    for i, pair in enumerate(rows):
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise AmbleError(f"{shown(pair)} was given as agent {i}'s rows; give a pair (X, y).")
    return list(rows)
