"""The heat map of a sweep: the median of a measured column over seeds, for two settings."""

from typing import TYPE_CHECKING, Any

import numpy as np

from amble import methods
from amble.arrays import Array
from amble.drawing import headline, literal, new_figure
from amble.errors import AmbleError, need, unknown
from amble.look import INK, LIGHT, PAPER, QUIET, look
from amble.sweeps.measured import LABELS, Measured, is_higher_better, quantile, values_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CELL_IN, MARGIN_IN = 0.55, 1.5
CELLS_WITH_TEXT = 400  # more are too small for their numbers
DARK = 0.55  # of the scale: from here on, numbers are in the colour of the paper


@look()
def heatmap(sweep: Measured, x: str | None, y: str | None, by: str) -> "Figure":
    """A cell per pair of values; the best one has a frame, and one whose runs have no value is empty."""
    across, down = axes(sweep, x, y)
    cells, counts, several = medians(sweep, across, down, by)
    columns, rows = along(sweep, across), along(sweep, down)
    sign = -1.0 if is_higher_better(sweep, by) else 1.0
    figure = new_figure(
        MARGIN_IN + CELL_IN * max(len(columns), 5) + 0.8, MARGIN_IN + 0.75 * CELL_IN * max(len(rows), 1)
    )
    panel = figure.subplots()
    colours = need("matplotlib.colors", "sim")
    scale = colours.LinearSegmentedColormap.from_list(
        "amble", [LIGHT["c0"], LIGHT["c5"], LIGHT["raised"]]
    ).with_extremes(bad=PAPER)
    finite = cells[np.isfinite(cells)]
    shown = sign * np.where(np.isfinite(cells), cells, np.nan)
    wide = len(finite) > 0 and finite.min() > 0 and finite.max() > 20 * finite.min()
    norm = (colours.LogNorm if wide else colours.Normalize)(*spread(finite))
    image = panel.imshow(
        np.ma.masked_invalid(np.abs(shown) if sign < 0 else shown), cmap=scale.reversed() if sign < 0 else scale,
        norm=norm, aspect="auto", origin="lower",
    )  # fmt: skip
    panel.set_xticks(range(len(columns)), [tick(value) for value in columns])
    panel.set_yticks(range(len(rows)), [tick(value) for value in rows] if down else [""])
    panel.set_xlabel(literal(across))
    panel.set_ylabel(literal(down or ""))
    panel.tick_params(length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)
    best = np.unravel_index(int(np.argmin(np.where(np.isfinite(cells), sign * cells, np.inf))), cells.shape)
    if len(finite):
        patch = need("matplotlib.patches", "sim").Rectangle
        panel.add_patch(patch((best[1] - 0.5, best[0] - 0.5), 1, 1, fill=False, ec=INK, lw=1.5))
    if cells.size <= CELLS_WITH_TEXT:
        for (row, column), value in np.ndenumerate(cells):
            dark = np.isfinite(value) and luminance(image.cmap(norm(value))) < DARK
            text = f"{value:.3g}" if np.isfinite(value) else "none" if counts[row, column] else ""
            panel.text(column, row, text, ha="center", va="center", fontsize=6.5,
                       color=PAPER if dark else INK if text != "none" else QUIET)  # fmt: skip
    bar = figure.colorbar(image, ax=panel)
    bar.outline.set_visible(False)
    if wide:
        ticker = need("matplotlib.ticker", "sim")
        bar.locator, bar.formatter = ticker.LogLocator(subs=(1, 2, 5)), ticker.StrMethodFormatter("{x:g}")
        bar.minorticks_off()
    named = ((across, columns[best[1]]), (down, rows[best[0]]))
    where = " and ".join(f"{name} {tick(value)}" for name, value in named if value is not None)
    said = f"{by} is {'highest' if sign < 0 else 'lowest'} with {where}" if len(finite) else f"no run has a {by}"
    notes = [f"median over {counts.max()} runs" + (", of the best setting in each cell" if several else "")]
    if (np.isinf(cells) & (counts > 0)).any():
        notes.append("none: half of the runs or more have no value")
    headline(figure, said, ";\n".join(notes))
    return figure


def axes(sweep: Measured, x: str | None, y: str | None) -> tuple[str, str | None]:
    """The two names along the axes. Where none is given: the setting of most methods that has most values, and the
    method, or the next setting if there is one method; the second is None if only one varies."""
    settings = dict.fromkeys(name for case in sweep.cases for name in methods.settings(case.method))
    known = [*settings, *LABELS]
    for name in (x, y):
        if name is not None and name not in known:
            raise unknown("setting of this sweep", name, known)
    if x is not None and x == y:
        raise AmbleError(f"x and y are both {x}; give two different settings.")
    varying = {name: len(along(sweep, name)) for name in known if name not in (x, y)}
    having = {
        name: len({case.method.label for case in sweep.cases if value_of(case, name) is not None}) for name in varying
    }
    order = sorted(
        varying,
        key=lambda name: (
            name in ("seed", "split"),
            name == "method",
            varying[name] < 2,
            -having[name],
            -varying[name],
        ),
    )
    across = x or order.pop(0)
    left = [name for name in order if varying[name] > 1 and name not in ("seed", "split", across)]
    return across, y or ("method" if "method" in left else left[0] if left else None)


def value_of(case: Any, name: str) -> Any:
    if name == "method":
        return case.method.label
    return getattr(case, name) if name in LABELS else methods.settings(case.method).get(name)


def along(sweep: Measured, name: str | None) -> list[Any]:
    """The values along an axis, in order; those that are absent first."""
    if name is None:
        return [None]
    found = {value_of(case, name) for case in sweep.cases}
    return sorted(
        found, key=lambda value: (value is not None, isinstance(value, str), value if value is not None else 0)
    )


def medians(sweep: Measured, across: str, down: str | None, by: str) -> tuple[Array, Any, bool]:
    """The median in each cell, infinite where half of the runs or more have no value; how many runs it is of; and
    whether a cell has several settings: it is then that of the best one."""
    values, sign = values_of(sweep, by), -1.0 if is_higher_better(sweep, by) else 1.0
    columns, rows = along(sweep, across), along(sweep, down)
    runs: dict[tuple[int, int, Any], list[float]] = {}
    for case, value in zip(sweep.cases, values.tolist(), strict=True):
        row = 0 if down is None else rows.index(value_of(case, down))
        runs.setdefault((row, columns.index(value_of(case, across)), case.method), []).append(value)
    cells, counts = np.full((len(rows), len(columns)), np.inf), np.zeros((len(rows), len(columns)), int)
    for (row, column, _), own in runs.items():
        cells[row, column] = min(cells[row, column], quantile(np.array(own), 0.5))
        counts[row, column] = len(own)
    several = len({(row, column) for row, column, _ in runs}) < len(runs)
    return np.where(np.isfinite(cells), sign * cells, np.inf), counts, several


def spread(finite: Array) -> tuple[float, float]:
    if not len(finite):
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    return (low, high) if high > low else (low, low + abs(low or 1.0))


def tick(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, int | float) else literal(str(value))


def luminance(colour: Any) -> float:
    red, green, blue = colour[:3]
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)
