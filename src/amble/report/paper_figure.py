"""A section's figure for a paper: two panels like the paper's, at a double column's width, legible in grey."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amble.drawing import new_figure, save
from amble.errors import need
from amble.report.curves import y_axis
from amble.report.figures import begin_where_something_happens
from amble.report.looks import Look, looks
from amble.report.sections import TIME, UNITS, Line, Section, band, columns, lines
from amble.results.pictures import stragglers

WIDTH_IN = 7.16  # two columns of an IEEE page
STYLES = ("-", "--", "-.")
MARKERS = "os^DvPX*<>hp"  # they tell lines apart where colours do not
MARKS = 6  # on a line
SETTINGS = {"font.size": 8, "axes.linewidth": 0.6, "pdf.fonttype": 42, "lines.linewidth": 1.2, "lines.markersize": 3.5}


def section_figure(section: Section, path: Path, own_looks: Sequence[Look] | None = None) -> Path:
    """The metric against virtual time and against communication: medians, and bands over the seeds.

    `own_looks` are this section's of `looks`, so that a method has one colour in the figures of several sections.
    """
    matplotlib = need("matplotlib", "sim")
    found = lines(section)
    own = looks([section])[0] if own_looks is None else own_looks
    column, words = next(iter(columns(section).items()))
    axis = y_axis(section, column, words)
    with matplotlib.rc_context(SETTINGS):
        longest = max(len(line.label) for line in found)
        across = 3 if longest < 42 else 2
        figure = new_figure(WIDTH_IN, 2.6 + 0.15 * (1 + len(found) // across))
        figure.set_dpi(300)
        panels = figure.subplots(1, 2, sharey=True)
        for panel, cost, cost_words in zip(
            panels, (TIME, UNITS), ("virtual time (s)", "communication (units)"), strict=True
        ):
            for k, (line, look) in enumerate(zip(found, own, strict=True)):
                _draw(panel, line, look, k, cost, column)
            if axis["best"] is not None:
                panel.axhline(axis["best"], color="0.4", lw=0.9, ls=(0, (5, 3)), label="centralised optimum")
            if any(len(band(line, cost, column)[0]) for line in found):
                panel.set_xscale("log")
            begin_where_something_happens(panel, section.runs, cost)
            panel.set_xlabel(cost_words)
            panel.grid(alpha=0.25, linewidth=0.5)
            panel.spines[["top", "right"]].set_visible(False)
        _scale(panels[0], axis)
        figure.suptitle(stragglers(section.runs[0]).strip())
        panels[0].set_ylabel(axis["words"])
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=across, fontsize=7 if longest < 52 else 6, frameon=False
        )
        return save(figure, path)


def _draw(panel: Any, line: Line, look: Look, k: int, cost: str, column: str) -> None:
    x, low, middle, high = band(line, cost, column)
    style = ":" if look.dotted else STYLES[look.turn % len(STYLES)]
    apart = max(1, len(x) // MARKS)
    first = k * 5 % apart  # lines that lie on one another show their marks in turn
    panel.plot(
        x, middle, color=look.colour, linestyle=style, marker=MARKERS[k % len(MARKERS)], markevery=(first, apart),
        markerfacecolor="white" if look.dotted else look.colour, label=line.label, drawstyle="steps-post",
    )  # fmt: skip
    if len(line.runs) > 1:
        drawn = np.isfinite(low) & np.isfinite(high)
        panel.fill_between(x[drawn], low[drawn], high[drawn], color=look.colour, alpha=0.15, linewidth=0, step="post")


def _scale(panel: Any, axis: dict[str, Any]) -> None:
    """Limits by what is drawn; plain numbers where a logarithmic axis spans less than two decades."""
    if axis["range"] is None:
        return
    if not axis["log"]:
        panel.set_ylim(*axis["range"])
        return
    low, high = axis["range"]
    panel.set_yscale("log")
    panel.set_ylim(10**low, 10**high)
    if high - low < 2:
        ticker = need("matplotlib.ticker", "sim")
        panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        panel.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        panel.yaxis.set_minor_locator(ticker.NullLocator())
