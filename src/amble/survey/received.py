"""A document that comes from the network: unpacked within bounds, and everything in it checked."""

import json
import math
import zlib
from typing import Any

from amble.data.roles import ROLES
from amble.errors import AmbleError
from amble.survey.cells import DROP, EMPTY, KINDS, MEAN, NUMBER, POLICIES, TEXT, TEXT_MAX
from amble.survey.summary import (
    FORMAT,
    LEVELS_MAX,
    ROWS_MAX,
    SUM_MAX,
    UNPACKED_MAX,
    WHOLE_MAX,
    Document,
    Summary,
    Tally,
)


def from_bytes(data: bytes, whose: str) -> Document:
    """The document that another site sent, with everything in it checked."""
    try:
        return _document(json.loads(_unpacked(data)))
    except (ValueError, TypeError, KeyError, RecursionError, zlib.error) as error:
        raise AmbleError(
            f"the description of its table that {whose} sent is not valid ({error}); install the same version of amble "
            "at all sites."
        ) from error


def _unpacked(data: bytes) -> str:
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(data, UNPACKED_MAX)
    _need(unpacking.eof and not unpacking.unused_data, f"it is cut off, or has more than {UNPACKED_MAX:,} bytes")
    return text.decode()


def _document(fields: Any) -> Document:
    _need(isinstance(fields, dict) and fields.pop("format", None) == FORMAT, f"it is not of format {FORMAT}")
    _need(fields.keys() <= Document.__dataclass_fields__.keys(), "it has an unknown field")
    rows = _whole(fields["rows"], 1, ROWS_MAX)
    used = _whole(fields["used"], 0, rows)
    missing, columns = fields["missing"], fields["columns"]
    _need(missing in POLICIES, "its policy about missing cells is unknown")
    _need(isinstance(columns, list) and len(columns) > 0, "it has no columns")
    document = Document(
        rows,
        used,
        missing,
        _positive(fields["total"], used),
        _positive(fields["exposed"], None),
        _summary(fields["target"], rows, used),
        tuple(_summary(column, rows, used) for column in columns),
        **{role: _summary(fields[role], rows, used) for role in ROLES if role in fields},
    )
    names = [summary.name for summary in document.all]
    _need(len(set(names)) == len(names), "it has two columns of one name")
    for summary in document.all[len(columns) + 1 :]:
        _need(summary.kind != TEXT, f"{summary.name!r} must hold numbers")
    filled = {DROP: 0, MEAN: len(columns)}.get(missing, len(names))  # from here on, no cell of a used row is missing
    for k, summary in enumerate(document.all):
        _need(summary.count == used or k < filled, f"{summary.name!r} has missing cells in rows that are used")
        _need(summary.count + summary.missing >= used, f"the counts of {summary.name!r} do not add up")
    return document


def _summary(fields: Any, rows: int, used: int) -> Summary:
    """One column, with everything that must hold between its numbers."""
    known = Summary.__dataclass_fields__.keys()
    _need(isinstance(fields, dict) and fields.keys() == known, "a column has other fields")
    name, kind, whole = fields["name"], fields["kind"], fields["whole"]
    _need(_is_text(name) and kind in KINDS and isinstance(whole, bool), "a column has no name or kind")
    missing = _whole(fields["missing"], 0, rows)
    count = _whole(fields["count"], 0, min(used, rows - missing))
    distinct = _whole(fields["distinct"], 0, count)
    weight = _positive(fields["weight"], count)
    mean, M2, low, high = numbers = [_number(fields[key]) for key in ("mean", "M2", "min", "max")]
    levels = None if fields["levels"] is None else tuple(_level(level, kind) for level in fields["levels"])
    if kind == NUMBER:
        _need(low <= mean <= high, f"the mean of {name!r} is outside its range")
        _need(0 <= M2 <= weight * (high - low) ** 2, f"the deviation of {name!r} cannot be")
    else:
        _need(not any(numbers) and not whole, f"{name!r} is no column of numbers")
    _need((count == 0) == (kind == EMPTY), f"the count of {name!r} cannot be")
    if levels is not None:
        texts = [tally.level for tally in levels]
        _need(texts == sorted(set(texts)) and len(texts) == distinct <= LEVELS_MAX, f"{name!r} has a level twice")
        _need(sum(tally.cells for tally in levels) == count, f"the levels of {name!r} do not add up")
        sums = math.fsum(tally.weight for tally in levels)
        _need(math.isclose(sums, weight, rel_tol=1e-9), f"the weights of {name!r} do not add up")
        _need(not whole or all(isinstance(text, int) for text in texts), f"the labels of {name!r} must be whole")
    _need(kind != TEXT or (levels is None) == (distinct > LEVELS_MAX), f"the levels of {name!r} are missing")
    return Summary(name, kind, count, missing, weight, mean, M2, low, high, whole, distinct, levels)


def _level(level: Any, kind: str) -> Tally:
    text, count, weight = level
    if kind == TEXT:
        _need(_is_text(text), "a level is no printable text")
    elif type(text) is not int or abs(text) > WHOLE_MAX:
        text = _number(text)
    return Tally(text, _whole(count, 1, ROWS_MAX), _positive(weight, 1))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= TEXT_MAX and value.isprintable()


def _whole(value: Any, least: int, most: int) -> int:
    _need(type(value) is int and least <= value <= most, f"a count is not from {least} to {most}")
    return int(value)


def _number(value: Any) -> float:
    _need(type(value) in (int, float) and abs(value) <= SUM_MAX, "a number is not finite")
    return float(value)


def _positive(value: Any, count: int | None) -> float:
    """The sum of so many weights; None: of any number of them."""
    number = _number(value)
    _need(number >= 0 and (count is None or (number > 0) == (count > 0)), "a weight is not above zero")
    return number


def _need(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)
