"""The tokens of a run, walking: an SVG that moves by itself, wherever a picture can be shown."""

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from amble import methods
from amble.errors import AmbleError
from amble.files import write_whole
from amble.look import COLOURS, css
from amble.results.pictures import layout
from amble.results.reaching import column_of
from amble.results.reading import Readable
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule

WIDTH, HEIGHT = 720, 360
NETWORK = (40, 60, 340, 330)  # left, top, right, bottom of the places of agents
CURVE = (420, 84, 690, 300)
PLAYED_S, HELD_S = 20.0, 3.0  # of the walk, and of its last picture before it begins again
AGENTS_MAX, HOPS_MAX = 60, 300  # more cannot be followed with the eye
RADIUS, TOKEN_RADIUS = 15, 9
REACHED, FLOOR = 1e-6, -9  # a distance that is told, and the power of ten below which all are drawn alike
SMALL = 'font-size="11" fill="var(--quiet)"'
NAMES = ("ink", "paper", "quiet", "rule", *(f"c{k}" for k in range(len(COLOURS))))


def write_animation(run: Readable, path: Path, hops: int) -> Path:
    if path.suffix != ".svg":
        raise AmbleError(f"{path.name!r} was given for an animation; end it in .svg, which browsers play.")
    text = animation(run, hops)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole({path: text.encode()})
    return path


def can_walk(run: Readable, hops: int) -> bool:
    """Whether there are tokens, and few enough agents and hops to follow them with the eye."""
    moves = methods.walks(run.method) and run.schedule.hops > 0
    return moves and run.network.agents <= AGENTS_MAX and 1 <= hops <= HOPS_MAX


def animation(run: Readable, hops: int) -> str:
    """The first hops of a run as they happened: where each token was when, and how far the model was from the optimum.

    A token moves from the end of a visit to the begin of its next; an agent has the token's colour while it computes.
    """
    if isinstance(run.schedule, Rounds) or not can_walk(run, hops):
        raise AmbleError(
            f"an animation of {run.label} with {run.network.agents} agents and {hops} hops was asked for; it needs a "
            f"method with tokens, at most {AGENTS_MAX} agents, and 1 to {HOPS_MAX} hops. Use plot_timeline."
        )
    shown = run.schedule.first(hops)
    places = _places(run)
    links = "".join(f"M{_pair(places[a])}L{_pair(places[b])}" for a, b in run.network.edges)
    frames = [*_token_frames(run, shown, places), *_agent_frames(run, shown)]
    curve, moving = _curve(run, shown)
    length_s = PLAYED_S + HELD_S
    style = "".join(
        [
            *(f"@keyframes {name}{{{stops}}}" for name, stops in [*frames, *moving]),
            f".walk *{{animation-duration:{length_s:g}s;animation-iteration-count:infinite;"
            "animation-timing-function:linear}.walk .agent{animation-timing-function:step-end}",
            *(f".{name}{{animation-name:{name}}}" for name, _ in [*frames, *moving]),
            "@media(prefers-reduced-motion:reduce){.walk *{animation-play-state:paused}}",
        ]
    )
    tokens = run.method.tokens
    title = f"{tokens} token{'s' * (tokens > 1)} walk{'s' * (tokens == 1)} among {run.network.agents} agents"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
            'font-family="system-ui, sans-serif" font-size="13" text-anchor="middle" fill="var(--ink)">',
            f"<style>{css(NAMES, 'svg', 'svg')}svg{{background:var(--paper)}}</style>",
            f'<style>{style}</style><g class="walk">',
            _text(NETWORK[0] - 20, 24, title, "start", 'font-weight="600" font-size="15"'),
            f'<path d="{links}" fill="none" stroke="var(--rule)" stroke-width="1.5"/>',
            *(_agent(i, place) for i, place in enumerate(places)),
            *curve,
            *(_token(m) for m in range(tokens) if m in shown.token),
            "</g></svg>\n",
        ]
    )


def _places(run: Readable) -> Any:
    """Where the agents are drawn, in pixels."""
    points = layout(run)
    low, high = points.min(axis=0), points.max(axis=0)
    left, top, right, bottom = NETWORK
    share = (points - low) / np.where(high > low, high - low, 1.0)
    return np.round([left, top] + share * [right - left, bottom - top])


def _token_frames(run: Readable, shown: Schedule, places: Any) -> list[tuple[str, str]]:
    """For each token its places: it stands beside an agent during a visit, and moves between two."""
    frames = []
    for m in range(run.method.tokens):
        turn = 2 * np.pi * m / max(3, run.method.tokens) - np.pi / 2
        beside = places + (RADIUS + 4) * np.array([np.cos(turn), np.sin(turn)])
        stops = []
        for k in np.flatnonzero(shown.token == m):
            at = f"transform:translate({beside[shown.agent[k]][0]:.0f}px,{beside[shown.agent[k]][1]:.0f}px)"
            begin_s, end_s = shown.time_s[k] - run.compute_s[shown.agent[k]], shown.time_s[k]
            stops.append(f"{_percent(begin_s, shown)},{_percent(end_s, shown)}{{{at}}}")
        if stops:
            stops[0] = f"0%,{stops[0]}"
            stops[-1] = stops[-1].replace("{", ",100%{", 1)
        frames.append((f"token{m}", "".join(stops)))
    return frames


def _agent_frames(run: Readable, shown: Schedule) -> list[tuple[str, str]]:
    """For each agent its colour: that of the token while it visits, and none between visits."""
    frames = []
    for i in range(run.network.agents):
        stops = ["0%{fill:none}"]
        for k in np.flatnonzero(shown.agent == i):
            begin_s, end_s = shown.time_s[k] - run.compute_s[i], shown.time_s[k]
            colour = shown.token[k] % len(COLOURS)
            stops.append(f"{_percent(begin_s, shown)}{{fill:var(--c{colour})}}")
            stops.append(f"{_percent(end_s, shown)}{{fill:none}}")
        frames.append((f"agent{i}", "".join(stops)))
    return frames


def _curve(run: Readable, shown: Schedule) -> tuple[list[str], list[tuple[str, str]]]:
    """The distance to the optimum as steps over the time that is shown, and the moment that moves along it."""
    time_s, distance = run.history["time_s"], column_of(run, "distance")
    drawn = (time_s <= shown.time_s[-1]) & np.isfinite(distance) & (distance > 0)
    if drawn.sum() < 2:
        return [], []
    left, top, right, bottom = CURVE
    x = left + (right - left) * time_s[drawn] / shown.time_s[-1]
    powers = np.maximum(np.log10(distance[drawn]), FLOOR)
    low, high = np.floor(powers.min()), max(np.ceil(powers.max()), np.floor(powers.min()) + 1)
    y = bottom - (bottom - top) * (powers - low) / (high - low)
    steps = f"M{x[0]:.0f} {y[0]:.1f}" + "".join(f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:], y[1:], strict=True))
    near, hop = np.flatnonzero(distance[drawn] < REACHED), run.history["hop"][drawn]
    told = f"below {REACHED:g} after {hop[near[0]]:.0f} hops" if len(near) else f"{10 ** powers[-1]:.1g} at the end"
    parts = [
        _text(left, 24, "distance to the model of all rows:", "start", 'font-weight="600"'),
        _text(left, 42, told, "start"),
    ]
    for power in np.unique(np.linspace(low, high, 4).round()):
        level = bottom - (bottom - top) * (power - low) / (high - low)
        label = "1" if power == 0 else f"{'≤ ' * bool(power == FLOOR)}1e{power:.0f}"
        parts.append(f'<path d="M{left} {level:.1f}H{right}" stroke="var(--rule)"/>')
        parts.append(_text(left - 6, level + 4, label, "end", SMALL))
    parts += [
        f'<path d="{steps}H{right}" fill="none" stroke="var(--ink)" stroke-width="2"/>',
        f'<path class="now" d="M{left} {top - 6}V{bottom + 6}" stroke="var(--c1)" stroke-width="2"/>',
        _text((left + right) / 2, bottom + 24, f"{run.clock}, {shown.hops} hops", "middle", SMALL),
    ]
    end = f"{_percent(shown.time_s[-1], shown)},100%{{transform:translate({right - left}px)}}"
    return parts, [("now", f"0%{{transform:translate(0)}}{end}")]


def _agent(i: int, place: Any) -> str:
    x, y = place
    circle = f'cx="{x:.0f}" cy="{y:.0f}" r="{RADIUS}"'
    still = f'<circle {circle} fill="var(--paper)" stroke="var(--ink)"/>'
    at_work = f'<circle class="agent agent{i}" {circle} fill="none" fill-opacity="0.45"/>'
    return still + at_work + _text(x, y + 4, str(i), "middle", 'font-size="11"')


def _token(m: int) -> str:
    circle = f'<circle r="{TOKEN_RADIUS}" fill="var(--c{m % len(COLOURS)})" stroke="var(--paper)" stroke-width="1.5"/>'
    label = _text(0, 4, str(m), "middle", 'font-size="11" font-weight="700" fill="var(--paper)"')
    return f'<g class="token{m}">{circle}{label}</g>'


def _text(x: float, y: float, words: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def _pair(place: Any) -> str:
    return f"{place[0]:.0f} {place[1]:.0f}"


def _percent(time_s: float, shown: Schedule) -> str:
    """When this is, of one turn of the animation."""
    return f"{100 * max(time_s, 0.0) / shown.time_s[-1] * PLAYED_S / (PLAYED_S + HELD_S):.3f}%"
