"""A site's table as columns of cells, some of them missing, and which rows are used."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amble.arrays import Flags
from amble.data.encoding import source_of
from amble.data.roles import check_role, find_roles
from amble.data.tables import Column, Table, as_numbers
from amble.data.targets import is_amounts
from amble.errors import AmbleError, few, unknown

NUMBER, TEXT, EMPTY = KINDS = ("number", "text", "empty")  # empty: every cell is missing
REFUSE, MEAN, DROP = POLICIES = ("refuse", "mean", "drop")
ABSENT = frozenset(("", "nan", "na", "n/a", "#n/a", "<na>", "null"))  # whatever the case
NUMBER_MAX = 1e100  # so that squares and their sums stay finite
TEXT_MAX = 200  # characters of a name or a level


class Cells(NamedTuple):
    """One column: float64 with nan where a cell is missing, or text."""

    name: str
    kind: str
    values: NDArray[Any]
    missing: Flags


class Roles(NamedTuple):
    """A table's columns by what they are for."""

    target: Cells
    roles: dict[str, Cells]  # those of ROLES that there are
    features: tuple[Cells, ...]

    def used(self, missing: str) -> Flags:
        """The rows that are used: they have some weight. A missing cell can be filled, but nobody can fill a target, an
        exposure and so on: such rows are left out."""
        used = self.roles["weight"].values > 0 if "weight" in self.roles else np.ones(len(self.target.missing), bool)
        if missing != REFUSE:
            for cells in (self.target, *self.roles.values(), *(self.features if missing == DROP else ())):
                used &= ~cells.missing
        return used


def find(
    table: Table,
    target: str | int | None,
    roles: Mapping[str, str | int | None],
    columns: Sequence[str] | None,
) -> Roles:
    """The target, the columns of other roles, and the features: those named or, without names, all others."""
    chosen, others = find_roles(table, target, roles)
    taken = {column.name: role for role, column in {"target": chosen, **others}.items()}
    if columns is None:
        columns = [column.name for column in table.columns if column.name not in taken]
    if not columns:
        raise AmbleError(f"{table.where} has no column besides {few(list(taken))}; a model needs at least one.")
    for name in columns:
        if name in taken:
            raise AmbleError(f"column {name!r} of {table.where} is the {taken[name]}; leave it out of the columns.")
    cells = {role: _numbers(table, column, role) for role, column in others.items()}
    return Roles(read(table, chosen), cells, find_features(table, columns))


def find_features(table: Table, names: Sequence[str], texts: Collection[str] = ()) -> tuple[Cells, ...]:
    """Columns by their names; of those in `texts`, a cell is text even if it looks like a number."""
    here = {column.name: column for column in table.columns}
    if len(set(names)) < len(names):
        raise AmbleError(f"the columns {few(list(names))} name one twice; name each once.")
    for name in names:
        if name in here:
            continue
        source, level = source_of(name, here)
        if level is not None:
            raise AmbleError(f"{table.where} has no column {name!r}; name {source!r}: the survey finds its levels.")
        raise unknown(f"column of {table.where}", name, here)
    return tuple(read(table, here[name], name in texts) for name in names)


def read(table: Table, column: Column, as_text: bool = False) -> Cells:
    """A column's cells. It holds numbers if every cell that is not missing is one."""
    if not 0 < len(column.name) <= TEXT_MAX or not column.name.isprintable():
        raise AmbleError(f"{table.where} has a column named {column.name!r}; give it 1 to {TEXT_MAX} plain characters.")
    texts = column.texts or []
    numbers = None if texts and as_text else column.numbers
    if numbers is None:
        missing = np.array([text.lower() in ABSENT for text in texts], bool)
        present = [text for text in texts if text.lower() not in ABSENT]
        if not present:
            return Cells(column.name, EMPTY, np.full(len(texts), np.nan), missing)
        parsed = None if as_text else as_numbers(present)
        if parsed is None:
            _check_texts(table, column, missing)
            return Cells(column.name, TEXT, np.array(texts), missing)
        numbers = np.full(len(texts), np.nan)
        numbers[~missing] = parsed
    missing = np.isnan(numbers)
    large = np.flatnonzero(np.abs(numbers) > NUMBER_MAX)
    if len(large):
        place, cell = table.location(int(large[0]), column), numbers[large[0]]
        raise AmbleError(f"{place} is {cell:g}; numbers go up to {NUMBER_MAX:g}: fix it, or leave the cell empty.")
    return Cells(column.name, EMPTY if missing.all() else NUMBER, numbers, missing)


def _check_texts(table: Table, column: Column, missing: Flags) -> None:
    """A few words in a column of numbers are slips, not categories; and every text must fit into a sentence."""
    texts = column.texts or []
    there = [row for row in range(len(texts)) if not missing[row]]
    if is_amounts(Column(column.name, [texts[row] for row in there], None)):
        row = next(row for row in there if as_numbers([texts[row]]) is None)
        raise AmbleError(
            f"{table.location(row, column)} holds {texts[row][:40]!r}, and most of the column is numbers; fix it, or "
            "leave the cell empty if the value is not known."
        )
    for row in there:
        if len(texts[row]) > TEXT_MAX or not texts[row].isprintable():
            raise AmbleError(
                f"{table.location(row, column)} holds {texts[row][:40]!r}; a text has at most {TEXT_MAX} characters, "
                "all of them printable: fix it, or leave the column out."
            )


def _numbers(table: Table, column: Column, role: str) -> Cells:
    """The cells of a column that is an event, an offset, an exposure or a weight, checked for what that needs."""
    cells = read(table, column)
    if cells.kind == TEXT:
        row = next(
            k for k, text in enumerate(column.texts or ()) if not cells.missing[k] and as_numbers([text]) is None
        )
        raise AmbleError(f"{table.location(row, column)} is {cells.values[row][:40]!r}; the {role} must be a number.")
    check_role(table, column, role, cells.values)
    return cells
