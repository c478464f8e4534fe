"""The paper's figures 1 and 2 from any run: the network with its tokens, and which copy is updated when."""

import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from amble import methods
from amble.drawing import headline, new_figure
from amble.errors import AmbleError, need
from amble.look import COLOURS, PAPER, QUIET, look
from amble.results.reading import Readable
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AGENTS_NAMED_MAX = 120
STEPS_DRAWN = 4
LABEL_SHARE = 0.035  # of the time line's width, that the label of a hop needs
MESSAGES_SHOWN = 6  # of each agent's messenger, in the time line of a pair method
STRAGGLES = 0.05  # a factor that differs so little from 1 is that of no straggler
ABOUT_WIDTH = 84  # characters below the headline of the network
STRAGGLERS_NAMED = 4  # in a title; of more, only their number


@look()
def network_figure(run: Readable) -> "Figure":
    """Agents and links; each token's first steps as arrows in its colour, its number where it starts."""
    agents, edges, schedule = run.network.agents, run.network.edges, run.schedule
    points = layout(run)
    figure = new_figure(5, 5)
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_aspect("equal")
    shapes = need("matplotlib.path", "sim").Path
    links = shapes(points[edges].reshape(-1, 2), np.tile([shapes.MOVETO, shapes.LINETO], len(edges)))
    axes.add_patch(need("matplotlib.patches", "sim").PathPatch(links, fill=False, lw=0.4, alpha=0.3, zorder=1))
    named = agents <= AGENTS_NAMED_MAX
    axes.scatter(
        points[:, 0], points[:, 1], s=120 if named else 8, color=PAPER, edgecolors=QUIET, linewidths=0.8, zorder=2
    )
    if named:
        for i, (x, y) in enumerate(points):
            axes.text(x, y, str(i), ha="center", va="center", fontsize=6, zorder=4)
    how = "agents average in pairs, no tokens" if methods.is_pair(run.method) else "rounds, no tokens"
    if not isinstance(schedule, Rounds) and methods.walks(run.method):
        how = f"arrows: each token's first {STEPS_DRAWN} steps"
        for m in range(run.method.tokens):
            _draw_token(axes, points, schedule.agent[schedule.token == m][: STEPS_DRAWN + 1], m)
    degrees = run.network.degrees
    near = f"{degrees.min()}" + f" to {degrees.max()}" * bool(degrees.max() > degrees.min())
    about = f"{run.network.name}, {len(edges):,} links; {run.label}, walk: {run.walk_name}; {how}"
    headline(figure, f"{agents} agents, with {near} neighbours each", textwrap.fill(about, ABOUT_WIDTH))
    axes.margins(0.1)
    return figure


def layout(run: Readable) -> Any:
    """Where to draw each agent: in a circle where there are many links, else where springs would pull them."""
    networkx = need("networkx", "sim")
    graph = networkx.Graph()
    graph.add_nodes_from(range(run.network.agents))
    graph.add_edges_from(run.network.edges.tolist())
    dense = len(run.network.edges) > 3 * run.network.agents
    places = networkx.circular_layout(graph) if dense else networkx.spring_layout(graph, seed=run.seed)
    return np.array([places[i] for i in range(run.network.agents)])


def _draw_token(axes: "Axes", points: Any, agents: Any, m: int) -> None:
    colour = COLOURS[m % len(COLOURS)]
    for a, b in pairwise(agents):
        arrow = {"arrowstyle": "-|>", "color": colour, "lw": 1.4, "shrinkA": 6, "shrinkB": 6}
        axes.annotate("", xy=points[b], xytext=points[a], arrowprops=arrow, zorder=3)
    if len(agents):
        centre = points.mean(axis=0)
        out = points[agents[0]] - centre
        x, y = points[agents[0]] + 0.11 * out / (np.linalg.norm(out) or 1.0)
        axes.text(x, y, f"$z_{{{m}}}$", color=colour, fontsize=11, ha="center", va="center", zorder=5)


@look()
def timeline_figure(run: Readable, hops: int = 40, first: int = 0) -> "Figure":
    """One line per agent, time to the right: a bar is a visit, in the token's colour, with the copy that it updates.

    Agents and tokens are counted from `first`; the paper counts from one.
    """
    if isinstance(run.schedule, Rounds):
        return _rounds_figure(run, max(1, hops // run.network.agents))
    if methods.is_pair(run.method):
        return _pairs_figure(run, hops)
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
    last = np.full(len(active), -np.inf)  # of each line: where its last label is
    for k in range(shown.hops if labelled else 0):
        x, y, m = shown.time_s[k] * unit, row[int(shown.agent[k])], int(shown.token[k])
        if x - last[y] > LABEL_SHARE * width:
            last[y] = x
            label = f"{k + 1}: $\\hat{{z}}_{{{shown.agent[k] + first},{m + first}}}$"
            axes.text(x, y + 0.3, label, fontsize=6.5, color=COLOURS[m % len(COLOURS)], ha="center")
    axes.set_yticks(range(len(active)), [f"agent {i + first}" for i in active], fontsize=7)
    axes.set_ylim(-0.6, len(active) - 0.1)
    axes.spines.left.set_visible(False)
    explained = "; a label is the hop, and the copy that it updates: of which agent, of which token" if labelled else ""
    axes.set_xlabel(f"{run.clock} ({word}){explained}")
    about = f"{run.label} on {run.problem['name']}: its first {shown.hops} hops, walk: {run.walk_name}"
    visits = np.bincount(shown.agent, run.compute_s[shown.agent], run.network.agents)
    headline(figure, _busiest(visits / shown.time_s[-1], first), about + stragglers(run))
    axes.grid(axis="y")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=8)
    return figure


def _rounds_figure(run: Readable, rounds: int) -> "Figure":
    """Rounds: every agent computes in each; the round ends with the slowest."""
    ends = run.schedule.time_s[:rounds]
    begins = np.concatenate([[0.0], ends[:-1]])
    N = run.network.agents
    figure = new_figure(11, 1.4 + min(12.0, 0.25 * N))
    axes = figure.subplots()
    for begin, end in zip(begins, ends, strict=True):
        middle = (begin + end - run.compute_s) / 2
        axes.hlines(np.arange(N), middle, middle + run.compute_s, color=COLOURS[0], lw=4)
        axes.axvline(end, color=QUIET, lw=0.8, ls="--")
    axes.set_yticks(range(N), [f"agent {i}" for i in range(N)], fontsize=7)
    axes.set_xlim(left=0)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(-2, 3))
    axes.set_xlabel("virtual time (s); a dashed line ends a round")
    about = f"{run.label} on {run.problem['name']}: its first {len(ends)} rounds"
    axes.spines.left.set_visible(False)
    headline(figure, _busiest(run.compute_s * len(ends) / ends[-1], 0), about + stragglers(run))
    return figure


def _pairs_figure(run: Readable, hops: int) -> "Figure":
    """Pairs: a bar is a gradient, a line a messenger on its way to a neighbour or back."""
    assert isinstance(run.schedule, Schedule)
    N = run.network.agents
    shown = run.schedule.first(max(hops, MESSAGES_SHOWN * N))
    end, busy = float(shown.time_s[-1]) if shown.hops else 0.0, np.zeros(N)
    figure = new_figure(11, 1.4 + min(12.0, 0.25 * N))
    axes = figure.subplots()
    for i in range(N):
        mine = np.flatnonzero(shown.token == i)
        begins = shown.time_s[mine][shown.agent[mine] == i]
        ends = np.minimum(begins + run.compute_s[i], end)
        busy[i] = (ends - begins).sum()
        axes.plot(shown.time_s[mine], shown.agent[mine], color=QUIET, lw=0.5, alpha=0.5)
        axes.hlines(np.full(len(begins), i), begins, ends, color=COLOURS[0], lw=4)
        axes.vlines(begins, i - 0.35, i + 0.35, color=PAPER, lw=1.5)  # where one gradient ends and the next begins
    axes.set_yticks(range(N), [f"agent {i}" for i in range(N)], fontsize=7)
    axes.set_xlim(left=0)
    axes.ticklabel_format(axis="x", style="sci", scilimits=(-2, 3))
    axes.set_xlabel("virtual time (s); a line is a model on its way to a neighbour, or the change on its way back")
    axes.spines.left.set_visible(False)
    about = f"{run.label} on {run.problem['name']}: the first {shown.hops} visits of its messengers"
    headline(figure, _busiest(busy / (end or 1.0), 0), about + stragglers(run))
    return figure


def _busiest(share: Any, first: int) -> str:
    """Which agent computes most of the time that is shown, and how much the others do."""
    i = int(np.argmax(share))
    if len(share) == 1 or share.min() == share[i]:
        return f"Every agent computes {100 * share[i]:.3g} % of this time"
    others = np.delete(share, i).mean()
    return f"Agent {i + first} computes {100 * share[i]:.3g} % of this time, the others {100 * others:.2g} % on average"


def stragglers(run: Readable) -> str:
    """Which agents compute slower and by which factor, as a second line of a title; empty if all are equal."""
    slow = [(agent, factor) for agent, factor in run.timing.slowdown if abs(factor - 1) > STRAGGLES]
    if not slow:
        return ""
    if len(slow) > STRAGGLERS_NAMED:
        factors = [factor for _, factor in slow]
        return f"\n{len(slow)} stragglers, {min(factors):.3g}x to {max(factors):.3g}x"
    return "\nstragglers: " + ", ".join(f"agent {agent} ({factor:.3g}x)" for agent, factor in slow)
