"""Frames and events of a run that goes on, from what its agents say. It has no I/O and no clock."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from amble.errors import few
from amble.live.control.glance import DOWN, Overview
from amble.live.control.view import waiting
from amble.live.core.message import printable
from amble.live.journal.journal import Event as JournalEvent
from amble.live.page.film import HOPS_MAX, NOBODY, NOTES_MAX, STATES, About, Agent, Event, Frame, Token
from amble.live.status import Recent, Status, Told

STATE = {name: number for number, name in enumerate(STATES)}
LAG_S = 0.7  # by then every agent that runs has written its status again: no visit before that is still unknown
SPAN_S = 0.25  # of a hop whose other end is not here
NEWS = ("start", "reissue", "recount", "doubt", "absorbed", "refused")  # the others are seen by the states


class Look(NamedTuple):
    """At all agents, at one moment."""

    overview: Overview
    statuses: Mapping[str, Status]


@dataclass
class Scene:
    """The last look, and what a film has of it already."""

    about: About
    before: Look | None = None
    frame: Frame | None = None
    walked: dict[int, Recent] = field(default_factory=dict)  # each token's last visit in the film
    told: set[tuple[str, str, float]] = field(default_factory=set)  # the events of agents that are in it
    started: set[str] = field(default_factory=set)
    places: dict[str, int] = field(default_factory=dict)

    def step(self, look: Look, figures: Mapping[str, float]) -> tuple[Frame, tuple[Event, ...]]:
        """What is new since the last look."""
        self.places = self.about.places
        events = tuple(sorted(self._events(look), key=lambda event: event.t))
        self.frame, self.before = self._frame(look, figures), look
        return self.frame, events

    # --- frames -----------------------------------------------------------------------------------------------------

    def _frame(self, look: Look, figures: Mapping[str, float]) -> Frame:
        about, overview, visits = self.about, look.overview, _visits(look.statuses)
        return Frame(
            n=0 if self.frame is None else self.frame.n + 1,
            t=seconds(about, overview.time_s),
            state=overview.state,
            stages=overview.stages,
            agents=tuple(_agent(look, name) for name in about.agents),
            tokens=tuple(self._token(look, m, visits.get(m, [])) for m in range(about.tokens)),
            cut=_cut(about, overview),
            bytes=overview.bytes,
            figures={name: short(value) for name, value in figures.items()},
            notes=tuple(map(printable, notes(overview)[:NOTES_MAX])),
        )

    def _token(self, look: Look, m: int, visits: Sequence[tuple[Recent, str]]) -> Token:
        token, places = look.overview.tokens.get(m), self.places
        if token is None:
            return Token()
        last, until_s = self.walked.get(m), look.overview.time_s - (0.0 if look.overview.over else LAG_S)
        new = [
            (visit, name)
            for visit, name in visits
            if (last is None or visit.time_s > last.time_s) and visit.time_s <= until_s
        ]
        if new:
            self.walked[m] = new[-1][0]
        chain = [*([last] if last else []), *(visit for visit, _ in new)]
        stops = stops_of(self.about, places, new)
        whole = bool(self.about.seen_from) or all(b.hop == a.hop + 1 for a, b in pairwise(chain))
        to = token.to or next((visit.to for visit, name in reversed(visits) if name == token.agent), "")
        return Token(
            places[token.agent], places.get(to, NOBODY), token.here, token.epoch, token.hop,
            None if token.moved is None else short(token.moved),
            stops[-HOPS_MAX:], whole and len(stops) <= HOPS_MAX,
        )  # fmt: skip

    # --- events -----------------------------------------------------------------------------------------------------

    def _events(self, look: Look) -> Iterator[Event]:
        for name, status in look.statuses.items():
            for told in status.events:
                if told.kind in NEWS and (name, told.kind, told.time_s) not in self.told:
                    self.told.add((name, told.kind, told.time_s))
                    yield event_of(self.about, name, told, again=name in self.started)
                    self.started |= {name} if told.kind == "start" else set()
        if self.before is not None:
            yield from self._changes(self.before, look)

    def _changes(self, before: Look, look: Look) -> Iterator[Event]:
        about, t = self.about, seconds(self.about, look.overview.time_s)
        for name, agent in look.overview.agents.items():
            place, earlier = self.places.get(name, NOBODY), before.overview.agents.get(name)
            if earlier is None:
                yield Event(t, "join", place, f"{name} joins")
            elif earlier.runs and agent.state == "down":
                yield Event(t, "down", place, f"{name} is down: {DOWN[agent.why]}" if agent.why else f"{name} is down")
            elif earlier.state == "down" and agent.runs and not _restarted(before, look, name):
                yield Event(t, "back", place, f"{name} is back")
            elif earlier.state != agent.state and agent.state in ("leaving", "left"):
                sentence = f"{name} leaves" if agent.state == "leaving" else f"{name} has left: {agent.words}"
                yield Event(t, "leave" if agent.state == "leaving" else "left", place, printable(sentence))
            if earlier is not None and earlier.runs and agent.runs and _restarted(before, look, name):
                yield Event(seconds(about, earlier.status_s or 0.0), "down", place, f"{name} was down for a moment")
        if look.overview.state == "ended" and before.overview.state != "ended":
            yield Event(t, "end", NOBODY, printable(f"the run has ended: {look.overview.words}"))


def _restarted(before: Look, look: Look, name: str) -> bool:
    """Whether another process writes the status."""
    earlier, now = before.statuses.get(name), look.statuses.get(name)
    return earlier is not None and now is not None and earlier.process != now.process


def seconds(about: About, time_s: float) -> float:
    return round(time_s - about.began_s, 3)


def short(value: float) -> float:
    """Enough digits to draw."""
    return float(f"{value:.4g}")


def _agent(look: Look, name: str) -> Agent:
    seen, said = look.overview.agents.get(name), look.statuses.get(name)
    if seen is None:
        return Agent(STATE["unstarted"])
    waits = any(wait.agent == name for wait in look.overview.waits)
    state = STATE["waiting" if seen.state == "up" and waits else seen.state]
    if said is None:
        return Agent(state)
    pace = (seen.hops_per_s, said.visit_s, said.wait_s) if seen.runs else (None, None, None)
    rate, *means = (None if each is None else short(each) for each in pace)
    return Agent(state, seen.visits, rate, seen.bytes, *means)


def _visits(statuses: Mapping[str, Status]) -> dict[int, list[tuple[Recent, str]]]:
    """The last visits of each token that agents tell of, in the order of their clock."""
    visits: dict[int, list[tuple[Recent, str]]] = {}
    for name, status in statuses.items():
        for visit in status.recent:
            visits.setdefault(visit.token, []).append((visit, name))
    for each in visits.values():
        each.sort(key=lambda pair: (pair[0].time_s, pair[0].epoch, pair[0].hop))
    return visits


def stops_of(
    about: About, places: Mapping[str, int], visits: Sequence[tuple[Recent, str]]
) -> tuple[tuple[float, int], ...]:
    """When and where a token was visited. Seen from one agent, it comes from a neighbour and goes to one: when is not
    known there, so both take a moment."""
    stops: list[tuple[float, int]] = []
    for k, (visit, name) in enumerate(visits):
        t = seconds(about, visit.time_s)
        if not about.seen_from:
            stops.append((t, places[name]))
            continue
        gaps = [abs(other.time_s - visit.time_s) for other, _ in (*visits[:k][-1:], *visits[k + 1 :][:1])]
        span = min(SPAN_S, *(gap / 3 for gap in gaps)) if gaps else SPAN_S
        around = [(t - span, visit.giver), (t, name), (t + span, visit.to)]
        stops += [(round(at, 3), places[who]) for at, who in around if who in places]
    return tuple(stops)


def _cut(about: About, overview: Overview) -> tuple[int, ...]:
    """The links that an agent which runs has lost."""
    down = {(name, other) for name, agent in overview.agents.items() for other in agent.down}
    ends = ((about.agents[i], about.agents[j]) for i, j in about.links)
    return tuple(k for k, (a, b) in enumerate(ends) if (a, b) in down or (b, a) in down)


def notes(overview: Overview) -> list[str]:
    """Who waits for whom, and what is wrong, but for sentences that may quote an agent's rows."""
    said = [waiting(wait, overview.time_s) for wait in overview.waits]
    for name, agent in overview.agents.items():
        if agent.state == "refused":
            said.append(f"{name} did not start; amble status {agent.folder} says why")
        said += [f"{name}: {other} {why}; tokens avoid it" for other, why in agent.doubts.items()]
        said += agent.doubled.values()
    lacking = missing(overview)
    return said + ([f"the model does not have the data of {few(lacking)}"] if lacking else [])


def missing(overview: Overview) -> list[str]:
    """The agents whose data the model lacks."""
    names = {name for agent in overview.agents.values() for name in agent.missing}
    if overview.state != "ended":  # it is normal that tokens have not met everybody yet
        names = {name for name in names if name in overview.agents and not overview.agents[name].runs}
    return sorted(names)


def event_of(about: About, name: str, told: Told | JournalEvent, again: bool) -> Event:
    """An agent's own event, in words; `again`: it had been started before."""
    without = f" without {few(told.buried)}" if told.buried else ""
    sentence = {
        "start": f"{name} started{' again' * again}",
        "reissue": f"{name} reissued token {told.token}{without}",
        "recount": f"{name} began a recount{without}",
        "doubt": f"{name}: {told.words}; tokens avoid it",
        "absorbed": f"{name} discarded an old token {told.token}",
        "refused": f"{name}: token {told.token} was refused by {told.words}",
    }[told.kind]
    return Event(seconds(about, told.time_s), told.kind, about.places[name], printable(sentence), told.token)
