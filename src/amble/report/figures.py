"""A section's figure: two panels like the paper's, at a double column's width, legible in grey."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from amble import methods
from amble.drawing import End, headline, label_ends, literal, new_figure
from amble.errors import need
from amble.look import PAPER, QUIET, STYLES, look
from amble.report.curves import YAxis, y_axis
from amble.report.headline import headline as sentence
from amble.report.looks import Look, looks
from amble.report.measures import band, first_message
from amble.report.sections import TIME, UNITS, Line, Section, columns, cost_names, legend_label, lines
from amble.results.pictures import stragglers
from amble.results.run import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_IN, HEIGHT_IN = 7.16, 2.7  # the width of two columns of an IEEE page
BEST_STYLE = (0, (5, 3))
MARKERS = "os^DvPX*<>hp"  # they distinguish lines where colours do not
MARKS = 6  # on a line
OPTIMUM = "centralised optimum"
LABEL_WIDTH = 26  # characters of a line of a label


def comparison_figure(runs: Sequence[Run]) -> "Figure":
    """The figure of runs on one problem and network; it says which, because it has no caption."""
    about = runs[0]
    walks = " / ".join(dict.fromkeys(run.walk_name for run in runs if methods.walks(run.method)))
    title = f"{about.problem['name']}, {about.network.agents} agents, {about.network.name}, walk: {walks or 'none'}"
    return section_figure(Section(title, tuple(runs)))


def section_figure(section: Section, own_looks: Sequence[Look] | None = None) -> "Figure":
    """The metric against virtual time and against communication: medians, and bands over the seeds.

    `own_looks` are this section's of `looks`, so that a method has one colour in the figures of several sections.
    """
    drawn = lines(section)
    own = looks([section])[0] if own_looks is None else own_looks
    axis = y_axis(section, next(iter(columns(section))))
    with look():
        figure = new_figure(WIDTH_IN, HEIGHT_IN)
        panels = figure.subplots(1, 2, sharey=True)
        names = cost_names(section)
        for panel, cost, label in zip(panels, (TIME, UNITS), (f"{names[TIME]} (s)", names[UNITS]), strict=True):
            for k, (line, line_look) in enumerate(zip(drawn, own, strict=True)):
                _draw(panel, line, line_look, k, cost, axis["key"])
            if axis["best"] is not None:
                panel.axhline(axis["best"], color=QUIET, lw=0.9, ls=BEST_STYLE, label=OPTIMUM)
            if any(len(band(line, cost, axis["key"])[0]) for line in drawn):
                panel.set_xscale("log")
            if first := first_message(section.runs, cost):  # earlier values still enter from the left
                panel.set_xlim(left=first / 1.25)
            panel.set_xlabel(label)
            panel.grid()
        _scale(panels[0], axis)
        headline(figure, sentence(section), section.title + stragglers(section.runs[0]))
        panels[0].set_ylabel(axis["title"])
        ends = _ends(drawn, own, axis["key"])
        if ends and axis["best"] is not None:
            ends.append(End(panels[1].get_xlim()[1], axis["best"], OPTIMUM, QUIET))
        if not label_ends(panels[1], ends):
            _legend(figure, panels[0], drawn)
    return figure


def _ends(drawn: Sequence[Line], own: Sequence[Look], column: str) -> list[End]:
    """Where each line of the second panel ends, with its label; none if there is one that cannot be drawn."""
    ends = []
    for line, line_look in zip(drawn, own, strict=True):
        x, _, middle, _ = band(line, UNITS, column)
        if not np.isfinite(middle).any():
            return []
        last = np.flatnonzero(np.isfinite(middle))[-1]
        ends.append(End(x[last], middle[last], _label(line), line_look.colour))
    return ends


def _label(line: Line) -> str:
    """The method's name, and its settings on lines of their own."""
    lost = " (diverged)" * any(run.stopped == "diverged" for run in line.runs)
    name, settings = line.runs[0].method.label + lost, ", ".join(filter(None, line.details))
    if len(name) + len(settings) < LABEL_WIDTH:
        return f"{name} ({settings})"
    return "\n".join([name, *textwrap.wrap(settings, LABEL_WIDTH)])


def _legend(figure: "Figure", panel: "Axes", drawn: Sequence[Line]) -> None:
    longest = max(len(legend_label(line)) for line in drawn)
    across = 3 if longest < 42 else 2
    handles, labels = panel.get_legend_handles_labels()
    figure.set_figheight(figure.get_figheight() + 0.15 * (1 + len(drawn) // across))
    figure.legend(handles, labels, loc="outside lower center", ncols=across, fontsize=7 if longest < 52 else 6)


def _draw(panel: "Axes", line: Line, own: Look, k: int, cost: str, column: str) -> None:
    x, low, middle, high = band(line, cost, column)
    style = ":" if own.dotted else STYLES[own.turn % len(STYLES)]
    apart = max(1, len(x) // MARKS)
    first = k * 5 % apart  # lines that lie on one another show their marks in turn
    panel.plot(
        x, np.where(np.isfinite(middle), middle, np.nan), color=own.colour, linestyle=style, drawstyle="steps-post",
        marker=MARKERS[k % len(MARKERS)], markevery=(first, apart), label=literal(legend_label(line)),
        markerfacecolor=PAPER if own.dotted else own.colour,
    )  # fmt: skip
    if len(line.runs) > 1:
        drawn = np.isfinite(low) & np.isfinite(high)
        panel.fill_between(x[drawn], low[drawn], high[drawn], color=own.colour, alpha=0.15, linewidth=0, step="post")


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
