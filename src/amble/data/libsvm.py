"""LIBSVM text: a row is `target index:value index:value ...`; indices start at 1, and missing values are 0.

amble reads it itself, because an agent does not load scikit-learn.
"""

import math
import warnings

import numpy as np

from amble.arrays import Array, Indices
from amble.errors import unusable

NUMBERS_MAX = 2**29  # of a dense array: 4 GiB
SPACE, COLON, NEWLINE, HASH = b" :\n#"


def parse(content: bytes, where: str, columns: int | None = None) -> tuple[Array, Array]:
    """X, dense, and y. Text that the quick parser does not accept is parsed row by row, so that errors name the row."""
    parsed = _quick(content)
    y, row, index, value = _by_row(content, where) if parsed is None else parsed
    width = int(index.max(initial=0))
    if columns is None:
        columns = width
    if width > columns:
        first = int(row[np.argmax(index > columns)])
        raise unusable(
            f"{where} has index {width} (the first too high is in its row {first + 1}), and {columns} columns are "
            "expected",
            "give the file with those columns",
        )
    if len(y) == 0 or columns == 0:
        raise unusable(f"{where} holds no rows of LIBSVM text (target index:value ...)", "give a file with some")
    if len(y) * columns > NUMBERS_MAX:
        raise unusable(
            f"{where} has {len(y):,} rows and {columns:,} columns, too many for a dense array", "leave columns out"
        )
    X = np.zeros((len(y), columns))
    X[row, index - 1] = value
    return X, y


def _quick(content: bytes) -> tuple[Array, Indices, Indices, Array] | None:
    """All numbers at once, if every row is well formed; else None.

    The character before a number says what it is: a new line (a target), a space (an index), a colon (a value).
    """
    text = np.frombuffer(b"\n" + content.replace(b"\r\n", b"\n") + b"\n", np.uint8)
    gap = (text <= SPACE) | (text == COLON)
    begins = np.flatnonzero(gap[:-1] & ~gap[1:])
    before = text[begins]
    colons = np.flatnonzero(text == COLON)
    if gap[colons - 1].any() or gap[colons + 1].any() or (text == HASH).any() or not len(begins):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy warns if something is not a number
        try:
            numbers = np.fromstring(text.tobytes().replace(b":", b" "), sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    if len(numbers) != len(begins) or not np.isfinite(numbers).all():
        return None
    target, is_value = before == NEWLINE, before == COLON
    # an index follows each target and value, and a value each index; a row that begins with a space has no target
    is_index = ~target & ~is_value
    if not target[0] or not np.array_equal(is_index[:-1], is_value[1:]) or is_index[-1]:
        return None
    row = np.cumsum(target)[is_index] - 1
    index = numbers[is_index]
    rising = (index[1:] > index[:-1]) | (row[1:] > row[:-1])
    if len(index) and not (index.min() >= 1 and index.max() < 2**31 and (index % 1 == 0).all() and rising.all()):
        return None
    return numbers[target], row, index.astype(np.int64), numbers[is_value]


def _by_row(content: bytes, where: str) -> tuple[Array, Indices, Indices, Array]:
    """One row at a time: slower, takes comments after # and odd spaces, and names the row that is wrong."""
    y: list[float] = []
    rows: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    for line, raw in enumerate(content.split(b"\n"), 1):
        cells = raw.decode("utf-8", "replace").partition("#")[0].split()
        if not cells:
            continue
        here, last = f"{where}, row {line}", 0
        for word in cells[1:]:
            left, colon, right = word.partition(":")
            if not colon:
                raise unusable(f"{here}: {word[:40]!r} was found", "write index:value, as in 3:0.5")
            index = _number(left, here, "an index")
            if index != int(index) or not 1 <= index < 2**31:
                raise unusable(f"{here}: index {left} was found", "indices are whole numbers from 1 on")
            if index <= last:
                raise unusable(f"{here}: index {left} comes after {last}", "each is given once, in rising order")
            last = int(index)
            rows.append(len(y))
            indices.append(last)
            values.append(_number(right, here, f"the value of index {last}"))
        y.append(_number(cells[0], here, "the target"))
    return np.array(y), np.array(rows, np.int64), np.array(indices, np.int64), np.array(values)


def _number(text: str, where: str, what: str) -> float:
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise unusable(f"{where}: {text[:40]!r} is in the place of {what}", "it must be a finite number")
    return number
