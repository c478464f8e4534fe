"""Reads the rows of a file for a trained model, with or without a target column."""

from pathlib import Path

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
from amble.survey.agreed import Agreement, from_json


def read_rows(model: Model, path: Path, target: str | None, header: bool | None) -> tuple[Array, Targets | None]:
    """X, and y or None: a table's target is the one named here or in the model, or its one extra column."""
    kind, where = inner_suffix(path), str(path)
    refuse_options(path, header, target)
    if kind in TABLES and "survey" in model.about:
        table = read_table(path, header, ())
        X = agreement_of(model).encode(table, where)
        named = target if target is not None else model.target  # another column may be anything
        chosen = find_target(table, named) if named in [target, *(column.name for column in table.columns)] else None
        censored = agreement_of(model).event is not None  # its targets are no amounts to compare predictions with
        y = None if chosen is None or censored else targets(table, chosen, model.task)[0]
    elif kind in TABLES:
        X, y = _of_table(model, read_table(path, header, _names(model)), target)
    else:
        content = unpacked(read_bytes(path), where)
        if kind == ".npz":
            arrays = read_arrays(content, where, targets=False)
            X, y = arrays["X"], arrays.get("y")
        else:
            X, y = libsvm.parse(content, where, model.width)
    if not np.isfinite(X).all():
        raise AmbleError(f"{where} holds values that are not finite; fill or drop them first.")
    if y is not None and y.dtype.kind in "biuf":
        y, _ = labels_or_amounts(y.astype(np.float64), model.task)
    return X, y


def agreement_of(model: Model) -> Agreement:
    """What the sites of the model's run had agreed on."""
    return from_json(str(model.about["survey"]), "the model")


def read_exposure(model: Model, path: Path, header: bool | None) -> Array | None:
    """The exposure of each row, where the model has one and the file its column."""
    name = agreement_of(model).exposure if "survey" in model.about and inner_suffix(path) in TABLES else None
    if name is None:
        return None
    for column in read_table(path, header, ()).columns:
        if column.name == name and column.numbers is not None:
            return column.numbers
    raise AmbleError(f"{path} has no column {name!r} of numbers, which is the model's exposure; add it.")


def _names(model: Model) -> tuple[str, ...]:
    return () if isinstance(model.columns, int) else model.columns


def _of_table(model: Model, table: Table, target: str | None) -> tuple[Array, Targets | None]:
    chosen = _target(model, table, target)
    features = [column for column in table.columns if column is not chosen]
    table._replace(columns=features).refuse_gaps()
    by_name = any(_is_used(model, column) for column in features)
    if not by_name and len(features) != model.width:
        raise AmbleError(
            f"{table.where} has {len(features)} columns besides the target, and the model was trained on "
            f"{model.width}; give it the same."
        )
    names = model.columns if by_name and not isinstance(model.columns, int) else None
    try:
        X, _ = encode(table, features, False, names)
    except TextColumn as error:
        raise AmbleError(f"{error.problem}; the model was trained on numbers: write numbers there.") from error
    return X, None if chosen is None else targets(table, chosen, model.task)[0]


def _target(model: Model, table: Table, target: str | None) -> Column | None:
    if target is not None:
        return find_target(table, target)
    if isinstance(model.target, str) and model.target in [column.name for column in table.columns]:
        return find_target(table, model.target)
    unused = [column for column in table.columns if not _is_used(model, column)]
    if len(unused) == 1:
        return unused[0]
    return table.columns[-1] if len(unused) == len(table.columns) == model.width + 1 else None


def _is_used(model: Model, column: Column) -> bool:
    return any(name == column.name or name.startswith(f"{column.name}=") for name in _names(model))
