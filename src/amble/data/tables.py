"""A file's columns, and where in the file each cell is."""

from collections.abc import Sequence
from typing import NamedTuple, NoReturn, final

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError


@final
class TextColumn(AmbleError):
    """A column of X that holds text. `problem` says where, without the advice that follows it: the caller may know
    better what to do."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}; {advice}.")
        self.problem = problem


class Column(NamedTuple):
    """A column's cells as text (None where the file holds numbers) and as numbers (None where some cell is not)."""

    name: str
    texts: list[str] | None
    numbers: Array | None

    @property
    def cells(self) -> Sequence[str] | Array:
        """As text or, where the file holds numbers, as numbers."""
        return self.numbers if self.texts is None and self.numbers is not None else self.texts or []


class Table(NamedTuple):
    """A file's columns; `lines` says where in the file each row is (None: counted from 1)."""

    where: str
    columns: list[Column]
    lines: list[int] | None

    def location(self, row: int, column: Column) -> str:
        at = f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"
        return f"{self.where}, {at}, column {' '.join(column.name.split())}"

    def refuse_gaps(self) -> None:
        """No cell may be empty or not finite: amble does not guess a value."""
        for column in self.columns:
            if column.numbers is not None:
                gaps = np.flatnonzero(~np.isfinite(column.numbers)).tolist()
            else:
                gaps = [k for k, text in enumerate(column.texts or ()) if text.lower() in ("", "nan")]
            if gaps:
                cell = str(column.cells[gaps[0]])
                raise AmbleError(
                    f"{self.location(gaps[0], column)} is {cell or 'empty'} ({len(gaps)} such in that column); "
                    "fill such cells or drop their rows first."
                )

    def refuse_text(self, column: Column, advice: str) -> NoReturn:
        """Name the first cell of a column that is not a number."""
        raise AmbleError(f"{self.text_in(column)}; {advice}.")

    def text_in(self, column: Column) -> str:
        """Where the first cell is that is not a number, and what it holds."""
        row, text = next((k, text) for k, text in enumerate(column.texts or ()) if as_numbers([text]) is None)
        return f"{self.location(row, column)} holds {text[:40]!r}, which is not a number"


def as_numbers(texts: list[str]) -> Array | None:
    """Cells as numbers (nan and inf included), or None if one is not a number."""
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        return None
    return None if any("_" in text for text in texts) else numbers  # Python reads 1_000 as a number; a table does not
