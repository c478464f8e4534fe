"""A picture of which agent holds which rows: labels as stacked bars, or the spread of the targets."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from amble.drawing import headline, literal, new_figure, save
from amble.errors import AmbleError, need
from amble.look import COLOURS, PAPER, QUIET, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABELS_MAX = 20
AGENTS_NAMED_MAX = 60
HATCHES = ("", "////", "....")  # when the colours begin again


@look()
def holdings_figure(name: str, holdings: dict[str, Any], settings: dict[str, Any]) -> "Figure":
    """One bar per agent, from what `Problem.holdings` and `Problem.settings`, or a run's problem, say."""
    agents = len(holdings.get("counts") or holdings["rows"])
    labels = min(len(holdings.get("labels", ())), LABELS_MAX)
    figure = new_figure(5, max(1.2 + 0.115 * min(agents, AGENTS_NAMED_MAX), 0.9 + 0.15 * labels))
    if "counts" in holdings:
        axes = [figure.subplots()]
        draw_labels(axes[0], holdings)
        figure.legend(loc="outside right upper", title="label", title_fontsize=7)
    else:
        axes = list(figure.subplots(1, 2, sharey=True, width_ratios=(1, 2)))
        draw_targets(axes[0], axes[1], holdings)
    axes[0].set_xlim(0, 1.02 * max(holdings.get("rows") or map(sum, holdings["counts"])))
    ticker = need("matplotlib.ticker", "sim")
    for panel in axes:
        panel.spines.left.set_visible(False)
        panel.tick_params(axis="x", labelsize=7)
        panel.tick_params(axis="y", length=0)
        panel.set_ylim(agents - 0.4, -0.6)  # agent 0 on top
        panel.xaxis.set_major_locator(ticker.MaxNLocator(4, steps=[1, 2, 5, 10], integer=panel is axes[0]))
        panel.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,g}"))
    if agents <= AGENTS_NAMED_MAX:
        names = holdings.get("agents") or range(agents)
        axes[0].set_yticks(range(agents), [literal(str(name)) for name in names], fontsize=6)
    axes[0].set_ylabel("agent", fontsize=8)
    alpha = f", alpha {settings['alpha']:g}" if "alpha" in settings else ""
    about = f"{name}: which agent holds which rows ({settings.get('how', 'given')}{alpha})"
    headline(figure, _seen(holdings), about)
    return figure


def _seen(holdings: dict[str, Any]) -> str:
    """How different the agents are."""
    if "counts" in holdings:
        counts = np.array(holdings["counts"])
        own, whole = (counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)).mean(), counts.sum(axis=0) / counts.sum()
        return f"The commonest label is {100 * own:.0f} % of an agent's rows, {100 * whole.max():.0f} % of all"
    rows, middle = holdings["rows"], np.array(holdings["target"])[:, 2]
    return f"Agents have {_span(rows)} rows, medians of the target: {_span(middle)}"


def _span(values: Any) -> str:
    low, high = f"{min(values):,.4g}", f"{max(values):,.4g}"
    return low if low == high else f"{low} to {high}"


def partition_picture(path: Path, name: str, holdings: dict[str, Any] | None, settings: dict[str, Any]) -> Path:
    """The figure as a file."""
    if holdings is None:
        raise AmbleError(
            "it is not known which agent holds which rows: the problem has no rows, or more than 1,000 agents."
        )
    return save(holdings_figure(name, holdings, settings), path)


def draw_labels(axes: "Axes", holdings: dict[str, Any]) -> None:
    """How many rows of each label; with many labels, the rarest together."""
    counts, names = np.array(holdings["counts"]), [literal(str(label)) for label in holdings["labels"]]
    if len(names) > LABELS_MAX:
        kept = np.sort(np.argsort(-counts.sum(axis=0), kind="stable")[: LABELS_MAX - 1])
        rest = counts.sum(axis=1) - counts[:, kept].sum(axis=1)
        names = [names[k] for k in kept] + ["others"]
        counts = np.column_stack([counts[:, kept], rest])
    left, line = np.zeros(len(counts)), 0.3 if len(counts) <= AGENTS_NAMED_MAX else 0.0
    for k, name in enumerate(names):
        look: dict[str, Any] = {
            "color": COLOURS[k % len(COLOURS)],
            "hatch": HATCHES[k // len(COLOURS)],
            "edgecolor": PAPER,
        }
        axes.barh(
            np.arange(len(counts)), counts[:, k], thickness(len(counts)), left, label=name, linewidth=line, **look
        )
        left += counts[:, k]
    axes.set_xlabel("rows", fontsize=8)


def draw_targets(left: "Axes", right: "Axes", holdings: dict[str, Any]) -> None:
    """Rows as bars; targets as a line from least to most, thick where the middle half is, with the median."""
    agents = np.arange(len(holdings["rows"]))
    low, first, middle, third, high = np.array(holdings["target"]).T
    left.barh(agents, holdings["rows"], thickness(len(agents)), color=COLOURS[5])
    left.set_xlabel("rows", fontsize=8)
    right.hlines(agents, low, high, color=QUIET, linewidth=1, zorder=2)
    right.barh(agents, third - first, 0.8 * thickness(len(agents)), first, color=COLOURS[0], zorder=3)
    if len(agents) <= AGENTS_NAMED_MAX:
        right.plot(middle, agents, "|", color=PAPER, markersize=6, markeredgewidth=1.6, zorder=4)
    right.set_xlabel("target: least, middle half, median, most", fontsize=8)
    right.grid(axis="x")


def thickness(agents: int) -> float:
    """Of a bar, where agents are one apart; many leave no room between them."""
    return 0.8 if agents <= AGENTS_NAMED_MAX else 1.0
