"""Data sets from your own files: CSV, NPZ, Parquet and LIBSVM text, distinguished by the file's ending."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from amble.data import delimited, libsvm, parquet
from amble.data.datasets import Dataset
from amble.data.encoding import encode
from amble.data.packed import DAMAGED, as_text, inner_suffix, read_bytes, unpacked
from amble.data.roles import ROLES, censored, find_roles, numbers_of
from amble.data.tables import Column, Table
from amble.data.targets import TASKS, Targets, labels_or_amounts, targets
from amble.errors import AmbleError, as_path, few, unknown

DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLES = (*DELIMITERS, ".parquet")
CATEGORICAL = ("refuse", "one-hot")
SAVE = "write it with numpy.savez(path, X=X, y=y)"
# arrays that an .npz may have besides
EXTRAS = ("sample_weight", "offset", "exposure", "sample_weight_test", "offset_test")


class Reading(NamedTuple):
    """How a file is read: see `read_file`."""

    task: str | None
    target: str | int | None
    header: bool | None
    categorical: str
    columns: Sequence[str] | None
    by: str | int | None = None
    roles: Mapping[str, str | int | None] = MappingProxyType({})


def read_file(
    path: str | Path,
    *,
    task: str | None = None,
    target: str | int | None = None,
    header: bool | None = None,
    categorical: str = "refuse",
    columns: Sequence[str] | None = None,
    by: str | int | None = None,
    event: str | int | None = None,
    offset: str | int | None = None,
    exposure: str | int | None = None,
    weight: str | int | None = None,
) -> Dataset:
    """A data set from a file.

    Parameters
    ----------
    path : .csv, .tsv, .npz (arrays X, y and, if there are, X_test, y_test, sample_weight, offset, exposure,
        sample_weight_test, offset_test), .parquet, and LIBSVM text under any other name; text may be compressed (.bz2,
        .xz, .gz)
    task : regression or classification; without it, targets that are text or whole numbers of at most 20 values are
        labels
    target : a table's target column, by name or number (from 0; -1 is the last); without it, the last.
        The printed data set names it
    header : whether a .csv or .tsv begins with a row of names; without it, it does if no cell there is a number
    categorical : "one-hot" makes one column of 0 and 1 of each text in a column of text, named colour=red and so on;
        "refuse" says where the text is
    columns : another data set's columns: this file is encoded in the same way, in the same order
    by : a table's column, by name or number, that says to whom a row belongs, such as the site: `split` makes one agent
        per value. This column and the next four are no columns of X
    event : of cox: the column that says whether the row had its event (1) at the time in the target, or was censored
        then (0). y is the time, with a minus where the row is censored
    offset : of poisson and gamma: the column of what is added to the linear predictor
    exposure : of the same: the column of what the mean is proportional to, such as years
    weight : the column of how much each row counts, zero or more

    Returns
    -------
    Dataset : a column without a name is known by its number, in LIBSVM text by its index

    Example
    -------
    >>> import amble
    >>> (folder / "flats.csv").write_text("rooms,area,price\\n2,48.5,310.5\\n3,71.0,402.2\\n1,30.2,205.9\\n")
    56
    >>> amble.read_file(folder / "flats.csv")
    Dataset(flats: regression, 3 rows, 2 columns, target price)
    """
    path = as_path(path, "a file of rows")
    kind, name = inner_suffix(path), path.name.partition(".")[0] or path.name
    if task not in (None, *TASKS):
        raise unknown("task", task, TASKS)
    if categorical not in CATEGORICAL:
        raise unknown("way to treat categories", categorical, CATEGORICAL)
    refuse_options(path, header, target)
    roles = dict(zip(ROLES, (event, offset, exposure, weight), strict=True))
    if kind not in TABLES:
        refuse_roles(path, by, roles)
    content = unpacked(read_bytes(path), str(path))
    return read_content(content, kind, name, str(path), Reading(task, target, header, categorical, columns, by, roles))


def read_content(content: bytes, kind: str, name: str, where: str, reading: Reading) -> Dataset:
    """A data set from a file's content, decompressed; `kind` is the ending that says the format."""
    columns = reading.columns
    if kind in TABLES:
        return from_table(table_from(content, kind, where, reading.header, columns), name, reading)
    if kind == ".npz":
        return read_npz(content, name, where, reading.task, columns)
    X, y = libsvm.parse(content, where, None if columns is None else len(columns))
    y, task = labels_or_amounts(y, reading.task)
    return Dataset(name, task, X, y, columns=tuple(str(k + 1) for k in range(X.shape[1])))


def refuse_roles(path: Path, by: str | int | None, roles: Mapping[str, str | int | None]) -> None:
    """Columns with a role have names, so they are for tables."""
    if by is not None:
        raise AmbleError(f"by={by!r} was given for {path}, which has no named columns; give groups= to amble.split.")
    for role, column in roles.items():
        if column is not None:
            raise AmbleError(
                f"{role}={column!r} was given for {path}, which has no named columns; give a table (.csv, .tsv or "
                ".parquet), or an amble.Dataset of your own."
            )


def refuse_options(path: Path, header: bool | None, target: str | int | None = None) -> None:
    """Refuse options that make no sense for a file of this kind."""
    if target is not None and inner_suffix(path) not in TABLES:
        raise AmbleError(f"target={target!r} was given for {path}, which says itself what the target is; leave it out.")
    if header is not None and inner_suffix(path) not in DELIMITERS:
        raise AmbleError(f"header={header} was given for {path}; it is for .csv and .tsv files, so leave it out.")


def read_table(
    path: Path, header: bool | None, columns: Sequence[str] | None, keep: Callable[[list[str]], list[str]] | None = None
) -> Table:
    """A .csv, .tsv or .parquet file: those of its columns that `keep` chooses by their names."""
    refuse_options(path, header)
    content = unpacked(read_bytes(path), str(path))
    return table_from(content, inner_suffix(path), str(path), header, columns, keep)


def table_from(
    content: bytes,
    kind: str,
    where: str,
    header: bool | None,
    columns: Sequence[str] | None,
    keep: Callable[[list[str]], list[str]] | None = None,
) -> Table:
    if kind == ".parquet":
        return parquet.read(content, where, keep or list)
    as_cells = any("=" in name for name in columns or ())  # categories may look like numbers
    table = delimited.read(as_text(content, where), where, DELIMITERS[kind], header, as_cells)
    if keep is None:
        return table
    here = {column.name: column for column in table.columns}
    return table._replace(columns=[here[name] for name in keep(list(here))])


def from_table(table: Table, name: str, reading: Reading) -> Dataset:
    chosen, found = find_roles(table, reading.target, {"by": reading.by, **reading.roles})
    taken = {chosen.name, *(column.name for column in found.values())}
    features = [column for column in table.columns if column.name not in taken]
    if not features:
        if found:
            raise AmbleError(f"{table.where} has no column besides {few(sorted(taken))}; a model needs one more.")
        raise AmbleError(
            f"{table.where} has only one column, {chosen.name}, and a target needs others beside it; separate "
            "cells by commas in a .csv file and by tabs in a .tsv file."
        )
    table.refuse_gaps()
    owner, event = found.pop("by", None), found.get("event")
    numbers = {role: numbers_of(table, column, role) for role, column in found.items()}
    if event is not None and reading.task == "classification":
        raise AmbleError(
            f"event={event.name} and task='classification' were given; an event has a time: leave one out."
        )
    y, task = targets(table, chosen, reading.task if event is None else "regression")
    if event is not None:
        y = censored(table, chosen, y, numbers["event"])
    X, names = encode(table, features, reading.categorical == "one-hot", reading.columns)
    groups: Targets | None = None
    if owner is not None:
        texts, values = owner.texts, owner.numbers
        groups = np.array(texts) if texts or values is None else labels_or_amounts(values, None)[0]
    return Dataset(
        name,
        task,
        X,
        y,
        columns=names,
        target=chosen.name,
        groups=groups,
        sample_weight=numbers.get("weight"),
        offset=numbers.get("offset"),
        exposure=numbers.get("exposure"),
        table=described(found, features, names),
    )


def described(roles: Mapping[str, Column], features: Sequence[Column], names: Sequence[str]) -> dict[str, Any]:
    """What a Dataset keeps of its table: the columns with a role, and those that were one-hot encoded."""
    categories = [column.name for column in features if column.name not in names]
    return {role: column.name for role, column in roles.items()} | ({"categories": categories} if categories else {})


def read_arrays(content: bytes, where: str, targets: bool = True) -> dict[str, Any]:
    """X, y, X_test and y_test by name, checked, and those of EXTRAS that there are; without `targets`, X is enough.
    Nothing in the file is executed: pickled objects are refused."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            there = ", ".join(file.files) or "none"
            known = ("X", "y", "X_test", "y_test", *EXTRAS)
            arrays: dict[str, Any] = {key: file[key] for key in file.files if key in known}
    except (*DAMAGED, AttributeError) as error:
        raise AmbleError(f"{where} is not a whole .npz file of plain arrays ({error}); {SAVE}.") from error
    test = ("X_test", "y_test")
    for key in ("X", *(("y",) if targets else ()), *(test if targets and arrays.keys() & test else ())):
        if key not in arrays:
            raise AmbleError(f"{where} has no array {key} (its arrays: {there}); {SAVE}.")
    for rows, wanted in (("X", "y"), test):
        X, y = arrays.get(rows), arrays.get(wanted)
        if X is None:
            continue
        if X.ndim != 2 or X.dtype.kind not in "biuf" or (y is not None and y.shape != (len(X),)):
            shapes = f"{rows} has shape {X.shape} of {X.dtype}" + ("" if y is None else f" and {wanted} {y.shape}")
            raise AmbleError(f"{where}: {shapes}; give rows of numbers as (rows, columns) and targets as (rows,).")
        arrays[rows] = X.astype(np.float64)
    return arrays


def read_npz(content: bytes, name: str, where: str, task: str | None, columns: Sequence[str] | None) -> Dataset:
    """Arrays by their names."""
    arrays = read_arrays(content, where)
    for rows in ("X", "X_test"):
        if columns is not None and rows in arrays and (width := arrays[rows].shape[1]) != len(columns):
            raise AmbleError(f"{where}: {rows} has {width} columns, and {len(columns)} are given; match them.")
    y = arrays["y"]
    if y.dtype.kind not in "biuf":
        if task == "regression":
            raise AmbleError(f"{where}: y holds text, and regression needs numbers; give task='classification'.")
        return Dataset(name, "classification", **arrays, columns=None if columns is None else tuple(columns))
    if not np.isfinite(y).all():
        raise AmbleError(f"{where}: y holds values that are not finite; fill or drop them first.")
    arrays["y"], task = labels_or_amounts(y.astype(np.float64), task)
    return Dataset(name, task, **arrays, columns=None if columns is None else tuple(columns))
