"""A table in memory: a DataFrame, or a mapping from names to values, whose columns are taken by their names."""

import numbers
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from amble.arrays import Array
from amble.data.encoding import encode, source_of
from amble.data.tables import Column, Table, as_numbers
from amble.errors import AmbleError

TRUTH = ("True", "False")


@runtime_checkable
class Frame(Protocol):
    """A DataFrame: of pandas, or of a library with its names."""

    columns: Iterable[object]
    dtypes: object

    def __array__(self) -> NDArray[Any]: ...

    def __getitem__(self, name: Any) -> Any: ...


Named = Table | Mapping[str, Any] | Frame  # what has columns with names


def has_names(X: object) -> TypeGuard[Named]:
    return isinstance(X, Table | Mapping | Frame)


def names_in(X: Named) -> list[str]:
    if isinstance(X, Table):
        return [column.name for column in X.columns]
    return [str(name) for name in (X if isinstance(X, Mapping) else X.columns)]


def in_columns(X: Named, columns: Sequence[str], whose: str) -> Array:
    """X in these columns, in this order; colour=red is a category of the column colour, which may hold text. Other
    columns are ignored, whatever they hold."""
    here, levels = dict.fromkeys(names_in(X)), dict[str, list[str]]()
    for name in columns:
        source, level = source_of(name, here)
        levels.setdefault(source, []).extend([] if level is None else [level])
    table = choose(X, list(levels), whose, levels)
    table.refuse_gaps()
    return encode(table, table.columns, False, columns)[0]


def choose(X: Named, names: Sequence[str], whose: str, levels: Mapping[str, Collection[str]] | None = None) -> Table:
    """Some columns by their names; `levels` has those of the columns that are to hold text."""
    here = names_in(X)
    for name in names:
        if name not in here:
            raise AmbleError(f"column {name!r} of the training rows is not in {whose}; add it.")
        if here.count(name) > 1:
            raise AmbleError(f"{whose}: two columns are named {name!r}; give each its own name.")
    if isinstance(X, Table):
        return X._replace(columns=[X.columns[here.index(name)] for name in names])
    labels: list[Any] = list(X if isinstance(X, Mapping) else X.columns)
    columns = [column(name, X[labels[here.index(name)]], whose, (levels or {}).get(name, ())) for name in names]
    one = columns[0]
    other = next((each for each in columns if len(each.cells) != len(one.cells)), None)
    if other is not None:
        counts = f"{one.name!r} has {len(one.cells):,} values and {other.name!r} {len(other.cells):,}"
        raise AmbleError(f"{whose}: column {counts}; give as many in each.")
    return Table(whose, columns, None)


def column(name: str, values: object, whose: str, levels: Collection[str]) -> Column:
    """Numbers, or text where some cell is text or the column is to hold text."""
    cells = np.asarray(values)
    if cells.ndim != 1 or cells.dtype.kind not in "biufOUT":
        what = f"{cells.dtype} values" if cells.ndim == 1 else f"an array of shape {cells.shape}"
        raise AmbleError(f"{whose}: column {name!r} holds {what}; give a list of numbers, or of text.")
    if cells.dtype.kind in "biuf" and not levels:
        return Column(name, None, cells.astype(np.float64))
    there = [None if is_missing(cell) else cell for cell in cells.tolist()]
    if not levels and all(isinstance(cell, numbers.Real | None) for cell in there):
        return Column(name, None, np.array([np.nan if cell is None else float(cell) for cell in there]))
    # pandas reads TRUE and true as True
    spelling = {level.capitalize(): level for level in levels if level.capitalize() in TRUTH}
    texts = ["" if cell is None else str(cell).strip() for cell in there]
    texts = [spelling.get(text, text) for text in texts]
    return Column(name, texts, as_numbers(texts))


def is_missing(cell: Any) -> bool:
    try:
        return cell is None or bool(cell != cell)  # nan differs from itself
    except TypeError:  # pandas' NA neither differs nor not
        return True
