"""What the page's script draws, as plain numbers."""

from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np

from amble.report.looks import Look
from amble.report.measures import band, first_message
from amble.report.sections import (
    TIME,
    Section,
    best_metric,
    columns,
    cost_names,
    is_accuracy,
    legend_label,
    lines,
)
from amble.results.reaching import column_of

DIGITS = 5
DASHES = ("solid", "dash", "dashdot", "longdash", "longdashdot")
SUFFIXES = {"time_s": "s", "comm_units": "", "bytes": "B"}


def section_curves(section: Section, own_looks: Sequence[Look]) -> dict[str, Any]:
    """One section: what y and x can be, and each line's curves."""
    shown, costs = columns(section), cost_names(section)
    drawn = []
    for line, look in zip(lines(section), own_looks, strict=True):
        curves: dict[str, Any] = {}
        for cost in costs:
            bands = {column: band(line, cost, column) for column in shown}
            x = next(iter(bands.values()))[0]
            curves[cost] = {"x": _plain(x)}
            for column, (_, low, middle, high) in bands.items():
                parts = (low, middle, high) if len(line.runs) > 1 else (middle,)
                curves[cost][column] = [_plain(part) for part in parts]
        dash = "dot" if look.dotted else DASHES[look.turn % len(DASHES)]
        drawn.append({"label": legend_label(line), "colour": f"--c{look.number}", "dash": dash, "curves": curves})
    return {
        "columns": [y_axis(section, column) for column in shown],
        "costs": [
            {"key": cost, "title": title, "suffix": SUFFIXES[cost], "first": first_message(section.runs, cost)}
            for cost, title in costs.items()
        ],
        "lines": drawn,
    }


class YAxis(TypedDict):
    """What the y axis says, whether it is logarithmic, and from where to where it goes (then in powers of ten)."""

    key: str
    title: str
    log: bool
    range: list[float] | None
    best: float | None  # the optimum's, to be marked


def y_axis(section: Section, column: str) -> YAxis:
    title = columns(section)[column]
    best = best_metric(section)
    linear = column == "metric" and is_accuracy(section)
    own_range = _range(section, column, linear, best)
    return {
        "key": column,
        "title": f"{title}, |w − w*| / |w*|" if column == "distance" else title,
        "log": not linear and own_range is not None,
        "range": own_range,
        "best": best if column == "metric" and np.isfinite(best) else None,
    }


def _range(section: Section, column: str, linear: bool, best: float) -> list[float] | None:
    """Around all that is drawn, but no higher than a little above where the runs began: some diverge."""
    first = first_message(section.runs, TIME) or 0.0
    bands = [band(line, TIME, column) for line in lines(section)]
    starts = [max(0, np.searchsorted(x, first, side="right") - 1) for x, *_ in bands]  # what enters from the left
    drawn = [part[k:] for k, (_, low, _, high) in zip(starts, bands, strict=True) for part in (low, high)]
    values = np.concatenate(drawn or [np.zeros(0)])
    values = np.append(values, best) if column == "metric" else values
    values = values[np.isfinite(values)]
    if linear:
        low, high = float(values.min()), float(values.max())
        margin = 0.04 * (high - low) or 0.01
        return [low - margin, high + margin]
    values = values[values > 0]
    if not len(values):
        return None
    begun = [float(column_of(run, column)[0]) for run in section.runs if np.isfinite(column_of(run, column)[0])]
    low, high = np.log10(values.min()), np.log10(min(values.max(), 3 * max([*begun, values.min()])))
    margin = 0.04 * (high - low) or 0.05
    return [float(low - margin), float(high + margin)]


def _plain(values: Any) -> list[float | None]:
    """A few digits are enough for a plot; a value that cannot be drawn is a gap."""
    return [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values.tolist()]
