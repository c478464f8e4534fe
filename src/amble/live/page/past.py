"""A film of a run that has ended, from its record: it has every visit, so slow motion shows every hop.

How good the model was is known where the run was saved too (run.json), and how far it moved is not. The record of one
agent of several says from whom tokens came, and not where they went.
"""

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from amble.arrays import Array, Indices
from amble.live.control.view import DISTANCE
from amble.live.journal.journal import Visited
from amble.live.page.film import HOPS_MAX, NOBODY, About, Agent, Film, Frame, Step, Token
from amble.live.page.lives import Change, events_of, life_of, signs_of
from amble.live.page.scene import SPAN_S, STATE, short
from amble.live.records.record import Record
from amble.live.status import RUNNING
from amble.problem.prediction import METRICS
from amble.results.run import Run

FRAMES = 1000  # of a film, however long
RATE_S, RATE_PART = 5.0, 0.2  # rates and means are over so long, but no longer than this part of the run

Links = Sequence[tuple[str, str]]


def film_of(
    record: Record, title: str, method: str, links: Links = (), run: Run | None = None, here: Collection[str] = ()
) -> Film:
    """The film of a record, with the agents that it is of; without `links`, those that tokens took are shown. `run` has
    the curves of its model, and the folders of the agents in `here` can be read."""
    own = tuple(name for name in record.agents if name in record.visits)
    seen_from = own[0] if len(own) == 1 and len(record.agents) > 1 else ""
    ways = links or [(visit.giver, name) for name, visits in record.visits.items() for visit in visits]
    near = {end for way in ways for end in way} if seen_from else set()
    names = tuple(name for name in record.agents if name and (name in own or name in near))
    places = {name: place for place, name in enumerate(names)}
    ends = [(places[a], places[b]) for a, b in ways if a in places and b in places and a != b]
    signs = [time_s for name in own for time_s in signs_of(record, name)] or [0.0]
    about = About(
        title=title, method=method, live=False, began_s=min(signs), tokens=record.tokens, agents=names,
        links=tuple(sorted({(min(pair), max(pair)) for pair in ends})),
        here=tuple(name in here for name in names),
        seen_from=seen_from,
        unseen=tuple(name for name in record.agents if name and name not in names),
    )  # fmt: skip
    t = np.linspace(0.0, max(signs) - min(signs), FRAMES)
    lives = {name: life_of(record, name, max(signs)) for name in own}
    film, events = Film(about), tuple(events_of(about, record, lives))
    for frame in _frames(about, record, lives, t, run):
        film.add(Step(frame, () if frame.n else events))
    return film


def _frames(about: About, record: Record, lives: dict[str, list[Change]], t: Array, run: Run | None) -> list[Frame]:
    agents = [
        _agents(lives[name], about.began_s, _Pace.of(record.visits.get(name, ()), about.began_s, t), t)
        if name in lives
        else [Agent(STATE["unknown"])] * len(t)
        for name in about.agents
    ]
    tokens = [_tokens(record, m, about, t) for m in range(about.tokens)]
    ends = [told.time_s - about.began_s for each in record.events.values() for told in each if told.kind == "stopped"]
    end_t = min(ends, default=np.inf)
    figures, heard = _curves(run, record, about.began_s, t)
    return [
        Frame(
            n=k,
            t=round(float(at), 4),
            state="ended" if at >= end_t or (ends and k == len(t) - 1) else "running",
            agents=tuple(agent[k] for agent in agents),
            tokens=tuple(token[k] for token in tokens),
            bytes=heard[k],
            figures=figures[k],
        )
        for k, at in enumerate(t)
    ]


class _Pace(NamedTuple):
    """Of one agent, at each frame: visits so far, and the last ones per second, their seconds and those of waits."""

    visits: Indices
    hops_per_s: Array
    visit_s: Array
    wait_s: Array

    @classmethod
    def of(cls, visits: Sequence[Visited], began_s: float, t: Array) -> "_Pace":
        # accumulated, so that a clock that was set back cannot put a later visit before an earlier one
        ends = np.array([*accumulate((visit.time_s - began_s for visit in visits), max)], float)
        span_s = max(min(RATE_S, RATE_PART * t[-1]), 2 * t[1], 1e-3)
        upto, since = (np.searchsorted(ends, at, "right") for at in (t, t - span_s))
        count = upto - since
        sums = [np.cumsum([0.0, *(getattr(visit, key) for visit in visits)]) for key in ("compute_s", "waited_s")]
        means = [(each[upto] - each[since]) / np.where(count, count, np.nan) for each in sums]
        return cls(upto, count / span_s, *means)


def _agents(life: Sequence[Change], began_s: float, pace: _Pace, t: Array) -> list[Agent]:
    """One agent, in all frames."""
    at = np.searchsorted([change.time_s - began_s for change in life], t, "right")
    states = ["unstarted", *(change.state for change in life)]
    columns = (each.tolist() for each in (at, *pace))
    agents = []
    for k, visits, *pace_then in zip(*columns, strict=True):
        known = [short(each) if states[k] in RUNNING and np.isfinite(each) else None for each in pace_then]
        agents.append(Agent(STATE[states[k]], visits, known[0], None, *known[1:]))
    return agents


def _tokens(record: Record, m: int, about: About, t: Array) -> list[Token]:
    """One token, in all frames."""
    places, epoch = about.places, (-1, -1)
    seen_from = places.get(about.seen_from, NOBODY)
    walk: list[tuple[float, int, Visited]] = []
    every = ((visit, name) for name, visits in record.visits.items() for visit in visits if visit.token == m)
    for visit, name in sorted(every, key=lambda each: (each[0].time_s, each[0].epoch, each[0].hop)):
        if (visit.epoch, visit.author) >= epoch:  # an older one is about to be discarded
            epoch = visit.epoch, visit.author
            ended_s = visit.time_s - about.began_s
            if about.seen_from and visit.giver in places:
                came_s = ended_s - visit.compute_s - visit.waited_s - SPAN_S
                walk.append((round(max(came_s, walk[-1][0] if walk else 0.0), 4), places[visit.giver], visit))
            walk.append((round(ended_s, 4), places[name], visit))
    upto = np.searchsorted([stop[0] for stop in walk], t, "right").tolist()
    tokens, before = [], 0
    for k in upto:
        stops = tuple((at, place) for at, place, _ in walk[before:k])
        before = k
        if not k:
            tokens.append(Token())
            continue
        _, place, last = walk[k - 1]
        gone = place == seen_from  # nobody here knows where it went
        to = walk[k][1] if k < len(walk) and not gone else NOBODY
        jumps = bool(about.seen_from and stops and stops[0][1] != seen_from)  # it comes from nobody knows where
        whole = len(stops) <= HOPS_MAX and not jumps
        tokens.append(Token(place, to, not about.seen_from, last.epoch, last.hop, None, stops[-HOPS_MAX:], whole))
    return tokens


def _curves(
    run: Run | None, record: Record, began_s: float, t: Array
) -> tuple[list[dict[str, float]], list[int | None]]:
    """How good the model was at each frame, and the tokens' bytes so far."""
    if run is None:
        return [{} for _ in t], [None] * len(t)
    begun_s = min(visit.time_s - visit.compute_s for visits in record.visits.values() for visit in visits)
    at = np.maximum(np.searchsorted(run.history["time_s"] + begun_s - began_s, t, "right") - 1, 0)
    names = {"metric": METRICS[run.problem["task"]], "distance": DISTANCE}
    columns = {name: run.history[key][at] for key, name in names.items() if key in run.history}
    figures = [
        {name: short(float(column[k])) for name, column in columns.items() if np.isfinite(column[k])}
        for k in range(len(t))
    ]
    return figures, [int(each) for each in run.history["bytes"][at]]
