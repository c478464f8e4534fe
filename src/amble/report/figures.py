"""A section's figure: two panels like the paper's, at a double column's width, legible in grey."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from amble.drawing import STYLES, literal, new_figure
from amble.errors import need
from amble.report.curves import YAxis, y_axis
from amble.report.looks import Look, looks
from amble.report.measures import band, first_message
from amble.report.sections import TIME, UNITS, Line, Section, columns, legend_label, lines
from amble.results.pictures import stragglers
from amble.results.run import Run
from amble.schedule.rounds import Rounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN = 7.16  # two columns of an IEEE page
MARKERS = "os^DvPX*<>hp"  # they distinguish lines where colours do not
MARKS = 6  # on a line
SETTINGS = {"font.size": 8, "axes.linewidth": 0.6, "lines.linewidth": 1.2, "lines.markersize": 3.5}
PANELS = {TIME: "virtual time (s)", UNITS: "communication (units)"}


def comparison_figure(runs: Sequence[Run]) -> "Figure":
    """The figure of runs on one problem and network, with a title, because it has no caption."""
    about = runs[0]
    walks = " / ".join(dict.fromkeys(run.walk_name for run in runs if not isinstance(run.schedule, Rounds)))
    title = f"{about.problem['name']}, {about.network.agents} agents, {about.network.name}, walk: {walks or 'none'}"
    return section_figure(Section(title, tuple(runs)), title=title)


def section_figure(section: Section, own_looks: Sequence[Look] | None = None, title: str = "") -> "Figure":
    """The metric against virtual time and against communication: medians, and bands over the seeds.

    `own_looks` are this section's of `looks`, so that a method has one colour in the figures of several sections.
    """
    drawn = lines(section)
    own = looks([section])[0] if own_looks is None else own_looks
    axis = y_axis(section, next(iter(columns(section))))
    longest = max(len(legend_label(line)) for line in drawn)
    across = 3 if longest < 42 else 2
    with need("matplotlib", "sim").rc_context(SETTINGS):
        figure = new_figure(WIDTH_IN, 2.6 + 0.15 * (1 + len(drawn) // across) + 0.2 * bool(title))
        panels = figure.subplots(1, 2, sharey=True)
        for panel, (cost, label) in zip(panels, PANELS.items(), strict=True):
            for k, (line, look) in enumerate(zip(drawn, own, strict=True)):
                _draw(panel, line, look, k, cost, axis["key"])
            if axis["best"] is not None:
                panel.axhline(axis["best"], color="0.4", lw=0.9, ls=(0, (5, 3)), label="centralised optimum")
            if any(len(band(line, cost, axis["key"])[0]) for line in drawn):
                panel.set_xscale("log")
            if first := first_message(section.runs, cost):  # earlier values still enter from the left
                panel.set_xlim(left=first / 1.25)
            panel.set_xlabel(label)
            panel.grid(alpha=0.25, linewidth=0.5)
            panel.spines[["top", "right"]].set_visible(False)
        _scale(panels[0], axis)
        figure.suptitle((literal(title) + stragglers(section.runs[0])).strip())
        panels[0].set_ylabel(axis["title"])
        handles, labels = panels[0].get_legend_handles_labels()
        size = 7 if longest < 52 else 6
        figure.legend(handles, labels, loc="outside lower center", ncols=across, fontsize=size, frameon=False)
    return figure


def _draw(panel: "Axes", line: Line, look: Look, k: int, cost: str, column: str) -> None:
    x, low, middle, high = band(line, cost, column)
    style = ":" if look.dotted else STYLES[look.turn % len(STYLES)]
    apart = max(1, len(x) // MARKS)
    first = k * 5 % apart  # lines that lie on one another show their marks in turn
    panel.plot(
        x, np.where(np.isfinite(middle), middle, np.nan), color=look.colour, linestyle=style, drawstyle="steps-post",
        marker=MARKERS[k % len(MARKERS)], markevery=(first, apart), label=literal(legend_label(line)),
        markerfacecolor="white" if look.dotted else look.colour,
    )  # fmt: skip
    if len(line.runs) > 1:
        drawn = np.isfinite(low) & np.isfinite(high)
        panel.fill_between(x[drawn], low[drawn], high[drawn], color=look.colour, alpha=0.15, linewidth=0, step="post")


def _scale(panel: "Axes", axis: YAxis) -> None:
    """Limits by what is drawn; plain numbers where a logarithmic axis spans less than two decades."""
    if axis["range"] is None:
        return
    low, high = axis["range"]
    if not axis["log"]:
        panel.set_ylim(low, high)
        return
    panel.set_yscale("log")
    panel.set_ylim(10**low, 10**high)
    if high - low < 2:
        ticker = need("matplotlib.ticker", "sim")
        panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        panel.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        panel.yaxis.set_minor_locator(ticker.NullLocator())
