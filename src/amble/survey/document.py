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
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amble.arrays import Array, Flags
from amble.data.tables import Table
from amble.data.targets import CLASSES_MAX
from amble.errors import AmbleError, unknown
from amble.survey.cells import EMPTY, NUMBER, POLICIES, REFUSE, TEXT, Cells, find
from amble.survey.received import from_bytes
from amble.survey.summary import FORMAT, LEVELS_MAX, UNPACKED_MAX, WHOLE_MAX, Document, Summary, Tally

__all__ = ["Document", "Summary", "Tally", "describe", "from_bytes", "to_bytes"]


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
    if len(text.encode()) > UNPACKED_MAX:
        raise AmbleError(f"the description of this table takes more than {UNPACKED_MAX:,} bytes; name fewer columns.")
    return zlib.compress(text.encode(), 9)
