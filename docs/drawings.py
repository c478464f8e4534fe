"""Makes the drawings of the pages, docs/drawings/*.svg: python docs/drawings.py

Lines and text have the colour of the text around them. The site puts a drawing into the page itself, which has the
colours of `amble.look`; on a code host it is a picture with its own, and follows the reader's colour scheme.
"""

import itertools
import math
from collections.abc import Callable
from html import escape
from pathlib import Path

import amble
from amble.look import css
from amble.results.animation import animation

FOLDER = Path(__file__).parent / "drawings"
BLUE, ORANGE, GREEN, RED, PINK = (f"var(--c{k})" for k in (0, 4, 2, 1, 3))
OWN = css(("ink", "paper", "c0", "c1", "c2", "c3", "c4"), "svg", "svg")
ALONE = f"<style>{OWN}svg{{color:var(--ink);background:var(--paper)}}</style>"
NAMES = ("north", "east", "south", "west", "coast")


def drawing(width: int, height: int, *parts: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 {width} {height}" width="{width}" '
        f'font-family="system-ui, sans-serif" font-size="14" fill="currentColor" stroke-linecap="round">'
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>'
    )
    return "\n".join([head, ALONE, marker, *parts, "</svg>"]) + "\n"


def text(
    x: float, y: float, words: str, anchor: str = "middle", size: int = 14, colour: str = "", bold: bool = False
) -> str:
    more = (f' fill="{colour}"' if colour else "") + (' font-weight="600"' if bold else "")
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}"{more}>{escape(words)}</text>'


def lines(x: float, y: float, *words: str, anchor: str = "middle", size: int = 14) -> str:
    return "\n".join(text(x, y + 18 * k, line, anchor, size) for k, line in enumerate(words))


def link(x1: float, y1: float, x2: float, y2: float, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="3 6"' if dashed else ""
    return (
        f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="currentColor" stroke-opacity="0.35" stroke-width="2"{dash}/>'
    )


def arrow(x1: float, y1: float, x2: float, y2: float, bend: float = 0.0, dashed: bool = False) -> str:
    """From one point to another; `bend` is how far its middle is to the left of the straight line."""
    length = math.hypot(x2 - x1, y2 - y1)
    cx = (x1 + x2) / 2 + 2 * bend * (y2 - y1) / length
    cy = (y1 + y2) / 2 - 2 * bend * (x2 - x1) / length
    dash = ' stroke-dasharray="4 6"' if dashed else ""
    return (
        f'<path d="M{x1:.1f} {y1:.1f}Q{cx:.1f} {cy:.1f} {x2:.1f} {y2:.1f}" fill="none" stroke="currentColor" '
        f'stroke-width="2"{dash} marker-end="url(#tip)"/>'
    )


def agent(x: float, y: float, name: str) -> str:
    """A site with its table of rows, which stays there."""
    circle = f'<circle cx="{x:g}" cy="{y:g}" r="30" fill="none" stroke="currentColor" stroke-width="2"/>'
    row = '<rect x="{:g}" y="{:g}" width="30" height="5" rx="1" fill="currentColor" fill-opacity="0.45"/>'
    rows = [row.format(x - 15, y - 7 + 8 * k) for k in range(3)]
    return "\n".join([circle, *rows, *([text(x, y + 48, name)] if name else [])])


def token(x: float, y: float, label: str = "", colour: str = ORANGE) -> str:
    return f'<circle cx="{x:g}" cy="{y:g}" r="11" fill="{colour}" stroke="currentColor" stroke-width="1.5"/>' + (
        text(x, y + 5, label, size=12, colour="var(--paper)", bold=True) if label else ""
    )


def box(
    x: float, y: float, width: float, height: float, colour: str = "", words: str = "", dashed: bool = False
) -> str:
    fill = f'fill="{colour}" fill-opacity="0.3"' if colour else 'fill="none"'
    dash = ' stroke-dasharray="4 5"' if dashed else ""
    shape = (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" {fill} stroke="currentColor" '
        f'stroke-width="1.5"{dash}/>'
    )
    inside = text(x + width / 2, y + height / 2 + 5, words, size=13) if words else ""
    return f"{shape}\n{inside}" if inside else shape


def ring(cx: float, cy: float, radius: float) -> list[tuple[float, float]]:
    """Five places on a circle, the first at its top."""
    angles = [2 * math.pi * k / 5 - math.pi / 2 for k in range(5)]
    return [(cx + radius * math.cos(angle), cy + radius * math.sin(angle)) for angle in angles]


def short_of(
    one: tuple[float, float], other: tuple[float, float], gap: float = 36
) -> tuple[float, float, float, float]:
    """The line between two agents without the parts within their circles."""
    (x1, y1), (x2, y2) = one, other
    length = math.hypot(x2 - x1, y2 - y1)
    dx, dy = gap * (x2 - x1) / length, gap * (y2 - y1) / length
    return x1 + dx, y1 + dy, x2 - dx, y2 - dy


def walk() -> str:
    """Five agents, a token that has walked from north to south, and what stays where it is."""
    places, outside = ring(190, 190, 120), ring(190, 196, 172)
    parts = [link(*short_of(places[i], places[j], 31)) for i, j in ((0, 2), (0, 3), (1, 3), (1, 4), (2, 4))]
    steps = [short_of(places[k], places[(k + 1) % 5], 34) for k in range(5)]
    parts += [arrow(*step, bend=10, dashed=k > 1) for k, step in enumerate(steps)]
    for place, (x, y), name in zip(places, outside, NAMES, strict=True):
        parts += [agent(*place, ""), text(x, y, name)]
    x, y = places[2]
    parts += [
        token(x + 26, y - 26),
        text(400, 90, "Rows stay with their agent.", "start"),
        token(411, 146),
        lines(432, 142, "The token walks from agent to agent.", "It carries the model.", anchor="start"),
        lines(
            400, 210, "At a visit the agent improves the token", "with its own rows, and passes it on.", anchor="start"
        ),
        lines(400, 278, "There is no server: an agent talks", "to its neighbours only.", anchor="start"),
    ]
    return drawing(720, 370, *parts)


def gift() -> str:
    """The token before and after a visit: the agent takes back what it gave last time, and gives anew."""
    colours = (BLUE, ORANGE, GREEN, PINK)

    def stack(x: float, heights: tuple[int, ...]) -> list[str]:
        parts, y = [], 250.0
        for height, colour, name in zip(heights, colours, NAMES, strict=False):
            y -= height
            parts.append(box(x, y, 110, height, colour, name))
        return parts

    parts = [text(115, 40, "the token comes", bold=True), *stack(60, (50, 40, 55, 35))]
    parts += [text(605, 40, "the token leaves", bold=True), *stack(550, (50, 62, 55, 35))]
    parts += [agent(360, 110, "east")]
    parts += [box(245, 205, 90, 40, ORANGE, "old gift"), box(385, 194, 90, 62, ORANGE, "new gift")]
    parts += [
        arrow(180, 190, 238, 215, bend=-8),
        arrow(330, 140, 300, 198),
        arrow(392, 132, 425, 187),
        arrow(482, 215, 542, 190, bend=-8),
    ]
    parts += [text(290, 268, "taken back", size=13), text(430, 278, "from its rows, at z", size=13)]
    parts += [text(115, 275, "sum of gifts", size=13), text(605, 275, "sum of gifts", size=13)]
    return drawing(720, 295, *parts)


def boards() -> str:
    """Three tokens share one account: each has a ledger of its own, and carries a copy of the others'."""
    colours, parts = (ORANGE, BLUE, GREEN), []

    def board(x: float, y: float, versions: tuple[int, ...], own: int | None) -> list[str]:
        made = []
        for k, (version, colour) in enumerate(zip(versions, colours, strict=True)):
            made.append(box(x, y + 34 * k, 120, 28, colour, f"ledger {k}, v{version}"))
            if k == own:
                made.append(text(x + 128, y + 34 * k + 19, "its own", "start", 12))
        return made

    parts += [token(40, 42, "0"), text(60, 47, "token 0 has walked far", "start", bold=True)]
    parts += board(40, 70, (9, 3, 4), 0)
    parts += [
        agent(360, 112, "south"),
        text(360, 190, "both take the newer", size=13),
        text(360, 208, "of each ledger", size=13),
    ]
    parts += [arrow(230, 112, 322, 112), arrow(398, 112, 480, 112)]
    parts += [text(560, 47, "south's board", bold=True), *board(500, 70, (7, 5, 4), None)]
    parts += [
        text(360, 250, "afterwards both have ledger 0 in version 10, ledger 1 in version 5, ledger 2 in version 4;"),
        text(360, 270, "the model is read from the sum of all three"),
    ]
    return drawing(720, 285, *parts)


def recount() -> str:
    """A token is lost with its holder, is reissued, and collects every gift again."""
    captions = (
        ("south dies with the token,", "whose sum has a gift of south"),
        ("east, its sender, has a copy, and", "reissues it after the patience"),
        ("the copy collects every gift again:", "south's is no longer in the sum"),
    )
    parts = []
    for k, caption in enumerate(captions):
        places = [(x + 240 * k, y) for x, y in ring(120, 105, 75)]
        for i in range(5):
            lost = k > 0 and 2 in (i, (i + 1) % 5)
            parts.append(link(*short_of(places[i], places[(i + 1) % 5], 22), dashed=lost))
        for i, (x, y) in enumerate(places):
            shape = f'<circle cx="{x:g}" cy="{y:g}" r="20" fill="none" stroke="currentColor" stroke-width="2"'
            parts.append(shape + (' stroke-opacity="0.35" stroke-dasharray="4 5"/>' if i == 2 else "/>"))
        x, y = places[2]
        parts.append(f'<path d="M{x - 10:g} {y - 10:g}l20 20m0 -20l-20 20" stroke="{RED}" stroke-width="4"/>')
        parts += [text(x, y + 36, "south", size=12), text(places[1][0], places[1][1] + 36, "east", size=12)]
        if k == 2:
            route = (1, 0, 4, 3)
            parts += [box(places[i][0] - 7, places[i][1] - 7, 14, 14, GREEN) for i in route]
            parts += [arrow(*short_of(places[i], places[j], 24), bend=-9) for i, j in itertools.pairwise(route)]
        x, y = places[(2, 1, 3)[k]]
        parts.append(token(x + (22 if k < 2 else -22), y - 18, "0" if k == 0 else "1", ORANGE if k == 0 else GREEN))
        parts.append(lines(120 + 240 * k, 220, *caption, size=13))
    parts.append(text(360, 276, "The number on the token is its epoch."))
    return drawing(720, 290, *parts)


def curve(x: float, y: float, centre: float, bend: float, colour: str, width: float = 2.5) -> str:
    """A parabola within a frame of 160 by 110; its lowest point is at `centre`, from 0 to 1."""
    points = []
    for k in range(41):
        u = k / 40
        v = bend * (u - centre) ** 2
        if v <= 1:
            points.append(f"{x + 160 * u:.1f} {y + 105 - 100 * v:.1f}")
    return f'<path d="M{"L".join(points)}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>'


def solving() -> str:
    """The losses of agents add up at the token: after each visit it knows the lowest point of all visited so far."""
    bends, centres, colours = (2.0, 3.5, 1.5), (0.2, 0.55, 0.9), (BLUE, ORANGE, GREEN)
    parts = []
    for k in range(3):
        x = 20 + 235 * k
        parts.append(box(x, 50, 200, 135))
        parts += [curve(x + 20, 60, centres[i], bends[i], colours[i], 2) for i in range(k + 1)]
        total = sum(bends[: k + 1])
        centre = sum(b * c for b, c in zip(bends[: k + 1], centres, strict=False)) / total
        parts.insert(len(parts) - k - 1, curve(x + 20, 60, centre, total / (k + 1), "currentColor", 6))
        parts.append(token(x + 20 + 160 * centre, 165, "z"))
        parts.append(text(x + 100, 38, f"after visiting {', '.join(NAMES[: k + 1])}", size=13))
    parts += [
        text(120, 208, "north's loss", size=13, colour=BLUE),
        text(355, 208, "and east's", size=13, colour=ORANGE),
        text(590, 208, "and south's", size=13, colour=GREEN),
        text(
            360,
            240,
            "Thick: their mean, moved down. The token carries it as a vector and a matrix. Its lowest point is z.",
            size=13,
        ),
    ]
    return drawing(720, 255, *parts)


def seen() -> str:
    """West sees the token before and after a visit to south: the difference is what south gave."""
    parts = [agent(140, 100, "west"), agent(580, 100, "south")]
    parts += [arrow(185, 85, 535, 85, bend=22), arrow(535, 118, 185, 118, bend=22)]
    parts += [
        box(310, 30, 100, 28, BLUE, "sum"),
        box(290, 152, 100, 28, BLUE, "sum"),
        box(390, 152, 70, 28, ORANGE, "south's"),
    ]
    parts += [
        text(360, 208, "west subtracts what it sent from what comes back:"),
        text(360, 228, "the change of south's gift"),
    ]
    return drawing(720, 245, *parts)


def bundle() -> str:
    """From one run file to a folder per machine."""
    parts = [box(20, 95, 110, 44, "", "run.toml"), arrow(136, 117, 200, 117), text(168, 105, "amble init", size=12)]
    parts += [box(206, 30, 170, 180), text(291, 52, "bundle/", bold=True)]
    for k, name in enumerate(("north/", "east/", "south/")):
        parts += [box(222, 64 + 34 * k, 138, 28, (BLUE, ORANGE, GREEN)[k], name)]
        parts += [
            arrow(366, 78 + 34 * k, 520, 50 + 80 * k),
            box(528, 28 + 80 * k, 160, 44),
            text(608, 55 + 80 * k, f"{name[:-1]}'s machine", size=13),
        ]
    parts += [box(222, 170, 138, 28, "", "authority/", dashed=True), text(291, 232, "stays here", size=13)]
    parts += [text(436, 46, "copy", size=12)]
    return drawing(720, 245, *parts)


def tokens() -> str:
    """Three tokens of Relay on the rows of twelve agents: a run of the simulator, as it went."""
    problem = amble.split(amble.load("diabetes"), agents=12)
    network = amble.networks.random(agents=12, density=0.4, seed=0)
    timing = amble.Timing(low_s=1, high_s=2, compute=0.6)
    run = amble.simulate(amble.Relay(tokens=3), problem, network, hops=36, every=1, timing=timing, progress=False)
    return animation(run, hops=36)


DRAWINGS: dict[str, Callable[[], str]] = {
    each.__name__: each for each in (walk, gift, boards, recount, solving, seen, bundle, tokens)
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, make in DRAWINGS.items():
        (FOLDER / f"{name}.svg").write_text(make())
