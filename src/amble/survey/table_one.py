"""Table one: descriptive statistics of every column over all sites, as rows and as text.

They are those of the rows that the documents describe. Where a column has weights, means, deviations and shares are by
the weights.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from amble.survey.cells import NUMBER, TEXT
from amble.survey.disagreements import check_kinds
from amble.survey.pooling import pool
from amble.survey.summary import Document, Summary

ALL = "all sites"
KEYS = ("site", "column", "level", "count", "share", "mean", "deviation", "min", "max", "missing")
WIDTHS = (20, 10, 11, 11, 10, 10, 8)  # 80 characters in all
SITE_WIDTH, SITES_PER_BLOCK = 20, 3


def table_one(documents: Mapping[str, Document], sites: bool = False) -> list[dict[str, Any]]:
    """Rows of statistics: one per column of numbers, and one per level of a column of text.

    Parameters
    ----------
    documents : the sites' documents by their names
    sites : also give each site's own

    Returns
    -------
    rows : with KEYS. The level is None in rows of numbers; what does not apply is None, too. The share is that of the
        cells that are there; the deviation is that of a sample (n - 1)
    """
    return [
        row
        for summaries in pooled(documents).values()
        for site, summary in summaries.items()
        if sites or site == ALL
        for row in rows_of(site, summary)
    ]


def pooled(documents: Mapping[str, Document]) -> dict[str, dict[str, Summary]]:
    """Per column the summary of all sites, and that of each site that has the column."""
    columns: dict[str, dict[str, Summary]] = {}
    for site in sorted(documents):
        for summary in documents[site].all:
            columns.setdefault(summary.name, {})[site] = summary
    for theirs in columns.values():
        check_kinds(theirs)
    return {name: {ALL: pool(list(theirs.values())), **theirs} for name, theirs in columns.items()}


def rows_of(site: str, summary: Summary) -> Iterator[dict[str, Any]]:
    row: dict[str, Any] = dict.fromkeys(KEYS) | {"site": site, "column": summary.name}
    row |= {"count": summary.count, "missing": summary.missing}
    if summary.kind == NUMBER:
        moments = {"mean": summary.mean, "deviation": deviation(summary), "min": summary.min, "max": summary.max}
        yield row | moments
    elif summary.kind == TEXT and summary.levels is not None:
        for level, cells, weight in summary.levels:
            yield row | {"level": level, "count": cells, "share": weight / summary.weight}
    else:
        yield row


def deviation(summary: Summary) -> float:
    """That of a sample; nan of one cell."""
    return (
        math.sqrt(summary.M2 / summary.weight * summary.count / (summary.count - 1)) if summary.count > 1 else math.nan
    )


def as_text(documents: Mapping[str, Document], sites: bool = False) -> str:
    """The table for a terminal, at most 80 characters wide: one line per column and per level; with `sites`, sites are
    side by side."""
    columns = pooled(documents)
    if not sites:
        return _lines(columns)
    names = [ALL, *sorted(documents)]
    blocks = [names[k : k + SITES_PER_BLOCK] for k in range(0, len(names), SITES_PER_BLOCK)]
    return "\n\n".join(_block(columns, block, documents) for block in blocks)


def _lines(columns: Mapping[str, Mapping[str, Summary]]) -> str:
    lines = [("", "count", "mean", "deviation", "min", "max", "missing")]
    for name, summaries in columns.items():
        summary = summaries[ALL]
        moments = ("", "", "", "")
        if summary.kind == NUMBER:
            extremes = f"{summary.min:.4g}", f"{summary.max:.4g}"
            moments = (f"{summary.mean:.4g}", f"{deviation(summary):.4g}", *extremes)
        elif summary.levels is None and summary.distinct:
            moments = (f"{summary.distinct:,} texts", "", "", "")
        lines.append((name, f"{summary.count:,}", *moments, f"{summary.missing:,}"))
        for level, cells, weight in summary.levels or () if summary.kind == TEXT else ():
            lines.append((f"  {level}", f"{cells:,}", _percent(weight / summary.weight), "", "", "", ""))
    return "\n".join(_line(line, WIDTHS) for line in lines)


def _block(columns: Mapping[str, Mapping[str, Summary]], sites: list[str], documents: Mapping[str, Document]) -> str:
    used = {site: document.used for site, document in documents.items()}
    used[ALL] = sum(used.values())
    lines = [["", *sites], ["rows", *(f"{used[site]:,}" for site in sites)]]
    for name, summaries in columns.items():
        here = [summaries.get(site) for site in sites]
        lines.append([name, *(_moments(summary) for summary in here)])
        for level, *_ in summaries[ALL].levels or () if summaries[ALL].kind == TEXT else ():
            lines.append([f"  {level}", *(_count(summary, level) for summary in here)])
        if summaries[ALL].missing:
            lines.append(["  missing", *("" if summary is None else f"{summary.missing:,}" for summary in here)])
    widths = (WIDTHS[0], *(SITE_WIDTH for _ in sites))
    return "\n".join(_line(line, widths) for line in lines)


def _moments(summary: Summary | None) -> str:
    if summary is None:
        return "no such column"
    if summary.kind != NUMBER:
        return f"{summary.distinct:,} texts" if summary.levels is None and summary.distinct else ""
    return f"{summary.mean:.4g} ({deviation(summary):.4g})" if summary.count > 1 else f"{summary.mean:.4g}"


def _count(summary: Summary | None, level: Any) -> str:
    if summary is None or not summary.count:
        return ""
    cells, weight = next((rest for name, *rest in summary.levels or () if name == level), (0, 0.0))
    return f"{cells:,} ({_percent(weight / summary.weight)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first cell to the left and the others to the right, each cut to its width."""
    cut = [cell if len(cell) < width else f"{cell[: width - 2]}…" for cell, width in zip(cells, widths, strict=True)]
    padded = [f"{cell:>{width}}" for cell, width in zip(cut[1:], widths[1:], strict=True)]
    return "".join((cut[0].ljust(widths[0]), *padded)).rstrip()
