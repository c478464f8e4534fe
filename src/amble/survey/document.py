"""One site's description of its table: counts, moments and levels per column, and no rows.

    mean = sum s x / sum s        M2 = sum s (x - mean)^2        of the cells that are there, in the rows that are used

with s the weight of a row, 1 where no column has weights. A row of weight zero is not used. From these, the mean and
deviation of all sites' rows follow exactly. Which rows are used depends on what is done about missing cells, so a
document is made for one policy:

    refuse    all rows (and the agreement refuses a missing cell, and names it)
    mean      the rows whose target, event, offset, exposure and weight are there
    drop      the rows without any missing cell
"""

import json
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amble.arrays import Array, Flags
from amble.data.tables import Table
from amble.data.targets import CLASSES_MAX
from amble.errors import AmbleError, unknown
from amble.survey.cells import (
    DROP,
    EMPTY,
    KINDS,
    MEAN,
    NUMBER,
    NUMBER_MAX,
    POLICIES,
    REFUSE,
    ROLE_MAX,
    ROLES,
    TEXT,
    TEXT_MAX,
    Cells,
    find,
)

FORMAT = 1
LEVELS_MAX = 100  # of one column at one site
COLUMNS_MAX = 10_000
ROWS_MAX = 2**53
WHOLE_MAX = 2.0**53  # float64 counts by one up to here
SUM_MAX = 4 * NUMBER_MAX**2 * ROLE_MAX * ROWS_MAX  # no M2 is larger
UNPACKED_MAX = 16 * 2**20  # bytes: a document that unpacks to more is refused

Level = str | int | float


class Tally(NamedTuple):
    """One level or label, how many cells have it, and the sum of their rows' weights."""

    level: Level
    cells: int
    weight: float


@dataclass(frozen=True)
class Summary:
    """One column at one site. `count` cells are described, those of the rows that are used; `missing` cells are missing
    in all rows. Moments are zero where the column has no numbers."""

    name: str
    kind: str  # one of cells.KINDS
    count: int
    missing: int
    weight: float = 0.0  # of the cells that are described: their count where no column has weights
    mean: float = 0.0
    M2: float = 0.0
    min: float = 0.0
    max: float = 0.0
    whole: bool = False  # whether all its numbers are whole
    distinct: int = 0  # how many texts it has; of a target also how many labels
    levels: tuple[Tally, ...] | None = None  # sorted; None where there are too many, or none are counted


@dataclass(frozen=True)
class Document:
    """What one site says about its table."""

    rows: int
    used: int  # rows that are used under the policy `missing`
    missing: str
    total: float  # the sum of the weights of the rows that are used
    exposed: float  # the same, each times its exposure and exp(offset)
    target: Summary
    columns: tuple[Summary, ...]
    event: Summary | None = None
    offset: Summary | None = None
    exposure: Summary | None = None
    weight: Summary | None = None

    @property
    def all(self) -> tuple[Summary, ...]:
        """Every column: the features, then the target and the other roles."""
        roles = (getattr(self, role) for role in ROLES)
        return (*self.columns, self.target, *(summary for summary in roles if summary is not None))


def describe(
    table: Table,
    target: str | int | None,
    event: str | int | None = None,
    offset: str | int | None = None,
    exposure: str | int | None = None,
    weight: str | int | None = None,
    columns: Sequence[str] | None = None,
    task: str | None = None,
    missing: str = REFUSE,
) -> Document:
    """The description of one site's table, made for one policy about missing cells.

    Parameters
    ----------
    table : as `data.files.read_table` reads it
    target, event, offset, exposure, weight : columns by name or number; without a target, the last
    columns : the features by name; without them, all other columns
    task : "classification" makes labels of any target; without it, of text and of few whole numbers
    missing : "refuse", "mean" or "drop"
    """
    if missing not in POLICIES:
        raise unknown("way to treat missing cells", missing, POLICIES)
    names = {"event": event, "offset": offset, "exposure": exposure, "weight": weight}
    found = find(table, target, names, columns)
    used, ones = found.used(missing), np.ones(len(found.target.missing))
    weights = found.roles["weight"].values if weight is not None else ones
    exposures = found.roles["exposure"].values if exposure is not None else ones
    offsets = found.roles["offset"].values if offset is not None else 0 * ones
    described = summarise(found.target, used, weights)
    if described.kind == NUMBER and task != "regression":
        most = CLASSES_MAX if task is None else LEVELS_MAX
        described = with_labels(described, found.target, used, weights, most, any_number=task is not None)
    return Document(
        rows=len(used),
        used=int(used.sum()),
        missing=missing,
        total=float(weights[used].sum()),
        exposed=float(np.nansum((weights * exposures * np.exp(offsets))[used])),  # missing cells are refused later
        target=described,
        columns=tuple(summarise(cells, used, weights) for cells in found.features),
        **{role: summarise(cells, used, ones if role == "weight" else weights) for role, cells in found.roles.items()},
    )


def summarise(cells: Cells, used: Flags, weights: Array) -> Summary:
    """A column's summary from the cells that are there in the rows that are used."""
    there, missing = used & ~cells.missing, int(cells.missing.sum())
    values, s = cells.values[there], weights[there]
    count, total = len(values), float(s.sum())
    if not count:
        return Summary(cells.name, EMPTY, 0, missing)
    if cells.kind == TEXT:
        levels = tallies(values, s)
        known = levels if len(levels) <= LEVELS_MAX else None
        return Summary(cells.name, TEXT, count, missing, total, distinct=len(levels), levels=known)
    low, high = float(values.min()), float(values.max())
    near = (s * values).sum() / total
    mean = float(np.clip(near + (s * (values - near)).sum() / total, low, high))  # rounding stays within the range
    M2 = float((s * np.square(values - mean)).sum())
    whole = bool((values == np.round(values)).all() and max(abs(low), abs(high)) < WHOLE_MAX)
    return Summary(cells.name, NUMBER, count, missing, total, mean, M2, low, high, whole)


def with_labels(summary: Summary, cells: Cells, used: Flags, weights: Array, most: int, any_number: bool) -> Summary:
    """The summary of a target of numbers, with its labels where they may be labels."""
    there = used & ~cells.missing
    values = cells.values[there]
    if len(np.unique(values)) > most or not (summary.whole or any_number):
        return summary
    labels = tallies(values.astype(np.int64) if summary.whole else values, weights[there])
    return replace(summary, distinct=len(labels), levels=labels)


def tallies(values: NDArray[Any], weights: Array) -> tuple[Tally, ...]:
    """The different values, sorted."""
    levels, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    sums = np.bincount(index, weights, len(levels))
    return tuple(map(Tally, levels.tolist(), counts.tolist(), sums.tolist()))


def to_bytes(document: Document) -> bytes:
    """The document as bytes, the same for equal documents."""
    fields = {key: value for key, value in vars(document).items() if value is not None}
    for key, value in fields.items():
        if isinstance(value, Summary):
            fields[key] = vars(value)
    fields |= {"format": FORMAT, "columns": [vars(summary) for summary in document.columns]}
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
    return zlib.compress(text.encode(), 9)


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
    _need(isinstance(columns, list) and 0 < len(columns) <= COLUMNS_MAX, "it has no columns, or too many")
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
    complete = document.all if missing == DROP else document.all[len(columns) :] if missing == MEAN else ()
    for summary in document.all:
        whole = summary in complete
        _need(summary.count == used if whole else summary.count + summary.missing >= used, "its counts do not add up")
    return document


def _summary(fields: Any, rows: int, used: int) -> Summary:
    """One column, with everything that must hold between its numbers."""
    _need(
        isinstance(fields, dict) and fields.keys() == Summary.__dataclass_fields__.keys(), "a column has other fields"
    )
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
