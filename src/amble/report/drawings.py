"""Small drawings of the page, as SVG in its text: who holds what, and the network."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from amble.drawing import COLOURS
from amble.errors import need
from amble.report.markup import Markup, join, tag
from amble.results.run import Run

WIDTH, HEIGHT, MARGIN = 480, 210, 34
LINKS_MAX = 5000  # more make one grey disc and a heavy page
AGENTS_NAMED_MAX = 60
LABELS_NAMED_MAX = 24


def holdings_drawing(run: Run) -> Markup | None:
    """Who holds what: rows of each label, or rows and the spread of the targets. None where the run does not say."""
    held = run.problem.get("holdings")
    if not held:
        return None
    if "counts" in held:
        return _labels(held["labels"], held["counts"])
    return _targets(held["rows"], held["target"])


def _labels(labels: Sequence[Any], counts: Sequence[Sequence[int]]) -> Markup:
    tallest = max(sum(row) for row in counts) or 1
    slot = (WIDTH - MARGIN) / len(counts)
    shapes = [_axis(tallest, "rows", len(counts))]
    for agent, row in enumerate(counts):
        base = float(HEIGHT - MARGIN)
        for k, count in enumerate(row):
            height = count / tallest * (HEIGHT - 2 * MARGIN)
            base -= height
            if count:
                words = f"agent {agent}: {count} rows of label {labels[k]}"
                shapes.append(_bar(agent, slot, base, height, words, _fill(k)))
    keys = [tag("li", tag("i", style=_fill(k)), f" {label}") for k, label in enumerate(labels)]
    keys = keys if len(keys) <= LABELS_NAMED_MAX else []
    words = f"Rows of each of {len(labels)} labels at each of {len(counts)} agents"
    return _svg(words, shapes, keys=tag("ul", *keys, class_="keys", aria_label="labels"))


def _targets(rows: Sequence[int], spreads: Sequence[Sequence[float]]) -> Markup:
    slot = (WIDTH - MARGIN) / len(rows)
    tallest = max(rows) or 1
    bars = [_axis(tallest, "rows", len(rows))]
    for agent, count in enumerate(rows):
        height = count / tallest * (HEIGHT - 2 * MARGIN)
        bars.append(_bar(agent, slot, HEIGHT - MARGIN - height, height, f"agent {agent}: {count} rows", _fill(0)))
    low, high = min(spread[0] for spread in spreads), max(spread[-1] for spread in spreads)
    scale = (HEIGHT - 2 * MARGIN) / ((high - low) or 1)
    boxes = [_axis(high, "target", len(rows), low)]
    for agent, spread in enumerate(spreads):
        bottom, under, middle, over, top = (HEIGHT - MARGIN - (value - low) * scale for value in spread)
        x = MARGIN + (agent + 0.5) * slot
        words = f"agent {agent}: {spread[0]:.3g} to {spread[-1]:.3g}, median {spread[2]:.3g}"
        boxes += [
            tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=f"{bottom:.1f}", y2=f"{top:.1f}", class_="whisker"),
            _bar(agent, slot, over, max(under - over, 1), words, _fill(0)),
            tag("line", x1=f"{x - slot * 0.4:.1f}", x2=f"{x + slot * 0.4:.1f}", y1=f"{middle:.1f}", y2=f"{middle:.1f}",
                class_="median"),
        ]  # fmt: skip
    return join(
        _svg(f"Rows at each of {len(rows)} agents", bars),
        _svg("Targets at each agent: least, quarter, median, three quarters, greatest", boxes),
    )


def _fill(k: int) -> str:
    """A colour of its own for each label; paler where the colours begin again. Black follows the page's ink."""
    colour = COLOURS[k % len(COLOURS)]
    colour = "var(--ink)" if colour == "#000000" else colour
    return f"fill: {colour}; background: {colour}; opacity: {0.9 / (1 + k // len(COLOURS)):.2f}"


def _bar(agent: int, slot: float, y: float, height: float, words: str, style: str) -> Markup:
    x = MARGIN + agent * slot + slot * 0.1
    size = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{slot * 0.8:.1f}", "height": f"{height:.1f}"}
    return tag("rect", tag("title", words), **size, style=style)


def _axis(high: float, words: str, agents: int, low: float = 0) -> Markup:
    """The largest and the smallest value, and the first and the last agent."""
    top, bottom = MARGIN, HEIGHT - MARGIN
    text = [
        tag("text", f"{high:.4g}", x=MARGIN - 4, y=top + 4, text_anchor="end"),
        tag("text", f"{low:.4g}", x=MARGIN - 4, y=bottom, text_anchor="end"),
        tag("text", words, x=2, y=14),
        tag("text", "agent 0", x=MARGIN, y=bottom + 16),
    ]
    if agents > 1:
        text.append(tag("text", f"agent {agents - 1}", x=WIDTH, y=bottom + 16, text_anchor="end"))
    return join(tag("line", x1=MARGIN, x2=WIDTH, y1=bottom, y2=bottom, class_="axis"), *text)


def _svg(words: str, shapes: Sequence[Markup], width: int = WIDTH, height: int = HEIGHT, keys: str = "") -> Markup:
    drawn = tag("svg", tag("title", words), *shapes, viewBox=f"0 0 {width} {height}", role="img", aria_label=words)
    return tag("figure", drawn, keys, tag("figcaption", f"{words}."))


def network_drawing(run: Run) -> Markup:
    """Agents and links: in a circle where there are many links, else where springs would pull them."""
    edges, agents = run.network.edges, run.network.agents
    words = f"{run.network.name}: {agents} agents, {len(edges):,} links"
    if len(edges) > LINKS_MAX:
        return tag("p", f"The network, {words}, has too many links to draw.")
    turn = 2 * np.pi * np.arange(agents) / agents
    places = np.column_stack([np.sin(turn), -np.cos(turn)])
    if len(edges) <= 3 * agents and agents > 2:
        networkx = need("networkx", "sim")
        graph = networkx.Graph()
        graph.add_nodes_from(range(agents))
        graph.add_edges_from(edges.tolist())
        found = networkx.spring_layout(graph, seed=run.seed)
        places = np.array([found[i] for i in range(agents)])
        places = (places - places.mean(axis=0)) / (np.abs(places - places.mean(axis=0)).max() or 1)
    size = 320
    points = size / 2 + places * (size / 2 - 16)
    path = "".join(f"M{a[0]:.0f} {a[1]:.0f}L{b[0]:.0f} {b[1]:.0f}" for a, b in points[edges])
    named = agents <= AGENTS_NAMED_MAX
    shapes = [tag("path", d=path, class_="link")]
    for i, (x, y) in enumerate(points):
        shapes.append(tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=8 if named else 2.5, class_="agent"))
        if named:
            shapes.append(tag("text", i, x=f"{x:.1f}", y=f"{y + 3:.1f}", text_anchor="middle", class_="number"))
    return _svg(words, shapes, size, size)
