"""The paper's figures 1 and 2 from any run: the network with its tokens, and which copy is updated when."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from amble.drawing import COLOURS, new_figure, save
from amble.errors import AmbleError, need
from amble.schedule.rounds import Rounds

AGENTS_NAMED_MAX = 120
STEPS_DRAWN = 4
STRAGGLERS_NAMED = 4  # in a title; of more, only their number


def network_picture(run: Any, path: Path) -> Path:
    """Agents and links; each token's first steps as arrows in its colour, its number where it starts."""
    networkx = need("networkx", "sim")
    graph = networkx.Graph()
    graph.add_nodes_from(range(run.network.agents))
    graph.add_edges_from(run.network.edges.tolist())
    dense = len(run.network.edges) > 3 * run.network.agents
    place = networkx.circular_layout(graph) if dense else networkx.spring_layout(graph, seed=run.seed)
    points = np.array([place[i] for i in range(run.network.agents)])
    figure = new_figure(7, 7)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_aspect("equal")
    lines = need("matplotlib.collections", "sim").LineCollection
    axes.add_collection(lines(points[run.network.edges], colors="0.85", linewidths=0.6, zorder=1))
    named = run.network.agents <= AGENTS_NAMED_MAX
    axes.scatter(*points.T, s=260 if named else 12, color="white", edgecolors="0.35", zorder=2)
    if named:
        for i, point in enumerate(points):
            axes.text(*point, str(i), ha="center", va="center", fontsize=8, zorder=4)
    if not isinstance(run.schedule, Rounds):
        for m in range(run.method.tokens):
            _draw_token(axes, points, run.schedule.agent[run.schedule.token == m][: STEPS_DRAWN + 1], m)
    axes.set_title(f"{run.network.name}: {run.network.agents} agents, {len(run.network.edges)} links", fontsize=10)
    steps = f"arrows: each token's first {STEPS_DRAWN} steps" if hasattr(run.schedule, "token") else "rounds, no tokens"
    axes.text(
        0.5, -0.02, f"{run.label}, walk: {run.walk_name}; {steps}", transform=axes.transAxes, ha="center", fontsize=8
    )
    axes.margins(0.12)
    return save(figure, path)


def _draw_token(axes: Any, points: Any, agents: Any, m: int) -> None:
    colour = COLOURS[m % len(COLOURS)]
    for a, b in pairwise(agents):
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": 1.8, "shrinkA": 9, "shrinkB": 9}
        axes.annotate("", xy=points[b], xytext=points[a], arrowprops=arrow, zorder=3)
    if len(agents):
        centre = points.mean(axis=0)
        out = points[agents[0]] - centre
        spot = points[agents[0]] + 0.11 * out / (np.linalg.norm(out) or 1.0)
        axes.text(*spot, f"$z_{{{m}}}$", color=colour, fontsize=13, ha="center", va="center", zorder=5)


def timeline_picture(run: Any, path: Path, hops: int = 40, first: int = 0) -> Path:
    """One line per agent, time to the right: a bar is a visit, in the token's colour, with the copy that it updates.

    Agents and tokens are counted from `first`; the paper counts from one.
    """
    if isinstance(run.schedule, Rounds):
        return _rounds_picture(run, path, max(1, hops // run.network.agents))
    shown = run.schedule.first(hops)
    if shown.hops == 0:
        raise AmbleError("this run has no hops, so there is no time line to draw.")
    active = np.unique(shown.agent)
    row = {int(agent): k for k, agent in enumerate(active)}
    unit, word = (1e6, "µs") if shown.time_s[-1] < 1e-3 else (1e3, "ms") if shown.time_s[-1] < 1 else (1.0, "s")
    figure = new_figure(11, 1.4 + 0.32 * len(active))
    axes = figure.subplots()
    width = shown.time_s[-1] * unit
    labelled = shown.hops <= min(80, 12 * len(active))
    for m in range(run.method.tokens):
        mine = np.flatnonzero(shown.token == m)
        colour = COLOURS[m % len(COLOURS)]
        ends = shown.time_s[mine] * unit
        levels = np.array([row[int(i)] for i in shown.agent[mine]])
        begins = ends - np.maximum(run.compute_s[shown.agent[mine]] * unit, 0.004 * width)
        axes.plot(
            np.stack([ends[:-1], begins[1:]]), np.stack([levels[:-1], levels[1:]]), color=colour, lw=0.7, alpha=0.6
        )
        axes.hlines(levels, begins, ends, color=colour, lw=6, label=f"token {m + first}")
        if labelled:
            for k, x, y in zip(mine, ends, levels, strict=True):
                words = f"{k + 1}: $\\hat{{z}}_{{{shown.agent[k] + first},{m + first}}}$"
                axes.text(x, y + 0.3, words, fontsize=6.5, color=colour, ha="center")
    axes.set_yticks(range(len(active)), [f"agent {i + first}" for i in active], fontsize=7)
    axes.set_ylim(-0.6, len(active) - 0.1)
    explained = "; a label is the hop, and the copy that it updates: of which agent, of which token" if labelled else ""
    axes.set_xlabel(f"virtual time ({word}){explained}")
    title = f"{run.label} on {run.problem['name']}: its first {shown.hops} hops, walk: {run.walk_name}"
    figure.suptitle(title + stragglers(run), fontsize=10)
    axes.grid(axis="y", alpha=0.2)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=8, fontsize=8, frameon=False)
    return save(figure, path)


def _rounds_picture(run: Any, path: Path, rounds: int) -> Path:
    """Rounds: every agent computes in each; the round ends with the slowest."""
    ends = run.schedule.time_s[:rounds]
    begins = np.concatenate([[0.0], ends[:-1]])
    N = run.network.agents
    figure = new_figure(11, 1.4 + min(12.0, 0.25 * N))
    axes = figure.subplots()
    for begin, end in zip(begins, ends, strict=True):
        middle = (begin + end - run.compute_s) / 2
        axes.hlines(np.arange(N), middle, middle + run.compute_s, color=COLOURS[0], lw=4)
        axes.axvline(end, color="0.6", lw=0.8, ls="--")
    axes.set_yticks(range(N), [f"agent {i}" for i in range(N)], fontsize=7)
    axes.set_xlim(left=0)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(-2, 3))
    axes.set_xlabel("virtual time (s); a dashed line ends a round")
    title = f"{run.label} on {run.problem['name']}: its first {len(ends)} rounds"
    figure.suptitle(title + stragglers(run), fontsize=10)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return save(figure, path)


def stragglers(run: Any) -> str:
    """Who takes how many times as long to compute, as a second line of a title; nothing where all are alike."""
    slow = [(agent, factor) for agent, factor in run.timing.slowdown if factor != 1]
    if not slow:
        return ""
    if len(slow) > STRAGGLERS_NAMED:
        factors = [factor for _, factor in slow]
        return f"\n{len(slow)} stragglers, {min(factors):g}x to {max(factors):g}x"
    return "\nstragglers: " + ", ".join(f"agent {agent} ({factor:g}x)" for agent, factor in slow)
