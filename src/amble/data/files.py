"""Data sets from your own files: CSV, NPZ, Parquet and LIBSVM text, distinguished by the file's ending."""

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amble.data import delimited, libsvm, parquet
from amble.data.datasets import Dataset
from amble.data.encoding import encode
from amble.data.packed import DAMAGED, as_text, inner_suffix, read_bytes, unpacked
from amble.data.tables import Table
from amble.data.targets import TASKS, Targets, find_target, labels_or_amounts, targets
from amble.errors import AmbleError, as_path, unknown

DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLES = (*DELIMITERS, ".parquet")
CATEGORICAL = ("refuse", "one-hot")
SAVE = "write it with numpy.savez(path, X=X, y=y)"


class Reading(NamedTuple):
    """How a file is read: see `read_file`."""

    task: str | None
    target: str | int | None
    header: bool | None
    categorical: str
    columns: Sequence[str] | None
    by: str | int | None = None


def read_file(
    path: str | Path,
    *,
    task: str | None = None,
    target: str | int | None = None,
    header: bool | None = None,
    categorical: str = "refuse",
    columns: Sequence[str] | None = None,
    by: str | int | None = None,
) -> Dataset:
    """A data set from a file.

    Parameters
    ----------
    path : .csv, .tsv, .npz (arrays X, y and, if there are, X_test, y_test), .parquet, and LIBSVM text under any other
        name; text may be compressed (.bz2, .xz, .gz)
    task : regression or classification; without it, targets that are text or whole numbers of at most 20 values are
        labels
    target : a table's target column, by name or number (from 0; -1 is the last); without it, the last.
        The printed data set names it
    header : whether a .csv or .tsv begins with a row of names; without it, it does if no cell there is a number
    categorical : "one-hot" makes one column of 0 and 1 of each text in a column of text, named colour=red and so on;
        "refuse" says where the text is
    columns : another data set's columns: this file is encoded in the same way, in the same order
    by : a table's column, by name or number, that says to whom a row belongs, such as the site: `split` makes one agent
    per value. It is not a column of X

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
    if by is not None and kind not in TABLES:
        raise AmbleError(f"by={by!r} was given for {path}, which has no named columns; give groups= to amble.split.")
    content = unpacked(read_bytes(path), str(path))
    return read_content(content, kind, name, str(path), Reading(task, target, header, categorical, columns, by))


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
    by, target = reading.by, reading.target
    owner = None if by is None else find_target(table, by, "by")
    others = table if owner is None else table._replace(columns=[each for each in table.columns if each is not owner])
    if owner is not None and not others.columns:
        raise AmbleError(f"{table.where} has no column beside {owner.name}; give a table with a target, too.")
    chosen = find_target(table if target is not None else others, target)
    if chosen is owner:
        raise AmbleError(f"by={by} and target={target} are the same column of {table.where}; give two.")
    features = [column for column in others.columns if column is not chosen]
    if not features:
        raise AmbleError(
            f"{table.where} has only one column, {chosen.name}, and a target needs others beside it; separate "
            "cells by commas in a .csv file and by tabs in a .tsv file."
        )
    table.refuse_gaps()
    y, task = targets(table, chosen, reading.task)
    X, names = encode(table, features, reading.categorical == "one-hot", reading.columns)
    groups: Targets | None = None
    if owner is not None:
        texts, numbers = owner.texts, owner.numbers
        groups = np.array(texts) if texts or numbers is None else labels_or_amounts(numbers, None)[0]
    return Dataset(name, task, X, y, columns=names, target=chosen.name, groups=groups)


def read_arrays(content: bytes, where: str, targets: bool = True) -> dict[str, Any]:
    """X, y, X_test and y_test by name, checked; without `targets`, X is enough. Nothing in the file is executed:
    pickled objects are refused."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            there = ", ".join(file.files) or "none"
            arrays: dict[str, Any] = {key: file[key] for key in file.files if key in ("X", "y", "X_test", "y_test")}
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
