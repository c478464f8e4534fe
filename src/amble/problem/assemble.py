"""From rows to stacked objectives: check, scale, add the intercept, weigh, stack what each agent holds."""

from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Tree, tree_map
from amble.data.partition import Parts, holdings
from amble.data.targets import TASKS
from amble.errors import AmbleError, few, is_number, unknown
from amble.losses import LOSSES, choose

WEIGHTS = ("agents", "rows")
AGENTS_AT_A_TIME = 512


class Scaling(NamedTuple):
    """What was subtracted and divided by, fitted on training rows."""

    X_mean: Any
    X_std: Any
    y_mean: float
    y_std: float


class Heldout(NamedTuple):
    """Test rows in the units of the model: scaled, with the intercept's column of ones; labels as their numbers."""

    X: Any
    y: Any
    y_mean_train: float


def check_rows(X: Any, y: Any, task: str, whose: str) -> tuple[Any, Any]:
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


def fit_scaling(X: Any, y: Any, scale: bool, regression: bool) -> Scaling:
    """Means and standard deviations of the training rows; a constant column is only shifted."""

    def spread(v: Any) -> Any:
        std = v.std(axis=0)
        return np.where(std > 1e-12 * (1 + np.abs(v).max(axis=0)), std, 1.0)

    if not scale:
        return Scaling(np.zeros(X.shape[1]), np.ones(X.shape[1]), 0.0, 1.0)
    target = (float(y.mean()), float(spread(y))) if regression else (0.0, 1.0)
    return Scaling(X.mean(axis=0), spread(X), *target)


def prepare(X: Any, scaling: Scaling, intercept: bool) -> Any:
    """Rows in the model's own units: scaled, with a column of ones for the intercept."""
    X = (X - scaling.X_mean) / scaling.X_std
    return np.column_stack([X, np.ones(len(X))]) if intercept else X


def targets_in_units(y: Any, scaling: Scaling, labels: Any) -> Any:
    """Targets in the model's own units: scaled or, with labels, the place of each in that list."""
    if labels is None:
        return (y - scaling.y_mean) / scaling.y_std
    values, place = np.unique(y, return_inverse=True)
    number = {label: k for k, label in enumerate(labels)}
    return np.array([number[label] for label in values.tolist()])[place]


def ridges(ridge: float, columns: int, intercept: bool) -> Any:
    """The penalty on each unknown: none on the intercept, which is the last."""
    penalty = np.full(columns, float(ridge))
    penalty[columns - intercept :] = 0.0
    return penalty


def assemble(
    X: Any,
    y: Any,
    parts: Parts,
    test: tuple[Any, Any] | None,
    *,
    task: str,
    ridge: float = 1e-4,
    intercept: bool = True,
    scale: bool = True,
    weights: str = "agents",
    loss: str | None = None,
) -> dict[str, Any]:
    """The fields of a Problem that follow from rows and who holds them."""
    if weights not in WEIGHTS:
        raise unknown("weighting", weights, WEIGHTS)
    for option, flag in (("intercept", intercept), ("scale", scale)):
        if not isinstance(flag, bool | np.bool_):
            raise AmbleError(f"{option}={flag!r} was given; it must be True or False.")
    if not (is_number(ridge) and 0 <= ridge < np.inf):
        raise AmbleError(f"ridge={ridge} was given; it must be a number, zero or more.")
    regression, all_parts = task == "regression", parts
    if sum(map(len, parts)) < len(y):  # rows without an agent are not training data
        used = np.sort(np.concatenate(parts))
        X, y, parts = X[used], y[used], [np.searchsorted(used, part) for part in parts]
    labels = None if regression else np.unique(y)
    if labels is not None and len(labels) < 2:
        raise AmbleError(f"all labels are {labels[0]}; classification needs at least two classes.")
    if test is not None and test[0].shape[1] != X.shape[1]:
        raise AmbleError(f"the test data have {test[0].shape[1]} columns and the training data {X.shape[1]}.")
    if test is not None and labels is not None:
        check_test_labels(test[1], labels)
    classes = 0 if labels is None else len(labels)
    loss = choose(loss, classes)
    scaling = fit_scaling(X, y, scale, regression)
    rows = prepare(X, scaling, intercept)
    wanted = targets_in_units(y, scaling, labels)
    heldout = None
    if test is not None:
        y_test = targets_in_units(test[1], scaling, labels)
        heldout = Heldout(prepare(test[0], scaling, intercept), y_test, float(np.mean(wanted)))
        if task == "regression" and np.all(np.abs(heldout.y - heldout.y_mean_train) <= 1e-12 * np.abs(wanted).max()):
            raise AmbleError(
                "every test target is the mean of the training targets, so NMSE would divide by zero; give other test "
                "rows, or none."
            )
    stacked = stack(rows, wanted, parts, ridges(ridge, rows.shape[1], intercept), classes, weights, loss)
    return {
        "agents": len(parts),
        "dimension": LOSSES[loss].unknowns(rows.shape[1], classes),
        "stacked": stacked,
        "total": stacked.pooled(),
        "heldout": heldout,
        "labels": labels,
        "scaling": scaling,
        "parts": all_parts,
        "holdings": holdings(y, parts, labels),
    }


def check_test_labels(y: Any, labels: Any) -> None:
    """Refuses test labels that no training row has: a model can never predict them, so they are a mistake."""
    strange = sorted(set(np.unique(y).tolist()) - set(labels.tolist()), key=str)
    if strange:
        tested, known = few(list(map(repr, strange))), few(list(map(repr, labels.tolist())))
        raise AmbleError(
            f"the test rows have labels that no training row has: {tested}; training has {known}. Move such rows to "
            "the training data, or drop them."
        )


def stack(
    rows: Any, wanted: Any, parts: Parts, penalty: Any, classes: int, weights: str, loss: str | None = None
) -> Tree:
    """Each agent's objective, stacked."""
    kind = LOSSES[choose(loss, classes)]
    N, p = len(parts), rows.shape[1]
    sizes = np.array([len(part) for part in parts])
    shares = np.ones(N) if weights == "agents" else N * sizes / sizes.sum()

    def block(chosen: Any) -> Tree:
        """Some agents, padded to the largest of them with rows of weight zero."""
        d = sizes[chosen].max()
        X, y, weight = np.zeros((len(chosen), d, p)), np.zeros((len(chosen), d)), np.zeros((len(chosen), d))
        for k, i in enumerate(chosen):
            X[k, : sizes[i]], y[k, : sizes[i]] = rows[parts[i]], wanted[parts[i]]
            weight[k, : sizes[i]] = shares[i] / sizes[i]
        return kind.build(X, y, weight, shares[chosen, None] * penalty, classes)

    if kind.keeps_rows():
        return block(np.arange(N))
    # losses that keep no rows need no padding to the largest agent
    order = np.argsort(sizes, kind="stable")
    blocks = [block(chosen) for chosen in np.array_split(order, -(-N // AGENTS_AT_A_TIME))]
    back = np.argsort(order, kind="stable")
    return tree_map(lambda *leaves: np.concatenate(leaves)[back], *blocks)
