"""Numbers as text, the same in the terminal, on the page and in the documentation."""

from collections.abc import Sequence

import numpy as np

from amble.report.claims import Cell
from amble.report.measures import median_cost
from amble.report.sections import TIME, UNITS

SECOND_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
BYTE_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
LARGE = 1e4  # beyond it a metric is a lost run's
NONE = "–"


def in_units(value: float, units: tuple[tuple[float, str], ...]) -> str:
    """A value in the largest unit that leaves at least 1 before the point."""
    if value >= 1000 * units[0][0]:
        return f"{value / units[0][0]:,.0f} {units[0][1]}"
    for size, name in units:
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"0 {units[-1][1]}"


def known(value: float, form: str = ".4f") -> str:
    return "-" if value != value else format(value, form)  # nan: no test rows, or no optimum


def percent(share: float) -> str:
    """A share in four digits; what is only near 100 % does not read as 100 %."""
    return f"{100 * share if share >= 1 else min(100 * share, 99.99):.4g} %"


def count(value: int) -> str:
    """At most six characters, up to a billion."""
    if value < 100_000:
        return f"{value:,}"
    return f"{value / 1e3:.0f}k" if value < 1e6 else f"{value / 1e6:.4g}M"


def metric_text(value: float) -> str:
    """Four decimals, unless the run is lost."""
    return known(value) if not abs(value) >= LARGE else f"{value:.0e}"


def quantity(value: float, cost: str) -> str:
    """A cost with its unit, in three digits; also a "share", in per cent, and a plain "number"."""
    if cost == "share":
        return percent(value)
    if cost == "number":
        return f"{value:.3g}"
    if cost == UNITS or value == 0:
        return f"{value:,.0f}"
    return in_units(float(f"{value:.3g}"), SECOND_UNITS if cost == TIME else BYTE_UNITS)  # first: 999.9 kB is 1 MB


def cell_text(cell: Cell, measure: str) -> str:
    """A cell of a claim's table: "12 ms", "not within 0.28 s", or a dash where there is nothing to measure."""
    if np.isnan(cell.value):
        return NONE
    if np.isfinite(cell.value):
        return quantity(cell.value, measure)
    return f"not within {quantity(cell.limit, measure)}" if np.isfinite(cell.limit) else "not reached"


def reach_text(costs: Sequence[float], cost: str) -> str:
    """The median over the seeds, and how many got there where not all or none did."""
    reached, middle = int(np.isfinite(costs).sum()), median_cost(costs)
    text = quantity(middle, cost) if np.isfinite(middle) else NONE
    return text if reached in (0, len(costs)) else f"{text} ({reached} of {len(costs)})"


def ended_text(value: float, column: str) -> str:
    """Where runs ended; a dash where they diverged, or have nothing to compare with."""
    form = ".2g" if column == "distance" or abs(value) >= LARGE else ".4f"
    return format(value, form) if np.isfinite(value) else NONE
