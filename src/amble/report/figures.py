"""Figures like the paper's: the metric against virtual time and against communication."""

from pathlib import Path
from typing import Any

import numpy as np

from amble.errors import AmbleError, need

# Okabe and Ito's colours, told apart by colour-blind readers too
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
READINGS_APART = 0.01  # relative difference of the two readings of the model from which both are drawn


def new_figure(width: float, height: float) -> Any:
    """A figure without a window or global state."""
    return need("matplotlib.figure", "sim").Figure(figsize=(width, height), layout="constrained", dpi=150)


def save(figure: Any, path: Path) -> Path:
    """Write the figure in the format of the path's ending; nothing is left behind if that fails."""
    known = figure.canvas.get_supported_filetypes()
    ending = path.suffix.lstrip(".").lower()
    if ending not in known:
        raise AmbleError(f"{path.name!r} was given for a figure; end it in .png, .svg or .pdf.")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".part")
    figure.savefig(partial, format=ending)
    partial.replace(path)
    return path


def comparison_figure(comparison: Any, path: Path) -> Path:
    regression = comparison.task != "classification"
    figure = new_figure(10.5, 4.6)
    left, right = figure.subplots(1, 2, sharey=True)
    panels = ((left, "time_s", "virtual time (s)"), (right, "comm_units", "communication (units)"))
    floor = {column: min(first_cost(run, column) for run in comparison.runs) for _, column, _ in panels}
    for k, run in enumerate(comparison.runs):
        colour = COLOURS[k % len(COLOURS)]
        finite = np.isfinite(run.history["metric"]) & (run.history["hop"] > 0)
        metric, local = run.history["metric"][finite], run.history["metric_local"][finite]
        apart = bool(np.any(np.abs(metric - local)[len(metric) // 2 :] > READINGS_APART * np.abs(local[-1])))
        for panel, column, _ in panels:
            x = np.maximum(run.history[column][finite], floor[column])
            panel.plot(x, metric, color=colour, label=run.label, linewidth=1.6)
            if apart:
                panel.plot(x, local, color=colour, linestyle=":", label=f"{run.label}, mean of x", linewidth=1.6)
    for panel, _, words in panels:
        panel.axhline(comparison.best_metric, color="0.4", linewidth=0.9, linestyle="--", label="centralised optimum")
        panel.set_xlabel(words)
        panel.set_xscale("log")
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)
        if regression:
            panel.set_yscale("log")
    left.set_ylabel("test NMSE" if regression else "test accuracy")
    if regression:
        plain_ticks(left, comparison)
    about = comparison.runs[0]
    figure.suptitle(
        f"{about.problem['name']}, {about.network.agents} agents, {about.network.name}, walk: {walk_name(about)}"
    )
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return save(figure, path)


def first_cost(run: Any, column: str) -> float:
    """The cost when the first link has been crossed: where a logarithmic axis may begin."""
    paid = run.history[column][run.history["comm_units"] > 0]
    return float(paid[0]) if len(paid) else 1.0


def plain_ticks(panel: Any, comparison: Any) -> None:
    """Numbers a person reads on a logarithmic axis that spans less than two decades; a diverged run leaves the axis."""
    ticker = need("matplotlib.ticker", "sim")
    shown = [run.history["metric"] for run in comparison.runs if run.stopped != "diverged"]
    if not shown:
        return
    values = np.concatenate([*shown, [comparison.best_metric]])
    low, high = np.nanmin(values), min(np.nanmax(values), 1e3)
    panel.set_ylim(low / 1.06, high * 1.06)
    if high / low < 100:
        panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 1.5, 2, 3, 5, 7)))
        panel.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        panel.yaxis.set_minor_locator(ticker.NullLocator())


def walk_name(run: Any) -> str:
    return run.walk if isinstance(run.walk, str) else "matrix"
