"""Tables of text: cells between commas or tabs, with or without a first row of names.

amble reads them itself, because an agent does not load pandas; the csv module splits the cells.
"""

import csv
import io
import warnings

import numpy as np

from amble.arrays import Array
from amble.data.tables import Column, Table, as_numbers
from amble.errors import AmbleError


def read(text: str, where: str, delimiter: str, header: bool | None, as_cells: bool = False) -> Table:
    """The table. NumPy reads a file of numbers only; any other is read cell by cell, so that errors name the cell."""
    source = io.StringIO(text, newline="")
    reader = csv.reader(source, delimiter=delimiter, skipinitialspace=True, strict=True)
    try:
        first = next((row for row in reader if row), None)
        if first is None:
            raise AmbleError(f"{where} is empty; give a file with rows.")
        first = [cell.strip() for cell in first]
        named = has_header(first, where) if header is None else header
        names = check_names(first, where) if named else [str(k) for k in range(len(first))]
        quoted = text.find('"', source.tell() if named else 0) >= 0  # NumPy and csv read stray quotes differently
        skip = reader.line_num if named else 0
        numbers = None if as_cells or quoted else _quick(text, len(first), delimiter, skip)
        if numbers is not None:
            columns = [Column(name, None, numbers[:, k]) for k, name in enumerate(names)]
            return Table(where, columns, None)
        rows, lines = ([], []) if named else ([first], [reader.line_num])
        for row in reader:
            if not row:
                continue
            if len(row) != len(names):
                raise AmbleError(
                    f"{where}, line {reader.line_num} has {len(row)} cells and the first row {len(names)}; "
                    "give every row the same number."
                )
            rows.append([cell.strip() for cell in row])
            lines.append(reader.line_num)
    except csv.Error as error:
        raise AmbleError(f"{where}, line {reader.line_num} is not a row of cells ({error}); fix it.") from error
    if not rows:
        raise AmbleError(f"{where} has a row of names but no rows below it; give a file with rows.")
    cells = (list(column) for column in zip(*rows, strict=True))
    columns = [Column(name, texts, as_numbers(texts)) for name, texts in zip(names, cells, strict=True)]
    return Table(where, columns, lines)


def has_header(first: list[str], where: str) -> bool:
    """A row of names has no number, and a row of numbers has no name; a row with both could be either."""
    numbers = [cell for cell in first if as_numbers([cell]) is not None]
    texts = [cell for cell in first if cell and cell not in numbers]
    if numbers and texts:
        raise AmbleError(
            f"the first row of {where} holds both text ({texts[0][:40]!r}) and numbers ({numbers[0]!r}); say "
            "header=True (--header) if it names the columns, header=False (--no-header) if it is a row like the others."
        )
    return not numbers


def check_names(names: list[str], where: str) -> list[str]:
    for k, name in enumerate(names):
        if not name:
            raise AmbleError(f"column {k} of {where} has no name (is it a row index?); name it, or drop the column.")
        if name in names[:k]:
            raise AmbleError(f"{where} has two columns named {name!r}; give each its own name.")
    return names


def _quick(text: str, width: int, delimiter: str, skip: int) -> Array | None:
    """The rows of a file that has only finite numbers and rows of equal length; else None."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy warns about a file without rows
        try:
            numbers = np.loadtxt(io.StringIO(text), delimiter=delimiter, skiprows=skip, ndmin=2, comments=None)
        except (ValueError, UserWarning):
            return None
    return numbers if numbers.shape[1] == width and np.isfinite(numbers).all() else None
