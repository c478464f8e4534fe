"""From rows to stacked objectives: check, scale, add the intercept, weigh, stack what each agent holds."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array, Indices, Tree, tree_map
from amble.data.partition import Parts, holdings
from amble.data.targets import TASKS, Targets
from amble.errors import AmbleError, few, is_number, unknown
from amble.losses import LOSSES, choose
from amble.problem.extras import NO_EXTRAS, Extras, refuse_offset
from amble.problem.penalising import spread, without_pins

WEIGHTS = ("agents", "rows")
INSIDE = "inside"  # of scale: for the arithmetic alone
AGENTS_AT_A_TIME = 512
ALIGNMENT = 64  # bytes


class Scaling(NamedTuple):
    """What was subtracted and divided by, fitted on training rows. With a log link targets stay as they are, and y_mean
    is a constant of the linear predictor: the logarithm of the base rate, at which training then starts."""

    X_mean: Array
    X_std: Array
    y_mean: float
    y_std: float


class Heldout(NamedTuple):
    """Test rows in the units of the model: scaled, with the intercept's column of ones; labels as their numbers."""

    X: Array
    y: Targets
    y_mean_train: float
    offset: Array | float = 0.0  # of the linear predictor, with a log link
    weight: Array | None = None  # of each row


def check_rows(X: ArrayLike, y: ArrayLike | None, task: str, whose: str) -> tuple[Array, Targets]:
    """X as float64 (d, p) and y (d), or one sentence on what is wrong with them."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    try:
        if "c" in (np.asarray(X).dtype.kind, np.asarray(y).dtype.kind):
            raise TypeError("not complex ones")
        X = np.asarray(X, np.float64, order="C")  # so that the same rows give the same bits
        y = np.asarray(y, np.float64) if task == "regression" else np.asarray(y)
    except (TypeError, ValueError) as error:
        hint = " (labels in y need task='classification')" if task == "regression" else ""
        raise AmbleError(f"{whose}: X and y must hold numbers: {error}{hint}.") from error
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y):
        raise AmbleError(f"{whose}: X has shape {X.shape} and y {y.shape}; give X as (rows, columns) and y as (rows,).")
    if len(y) == 0:
        raise AmbleError(f"{whose} has no rows; leave it out, or give it at least one.")
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        row, column = bad[0]
        raise AmbleError(
            f"{whose}: X has {len(bad)} values that are not finite (the first is {X[row, column]} in row {row}, "
            f"column {column}); fill or drop them first."
        )
    if y.dtype.kind == "O":
        kinds = {str if isinstance(label, str) else type(label) for label in y.tolist()}
        if kinds != {str}:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise AmbleError(f"{whose}: y holds labels of type {names}; give all as text, or all as numbers.")
        y = y.astype(str)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise AmbleError(
            f"{whose}: y has values that are not finite (the first in row {row}); fill or drop them first."
        )
    return X, y


def fit_scaling(
    X: Array, y: Targets, scale: bool | str, link: str, intercept: bool = True, extra: Extras = NO_EXTRAS
) -> Scaling:
    """Means and standard deviations of the training rows, by their weights; a constant column is only shifted. Without
    an intercept to take it up again, a scaling inside shifts nothing."""
    weight, offset = extra

    def mean(v: Array) -> Array:
        return v.mean(axis=0) if weight is None else np.average(v, axis=0, weights=weight)

    def spread(v: Array) -> Array:
        std = v.std(axis=0) if weight is None else np.sqrt(mean((v - mean(v)) ** 2))
        return np.where(std > 1e-12 * (1 + np.abs(v).max(axis=0)), std, 1.0)

    if not scale:
        return Scaling(np.zeros(X.shape[1]), np.ones(X.shape[1]), 0.0, 1.0)
    target = (0.0, 1.0)
    if link == "identity":
        target = float(mean(y)), float(spread(y))
    elif link == "log" and intercept:
        target = float(np.log(mean(y)) - (0.0 if offset is None else np.log(mean(np.exp(offset))))), 1.0
    found = Scaling(mean(X), spread(X), *target)
    return found if intercept or scale != INSIDE else found._replace(X_mean=0 * found.X_mean, y_mean=0.0)


def prepare(X: Array, scaling: Scaling, intercept: bool) -> Array:
    """Rows in the model's own units: scaled, with a column of ones for the intercept."""
    rows = np.ones((len(X), X.shape[1] + intercept))
    inside = rows[:, : X.shape[1]]
    np.subtract(X, scaling.X_mean, out=inside)
    inside /= scaling.X_std
    return rows


def targets_in_units(y: Targets, scaling: Scaling, labels: Iterable[object] | None, link: str = "identity") -> Targets:
    """Targets in the model's own units: scaled, as they are where the link is no identity or, with labels, the place
    of each in that list."""
    if labels is None:
        return (y - scaling.y_mean) / scaling.y_std if link == "identity" else y
    values, place = np.unique(y, return_inverse=True)
    number = {label: k for k, label in enumerate(labels)}
    return np.array([number[label] for label in values.tolist()])[place]


def ridges(ridge: float, columns: int, intercept: bool, unpenalised: Sequence[int] = ()) -> Array:
    """The penalty on each unknown: none on the intercept, which is the last, and on columns that are to have none."""
    penalty = np.full(columns, float(ridge))
    penalty[columns - intercept :] = 0.0
    penalty[list(unpenalised)] = 0.0
    return penalty


def assemble(
    X: Array,
    y: Targets,
    parts: Parts,
    test: tuple[Array, Targets] | None,
    *,
    task: str,
    ridge: float = 1e-4,
    intercept: bool = True,
    scale: bool | str = True,
    weights: str = "rows",
    loss: str | None = None,
    extra: Extras = NO_EXTRAS,
    of_test: Extras = NO_EXTRAS,
    **penalties: Any,
) -> dict[str, Any]:
    """The fields of a Problem that follow from rows and who holds them."""
    if weights not in WEIGHTS:
        raise unknown("weighting", weights, WEIGHTS)
    if not isinstance(intercept, bool | np.bool_):
        raise AmbleError(f"intercept={intercept!r} was given; it must be True or False.")
    if not (isinstance(scale, bool | np.bool_) or (isinstance(scale, str) and scale == INSIDE)):
        raise AmbleError(f"scale={scale!r} was given; it must be True, False or {INSIDE!r}.")
    if not (is_number(ridge) and 0 <= ridge < np.inf):
        raise AmbleError(f"ridge={ridge} was given; it must be a number, zero or more.")
    regression, given = task == "regression", parts
    if extra.weight is not None:  # a row of weight zero is as good as absent
        parts = [part[extra.weight[part] > 0] for part in parts]
        if empty := [i for i, part in enumerate(parts) if not len(part)]:
            raise AmbleError(f"all rows of agent {empty[0]} have the sample weight zero; leave that agent out.")
    if sum(map(len, parts)) < len(y):  # what nobody holds is no part of the training data
        used = np.sort(np.concatenate(parts))
        X, y, extra, parts = X[used], y[used], extra.of(used), [np.searchsorted(used, part) for part in parts]
    if test is not None and of_test.weight is not None:
        counted = np.flatnonzero(of_test.weight)
        test, of_test = (test[0][counted], test[1][counted]), of_test.of(counted)
        if not len(counted):
            raise AmbleError("all test rows have the sample weight zero; give others, or none.")
    labels = None if regression else np.unique(y)
    if labels is not None and len(labels) < 2:
        raise AmbleError(f"all labels are {labels[0]}; classification needs at least two classes.")
    if test is not None and test[0].shape[1] != X.shape[1]:
        raise AmbleError(f"the test data have {test[0].shape[1]} columns and the training data {X.shape[1]}.")
    if test is not None and labels is not None:
        check_test_labels(test[1], labels)
    classes = 0 if labels is None else len(labels)
    loss = choose(loss, classes)
    kind, link = LOSSES[loss], LOSSES[loss].link()
    if extra.offset is not None or of_test.offset is not None:
        refuse_offset(loss)
    if regression and (flaw := kind.flaw(y)):
        raise AmbleError(f"loss={loss!r} needs {flaw}.")
    scaling = fit_scaling(X, y, scale, link, intercept, extra)
    if scale == INSIDE:  # the loss and the ridge together then bend about alike in all columns
        scaling = scaling._replace(X_std=np.sqrt(scaling.X_std**2 + ridge))
    rows = prepare(X, scaling, intercept)
    wanted = targets_in_units(y, scaling, labels, link)
    if link == "log":
        extra = extra._replace(offset=np.full(len(y), scaling.y_mean) + (0.0 if extra.offset is None else extra.offset))
    held = None
    if test is not None and link != "hazard":  # times of rows that are censored have no NMSE
        y_test = targets_in_units(test[1], scaling, labels, link)
        offset = scaling.y_mean + (0.0 if of_test.offset is None else of_test.offset) if link == "log" else 0.0
        mean = float(np.average(wanted, weights=extra.weight))
        held = Heldout(prepare(test[0], scaling, intercept), y_test, mean, offset, of_test.weight)
        if task == "regression" and np.all(np.abs(held.y - held.y_mean_train) <= 1e-12 * np.abs(wanted).max()):
            raise AmbleError(
                "every test target is the mean of the training targets, so NMSE would divide by zero; give other test "
                "rows, or none."
            )
    each = ridges(ridge, rows.shape[1], intercept, penalties.get("unpenalised", ()))
    units: Array | float = 1.0  # of the penalties, in those of the model
    if scale == INSIDE:
        each[: X.shape[1]] /= scaling.X_std**2
        units = scaling.X_std * scaling.y_std
    dimension = kind.unknowns(rows.shape[1], classes)
    penalty = spread(penalties, X.shape[1], intercept, dimension, units)
    stacked = without_pins(stack(rows, wanted, parts, each, classes, weights, loss, extra), penalty)
    return {
        "agents": len(parts),
        "dimension": dimension,
        "stacked": stacked,
        "total": stacked.pooled(),
        "penalty": penalty,
        "heldout": held,
        "labels": labels,
        "scaling": scaling,
        "parts": given,
        "rows": (X, wanted, parts, extra),
        "holdings": holdings(np.abs(y) if link == "hazard" else y, parts, labels),
        "loss": loss,
    }


def check_test_labels(y: Targets, labels: Targets) -> None:
    """A model can never be right on a label that it was not shown, so such test rows are a slip."""
    strange = sorted(set(np.unique(y).tolist()) - set(labels.tolist()), key=str)
    if strange:
        tested, known = few(list(map(repr, strange))), few(list(map(repr, labels.tolist())))
        raise AmbleError(
            f"the test rows have labels that no training row has: {tested}; training has {known}. Move such rows to "
            "the training data, or drop them."
        )


def stack(
    rows: Array,
    wanted: Targets,
    parts: Parts,
    penalty: Array,
    classes: int,
    weights: str | Array,
    loss: str | None = None,
    extra: Extras = NO_EXTRAS,
) -> Tree:
    """Each agent's objective, stacked. `weights` says whether agents or rows count alike, or has each agent's share."""
    kind: Any = LOSSES[choose(loss, classes)]  # Any: not every loss takes an offset
    N = len(parts)
    sizes = np.array([len(part) for part in parts])
    members, begins = np.concatenate(parts), np.cumsum(sizes) - sizes
    each = np.ones(len(wanted)) if extra.weight is None else extra.weight
    sums = sizes * 1.0 if extra.weight is None else np.array([each[part].sum() for part in parts])
    if isinstance(weights, str):
        weights = np.ones(N) if weights == "agents" else N * sums / sums.sum()
    shares = weights

    def block(chosen: Indices) -> Tree:
        """Some agents, padded to the largest of them with rows of weight zero."""
        place = np.arange(sizes[chosen].max())
        padding = place >= sizes[chosen, None]
        row = members[np.where(padding, 0, begins[chosen, None] + place)]

        def held(column: Any) -> Array:
            values: Array = column[row].astype(np.float64, copy=False)
            values[padding] = 0.0
            return values

        weight = held(each) * shares[chosen, None] / sums[chosen, None]
        options = {} if extra.offset is None else {"offset": held(extra.offset)}
        return kind.build(held(rows), held(wanted), weight, shares[chosen, None] * penalty, classes, **options)

    if kind.keeps_rows():
        return block(np.arange(N))
    # losses that keep no rows need no padding to the largest agent
    groups = np.array_split(np.argsort(sizes, kind="stable"), -(-N // AGENTS_AT_A_TIME))
    first = block(groups[0])
    stacked = tree_map(lambda leaf: aligned((N, *leaf.shape[1:])), first)

    def fill(chosen: Indices, built: Tree) -> None:
        for whole, part in zip(stacked, built, strict=True):
            whole[chosen] = part

    fill(groups[0], first)
    # linear algebra on a stack of small matrices uses one core, and lets other threads run
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda chosen: fill(chosen, block(chosen)), groups[1:]))
    return stacked


def aligned(shape: tuple[int, ...]) -> Array:
    """An array of numbers that begins where JAX can use it in place, without a copy of its own."""
    size = int(np.prod(shape))
    memory = np.empty(size + ALIGNMENT // 8)
    begin = -memory.ctypes.data % ALIGNMENT // 8
    return memory[begin : begin + size].reshape(shape)
