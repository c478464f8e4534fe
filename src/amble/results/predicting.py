"""Reads the rows of a file for a trained model, with or without a target column."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array
from amble.data import libsvm
from amble.data.encoding import encode
from amble.data.files import TABLES, read_arrays, read_table, refuse_options
from amble.data.packed import inner_suffix, read_bytes, unpacked
from amble.data.tables import Column, Table, TextColumn
from amble.data.targets import Targets, find_target, labels_or_amounts, targets
from amble.errors import AmbleError
from amble.results.model import Model
from amble.results.partial import TIES
from amble.results.tables import Given


class NewRows(NamedTuple):
    """Rows to predict: a table or, in the model's columns, an array; their targets, where they are there and can be
    compared with predictions; and what an .npz says of offsets."""

    X: Given
    y: Targets | None
    moved: dict[str, Any]


def read_rows(model: Model, path: Path, target: str | None, header: bool | None) -> NewRows:
    """A table's target is the one named here or in the model or, if the model's has no name, its one extra column."""
    kind, where = inner_suffix(path), str(path)
    refuse_options(path, header, target)
    X: Given
    moved: dict[str, Any] = {}
    if kind in TABLES:
        table = read_table(path, header, _names(model))
        chosen = _target(model, table, target)
        y = None if chosen is None else targets(table, chosen, model.task)[0]
        X = table if _by_name(model, table) else _in_place(model, table, chosen)
    else:
        content = unpacked(read_bytes(path), where)
        if kind == ".npz":
            arrays = read_arrays(content, where, targets=False)
            X, y = arrays["X"], arrays.get("y")
            moved = {key: arrays[key] for key in ("offset", "exposure") if key in arrays}
        else:
            X, y = libsvm.parse(content, where, model.width)
        if not np.isfinite(np.asarray(X)).all():
            raise AmbleError(f"{where} holds values that are not finite; fill or drop them first.")
    if model.loss in TIES:  # times, some of them censored, are no amounts to compare predictions with
        y = None
    if y is not None and y.dtype.kind in "biuf":
        y, _ = labels_or_amounts(y.astype(np.float64), model.task)
    return NewRows(X, y, moved)


def _names(model: Model) -> tuple[str, ...]:
    return () if isinstance(model.columns, int) else model.columns


def _by_name(model: Model, table: Table) -> bool:
    return "survey" in model.about or any(_is_used(model, column) for column in table.columns)


def _in_place(model: Model, table: Table, chosen: Column | None) -> Array:
    """The columns in their order, where no name of the model's is there."""
    features = [column for column in table.columns if column is not chosen]
    table._replace(columns=features).refuse_gaps()
    if len(features) != model.width:
        raise AmbleError(
            f"{table.where} has {len(features)} columns besides the target, and the model was trained on "
            f"{model.width}; give it the same."
        )
    try:
        return encode(table, features, False, None)[0]
    except TextColumn as error:
        raise AmbleError(f"{error.problem}; the model was trained on numbers: write numbers there.") from error


def _target(model: Model, table: Table, target: str | None) -> Column | None:
    if target is not None:
        return find_target(table, target)
    named = [column for column in table.columns if column.name == model.target]
    if named:
        return named[0]
    unused = [column for column in table.columns if not _is_used(model, column)]
    if len(unused) == 1 and not isinstance(model.target, str):
        return unused[0]
    return table.columns[-1] if len(unused) == len(table.columns) == model.width + 1 else None


def _is_used(model: Model, column: Column) -> bool:
    return any(name == column.name or name.startswith(f"{column.name}=") for name in _names(model))
