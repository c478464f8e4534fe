"""A picture of which agent holds which rows: labels as stacked bars, or the spread of the targets."""

from pathlib import Path
from typing import Any

import numpy as np

from amble.drawing import COLOURS, new_figure, save
from amble.errors import AmbleError, need

LABELS_MAX = 20
AGENTS_NAMED_MAX = 60
HATCHES = ("", "////", "....")  # when the colours begin again


def partition_picture(holdings: dict[str, Any] | None, path: Path, title: str) -> Path:
    """One bar an agent, from what `Problem.holdings` or a run's problem says."""
    if holdings is None:
        raise AmbleError("who holds what is not known here: the problem has no rows, or more than 1,000 agents.")
    agents = len(holdings.get("counts") or holdings["rows"])
    figure = new_figure(9, min(12.0, max(2.4, 1.2 + 0.24 * agents)))
    if "counts" in holdings:
        axes = [figure.subplots()]
        draw_labels(axes[0], holdings)
        figure.legend(loc="outside right upper", frameon=False, fontsize=8, title="label")
    else:
        axes = list(figure.subplots(1, 2, sharey=True, width_ratios=(1, 2)))
        draw_targets(axes[0], axes[1], holdings)
    axes[0].set_xlim(0, 1.02 * max(holdings.get("rows") or map(sum, holdings["counts"])))
    ticker = need("matplotlib.ticker", "sim")
    for panel in axes:
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(axis="y", length=0)
        panel.set_ylim(agents - 0.4, -0.6)  # agent 0 on top
        panel.xaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10], integer=panel is axes[0]))
        panel.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    if agents <= AGENTS_NAMED_MAX:
        axes[0].set_yticks(range(agents), holdings.get("agents") or [str(i) for i in range(agents)], fontsize=7)
    axes[0].set_ylabel("agent")
    figure.suptitle(title, fontsize=10)
    return save(figure, path)


def partition_title(name: str, settings: dict[str, Any]) -> str:
    """digits: who holds what (dirichlet, alpha 0.5)."""
    alpha = f", alpha {settings['alpha']:g}" if "alpha" in settings else ""
    return f"{name}: who holds what ({settings.get('how', 'given')}{alpha})"


def draw_labels(axes: Any, holdings: dict[str, Any]) -> None:
    """How many rows of each label; with many labels, the rarest together."""
    counts, names = np.array(holdings["counts"]), [str(label) for label in holdings["labels"]]
    if len(names) > LABELS_MAX:
        kept = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[: LABELS_MAX - 1])
        rest = counts.sum(axis=1) - counts[:, kept].sum(axis=1)
        names = [names[k] for k in kept] + ["others"]
        counts = np.column_stack([counts[:, kept], rest])
    left, line = np.zeros(len(counts)), 0.3 if len(counts) <= AGENTS_NAMED_MAX else 0.0
    for k, name in enumerate(names):
        look = {"color": COLOURS[k % len(COLOURS)], "hatch": HATCHES[k // len(COLOURS)], "edgecolor": "white"}
        axes.barh(
            np.arange(len(counts)), counts[:, k], thickness(len(counts)), left, label=name, linewidth=line, **look
        )
        left += counts[:, k]
    axes.set_xlabel("rows")


def draw_targets(left: Any, right: Any, holdings: dict[str, Any]) -> None:
    """Rows as bars; targets as a line from least to most, thick where the middle half is, with the median."""
    agents = np.arange(len(holdings["rows"]))
    low, first, middle, third, high = np.array(holdings["target"]).T
    left.barh(agents, holdings["rows"], thickness(len(agents)), color=COLOURS[5])
    left.set_xlabel("rows")
    right.hlines(agents, low, high, color="0.6", linewidth=1, zorder=2)
    right.barh(agents, third - first, 0.8 * thickness(len(agents)), first, color=COLOURS[0], zorder=3)
    if len(agents) <= AGENTS_NAMED_MAX:
        right.plot(middle, agents, "|", color="white", markersize=6, markeredgewidth=1.6, zorder=4)
    right.set_xlabel("target: least, middle half, median, most")
    right.grid(axis="x", alpha=0.25, linewidth=0.6)


def thickness(agents: int) -> float:
    """Of a bar, where agents are one apart; many leave no room between them."""
    return 0.8 if agents <= AGENTS_NAMED_MAX else 1.0
