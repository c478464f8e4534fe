"""Figures like the paper's: the metric against virtual time and against communication."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amble.drawing import COLOURS, STYLES, new_figure, save
from amble.errors import need
from amble.results.pictures import stragglers
from amble.results.reaching import column_of

READINGS_APART = 0.01  # relative difference of the two readings of the model from which both are drawn


def shown_column(comparison: Any) -> tuple[str, str]:
    """What the figure shows, and its words: the test metric, or the distance where there are no test rows."""
    if any(np.isfinite(run.history["metric"]).any() for run in comparison.runs):
        return "metric", "test accuracy" if comparison.task == "classification" else "test NMSE"
    known = all(np.isfinite(column_of(run, "distance")).any() for run in comparison.runs)
    return ("distance", "distance to the optimum, |w - w*| / |w*|") if known else ("objective", "sum of all losses")


def comparison_figure(comparison: Any, path: Path) -> Path:
    column, words = shown_column(comparison)
    figure = new_figure(10.5, 4.9)
    left, right = figure.subplots(1, 2, sharey=True)
    panels = ((left, "time_s", "virtual time (s)"), (right, "comm_units", "communication (units)"))
    for k, run in enumerate(comparison.runs):
        colour, style = COLOURS[k % len(COLOURS)], STYLES[k // len(COLOURS) % len(STYLES)]
        name = f"{run.label} (diverged)" if run.stopped == "diverged" else run.label
        for panel, cost, _ in panels:
            looks = {"color": colour, "drawstyle": "steps-post", "linewidth": 1.6}
            panel.plot(*curve(run, cost, column), linestyle=style, label=name, **looks)
            if column != "objective" and readings_differ(run, column):
                x, y = curve(run, cost, f"{column}_local")
                panel.plot(x, y, linestyle=":", label=f"{run.label}, mean of x", **looks)
    for panel, cost, cost_words in panels:
        if column == "metric" and np.isfinite(comparison.best_metric):
            panel.axhline(comparison.best_metric, color="0.4", lw=0.9, ls="--", label="centralised optimum")
        panel.set_xlabel(cost_words)
        if any(len(curve(run, cost, column)[0]) for run in comparison.runs):
            panel.set_xscale("log")
        begin_where_something_happens(panel, comparison.runs, cost)
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
    left.set_ylabel(words)
    accuracy = column == "metric" and comparison.task == "classification"
    if not accuracy and any(len(curve(run, "time_s", column)[0]) for run in comparison.runs):
        left.set_yscale("log")
        readable_log_axis(left, comparison, column)
    about = comparison.runs[0]
    walks = " / ".join(dict.fromkeys(run.walk_name for run in comparison.runs if hasattr(run.schedule, "token")))
    title = f"{about.problem['name']}, {about.network.agents} agents, {about.network.name}, walk: {walks or 'none'}"
    figure.suptitle(title + stragglers(about))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return save(figure, path)


def curve(run: Any, cost: str, column: str) -> tuple[Any, Any]:
    """One line of the figure: what can be drawn on logarithmic axes, from the first cost above zero on."""
    x, y = run.history[cost], run.history[column]
    drawn = (x > 0) & np.isfinite(y) & (np.abs(y) < 1e6)
    return x[drawn], y[drawn]


def first_message(runs: Sequence[Any], cost: str) -> float | None:
    """The cost at which the first message of any run has crossed a link; None if none ever has.

    Before it there are only the first visits of the tokens, each where the token starts.
    """
    sent = [run.history[cost][run.history["comm_units"] > 0] for run in runs]
    return min((float(each[0]) for each in sent if len(each)), default=None)


def begin_where_something_happens(panel: Any, runs: Sequence[Any], cost: str) -> None:
    """Let the axis begin shortly before the first message, so that what came before still enters from the left."""
    first = first_message(runs, cost)
    if first:
        panel.set_xlim(left=first / 1.25)


def readings_differ(run: Any, column: str) -> bool:
    """Whether the tokens' mean and the mean of x are far enough apart, late in the run, to draw both."""
    one, other = column_of(run, column), column_of(run, f"{column}_local")
    late = slice(len(one) // 2, None)
    gap = np.abs(one - other)[late] > READINGS_APART * np.maximum(np.abs(one), np.abs(other))[late]
    return bool(gap.any())


def readable_log_axis(panel: Any, comparison: Any, column: str) -> None:
    """Limits by what is drawn, and plain numbers where the axis spans less than two decades."""
    ticker = need("matplotlib.ticker", "sim")
    first = first_message(comparison.runs, "time_s") or 0.0
    curves = [curve(run, "time_s", column) for run in comparison.runs]
    drawn = [y[max(0, np.searchsorted(x, first, side="right") - 1) :] for x, y in curves]  # from where it enters
    values = np.concatenate([*drawn, [comparison.best_metric] if column == "metric" else []])
    values = values[values > 0]
    if not len(values):
        return
    low, high = values.min(), min(values.max(), 1e3)
    panel.set_ylim(low / 1.06, high * 1.06)
    if high / low < 100:
        panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        panel.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        panel.yaxis.set_minor_locator(ticker.NullLocator())
