"""Rewrites the sentences, the table and the figure of docs/pareto.md from docs/pareto.json: python docs/pareto.py

They are between the comments <!-- pareto: NAME --> and <!-- end -->. benchmarks/pareto.py measures.
"""

import json
import re
from pathlib import Path
from typing import Any

from amble.drawing import headline, new_figure, save
from amble.look import COLOURS, QUIET, look

DOCS = Path(__file__).parent
KEPT, PAGE, FIGURE = DOCS / "pareto.json", DOCS / "pareto.md", DOCS / "pareto.png"
BLOCK = re.compile(r"(<!-- pareto: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
RELAY = "Relay, M="
Points = dict[str, dict[str, Any]]


def front(points: Points) -> list[str]:
    """The methods that no other beats in both time and bytes, the fastest first."""
    there = {label: (each["time_s"], each["bytes"]) for label, each in points.items() if each["time_s"] is not None}

    def beaten(label: str) -> bool:
        time_s, sent = there[label]
        return any(t <= time_s and b <= sent and (t, b) != (time_s, sent) for t, b in there.values())

    return sorted((label for label in there if not beaten(label)), key=lambda label: there[label])


def sentence(data: str, points: Points) -> str:
    """Who is on the front, and who is not."""
    on = front(points)
    others = [label for label in on if not label.startswith(RELAY)]
    relays = ", ".join(label.removeprefix(RELAY) for label in on if label.startswith(RELAY))
    missed = sum(each["time_s"] is None for each in points.values())
    if not on:
        return f"**{data}.** No method is there within the budget."
    text = (
        f"**{data}.** On the front: Relay with M = {relays}"
        if relays
        else f"**{data}.** On the front: no point of Relay's line"
    )
    text += f", {'and' if relays else 'but'} {', '.join(others)}." if others else ". No other method is on it."
    silent = [label for label in points if points[label]["bytes"] == 0]
    if silent:
        text += f" {', '.join(silent)}: as good before the first message, by the rows of one agent."
    return f"{text} {missed} of {len(points)} are not there within the budget." if missed else text


def verdict(kept: dict[str, Points]) -> str:
    """On how many sets Relay's line is the whole front."""
    whole = [data for data, points in kept.items() if all(each.startswith(RELAY) for each in front(points))]
    count = f"{len(whole)} of {len(kept)} data sets"
    return f"Relay's line is the whole front on {count}" + (f": {', '.join(whole)}" if whole else "")


def blocks(kept: dict[str, Points]) -> dict[str, str]:
    return {"verdict": f"{verdict(kept)}.", "sentences": _sentences(kept), "table": _table(kept)}


def rewritten(page: str, texts: dict[str, str]) -> str:
    return BLOCK.sub(lambda block: f"{block[1]}\n{texts[block[2]]}\n\n{block[3]}", page)


def _sentences(kept: dict[str, Points]) -> str:
    return "\n".join(f"- {sentence(data, points)}" for data, points in kept.items())


def _table(kept: dict[str, Points]) -> str:
    rows = [["method", *kept], ["---"] * (len(kept) + 1)]
    for label in dict.fromkeys(label for points in kept.values() for label in points):
        cells = []
        for points in kept.values():
            each = points.get(label)
            there = each is not None and each["time_s"] is not None
            text = f"{1e3 * each['time_s']:.3g} ms, {each['bytes'] / 1e3:,.3g} kB" if there else "not reached"
            bold = "**" * (label in front(points))
            cells.append("" if each is None else f"{bold}{text}{bold}")
        rows.append([label, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


@look()
def draw(kept: dict[str, Points], path: Path) -> None:
    """A panel per data set; Relay's points are joined, in the order of M."""
    figure = new_figure(11, 4.2 * ((len(kept) + 1) // 2))
    panels = figure.subplots((len(kept) + 1) // 2, 2, squeeze=False).ravel()
    titles: list[str] = []
    for panel, (data, points) in zip(panels, kept.items(), strict=False):
        there = {label: each for label, each in points.items() if each["time_s"] is not None}
        relays = [label for label in there if label.startswith(RELAY)]
        ends = {relays[0], max(relays, key=lambda label: int(label.partition("M=")[2]))}
        least = min(each["bytes"] for each in there.values() if each["bytes"] > 0) / 2  # nothing sent is drawn here
        best = front(points)
        x, y = ([there[label][cost] for label in relays] for cost in ("time_s", "bytes"))
        panel.plot(
            [1e3 * each for each in x],
            [max(each, least) / 1e3 for each in y],
            "o-",
            color=COLOURS[0],
            ms=5,
            lw=1.2,
            zorder=3,
        )
        taken: dict[tuple[float, float], int] = {}
        for label, each in there.items():
            own, mine = label.startswith(RELAY), (1e3 * each["time_s"], max(each["bytes"], least) / 1e3)
            if not own:
                panel.scatter(*mine, marker="D", s=26, color=COLOURS[1] if label in best else QUIET, zorder=2)
            if own and label not in ends:  # the points between lie too near each other for names
                continue
            shown = (label.removeprefix("Relay, ") if own else label) + " (nothing sent)" * (each["bytes"] == 0)
            colour = COLOURS[0] if own else COLOURS[1] if label in best else QUIET
            weight = "bold" if label in best else "normal"
            panel.annotate(
                shown,
                mine,
                (4, 4 - 8 * taken.setdefault(mine, 0)),
                textcoords="offset points",
                fontsize=6.5,
                color=colour,
                fontweight=weight,
            )
            taken[mine] += 1
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.margins(0.12)
        panel.set_xlabel("virtual time to 0.1 % (ms)")
        panel.set_ylabel("bytes sent to 0.1 % (kB)")
        missed = len(points) - len(there)
        titles.append(f"{data}; bold: nothing is better in both" + f"; {missed} not there" * bool(missed))
        panel.set_title(titles[-1])
    for panel in panels[len(kept) :]:
        panel.set_axis_off()
    headline(figure, verdict(kept), titles[0])
    save(figure, path)


if __name__ == "__main__":
    known = json.loads(KEPT.read_text())
    PAGE.write_text(rewritten(PAGE.read_text(), blocks(known)))
    draw(known, FIGURE)
