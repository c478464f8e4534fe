"""Parquet tables: columns of numbers, truth values or text, read with pyarrow."""

import io
from collections.abc import Callable
from typing import Any

from amble.data.tables import Column, Table
from amble.errors import AmbleError, need


def read(content: bytes, where: str, keep: Callable[[list[str]], list[str]]) -> Table:
    """The table, with only the columns whose names `keep` returns."""
    arrow, parquet = need("pyarrow", "parquet"), need("pyarrow.parquet", "parquet")
    try:
        table = parquet.read_table(io.BytesIO(content))
    except (arrow.ArrowException, OSError) as error:
        raise AmbleError(f"{where} is not a whole Parquet file ({str(error).rstrip('.')}); copy it again.") from error
    # pandas keeps its row index in a column of such a name, and that is not data
    names = [name for name in table.column_names if not name.startswith("__index_level_")]
    if not names or not table.num_rows:
        raise AmbleError(f"{where} has no rows; give a file with some.")
    if len(set(names)) < len(names):
        raise AmbleError(f"{where} has two columns of the same name; give each its own.")
    return Table(where, [column(arrow, name, table.column(name), where) for name in keep(names)], None)


def column(arrow: Any, name: str, values: Any, where: str) -> Column:
    """One column; a missing value becomes nan, or empty text."""
    types = arrow.types
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if types.is_string(values.type) or types.is_large_string(values.type):
        return Column(name, ["" if text is None else text.strip() for text in values.to_pylist()], None)
    if types.is_boolean(values.type):
        values = values.cast(arrow.int8())
    if types.is_integer(values.type) or types.is_floating(values.type) or types.is_decimal(values.type):
        return Column(name, None, values.cast(arrow.float64(), safe=False).to_numpy())
    raise AmbleError(f"{where}, column {name} holds {values.type}; make it numbers or text, or drop it.")
