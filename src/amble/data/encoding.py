"""From a file's columns to the columns of X: numbers as they are, text one-hot encoded."""

from collections.abc import Collection, Sequence

import numpy as np

from amble.arrays import Array
from amble.data.tables import Column, Table, TextColumn
from amble.data.targets import is_amounts
from amble.errors import AmbleError

CATEGORIES_MAX = 256  # of one column
Plan = list[tuple[Column, str | None]]  # per column of X: the file's column, and its category if one-hot


def encode(
    table: Table, features: list[Column], one_hot: bool, columns: Sequence[str] | None
) -> tuple[Array, tuple[str, ...]]:
    """X and the names of its columns; with another data set's columns given, those."""
    plan = make_plan(table, features, one_hot) if columns is None else match_plan(table, features, columns)
    names = tuple(column.name if value is None else f"{column.name}={value}" for column, value in plan)
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise AmbleError(f"{table.where} gives two columns the name {twice!r} when encoded; rename one of them.")
    X = np.empty((len(features[0].cells), len(plan)))
    for k, (column, value) in enumerate(plan):
        X[:, k] = column.numbers if value is None else [text == value for text in column.texts or ()]
    return X, names


def make_plan(table: Table, features: list[Column], one_hot: bool) -> Plan:
    """Every column in the file's order; a column of text becomes its categories, sorted."""
    plan: Plan = []
    for column in features:
        if column.numbers is not None:
            plan.append((column, None))
            continue
        values = sorted(set(column.texts or ()))
        if not one_hot:
            advice = "fix it, or give categorical='one-hot' (--one-hot) if it is a category"
            raise TextColumn(table.text_in(column), advice)
        if is_amounts(column):
            table.refuse_text(
                column, "most of the column is numbers, so it is not a category: fix it, or drop such rows"
            )
        if len(values) > CATEGORIES_MAX:
            advice = f"fix it, or drop the column: {CATEGORIES_MAX} categories are allowed, and it has {len(values):,}"
            table.refuse_text(column, advice)
        plan += [(column, value) for value in values]
    return plan


def source_of(name: str, here: Collection[str]) -> tuple[str, str | None]:
    """The table's column from which the encoded column of this name is made, and its category, if it has one."""
    cuts = [k for k, letter in enumerate(name) if letter == "=" and name[:k] in here]
    if name in here:
        return name, None
    return (name[: cuts[-1]], name[cuts[-1] + 1 :]) if cuts else (name.partition("=")[0], None)


def match_plan(table: Table, features: list[Column], columns: Sequence[str]) -> Plan:
    """The columns of another data set, looked up in this table; none may be missing or left over."""
    here = {column.name: column for column in features}
    plan: Plan = []
    for name in columns:
        source, value = source_of(name, here)
        if source not in here:
            raise AmbleError(f"{table.where} has no column {source}, which the columns given have; add it.")
        if value is None and here[source].numbers is None:
            table.refuse_text(here[source], "the columns given have numbers there: fix it")
        plan.append((here[source], value))
    for column in features:
        known = {value for used, value in plan if used is column}
        if not known:
            raise AmbleError(f"{table.where} has a column {column.name}, which the columns given have not; drop it.")
        if None not in known:
            refuse_strange(table, column, known)
    return plan


def refuse_strange(table: Table, column: Column, known: set[str | None]) -> None:
    """Refuses a category that did not exist when the columns were made: it has no column."""
    if column.texts is None:
        raise AmbleError(
            f"{table.where}, column {column.name} holds numbers, and the columns given have text there; fix it."
        )
    strange = next((k for k, text in enumerate(column.texts) if text not in known), None)
    if strange is not None:
        raise AmbleError(
            f"{table.location(strange, column)} holds {column.texts[strange][:40]!r}, a category that the columns "
            "given have not; drop such rows, or make the columns again with them."
        )
