"""What agents went through, and what happened, from the record of a run.

A record does not say when an agent was down. It says when each of its processes started, so an agent was down from its
last sign of life before that.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from amble.live.control.glance import FROZEN_S
from amble.live.core.message import printable
from amble.live.page.film import NOBODY, About, Event
from amble.live.page.scene import NEWS, event_of, seconds
from amble.live.records.record import Record

LAST = {"leaves": "leaving", "left": "left", "stopped": "ended"}  # events, and the state that follows


class Change(NamedTuple):
    """From this time on, an agent was in this state."""

    time_s: float
    state: str


def signs_of(record: Record, name: str) -> list[float]:
    """When an agent did anything."""
    visits, events = record.visits.get(name, ()), record.events.get(name, ())
    return sorted([*(visit.time_s for visit in visits), *(event.time_s for event in events)])


def life_of(record: Record, name: str, until_s: float) -> list[Change]:
    """The states that an agent went through, in a run that ended at `until_s`; before the first it was not started."""
    signs, events = signs_of(record, name), record.events.get(name, ())
    if not signs:
        return []
    joined_s = min((v.time_s for v in record.visits.get(name, ()) if v.giver != name), default=until_s)
    changes = [Change(signs[0], "joining"), Change(joined_s, "up")]
    for event in events:
        before = bisect_left(signs, event.time_s)
        if event.kind == "start" and before:
            state = "up" if joined_s < event.time_s else "joining"
            changes += [Change(signs[before - 1], "down"), Change(event.time_s, state)]
    changes += [Change(event.time_s, LAST[event.kind]) for event in events if event.kind in LAST]
    if not {"left", "stopped"} & {event.kind for event in events} and (
        until_s - signs[-1] > FROZEN_S
        or any(told.kind == "stopped" for each in record.events.values() for told in each)
    ):  # it was not there when the run ended
        changes.append(Change(signs[-1], "down"))
    return sorted(changes, key=lambda change: change.time_s)


def events_of(about: About, record: Record, lives: Mapping[str, Sequence[Change]]) -> list[Event]:
    """All that happened, in the order of time."""
    events = [*_told(about, record), *_seen(about, record, lives)]
    ends = [told for each in record.events.values() for told in each if told.kind == "stopped"]
    for end in sorted(ends, key=lambda told: told.time_s)[:1]:
        sentence = printable(f"the run has ended: {end.words}")
        events.append(Event(seconds(about, end.time_s), "end", NOBODY, sentence))
    return sorted(events, key=lambda event: event.t)


def _told(about: About, record: Record) -> Iterator[Event]:
    """What agents said themselves."""
    for name, each in record.events.items():
        started = False
        for told in each:
            if told.kind in NEWS:
                yield event_of(about, name, told, again=started)
            started = started or told.kind == "start"


def _seen(about: About, record: Record, lives: Mapping[str, Sequence[Change]]) -> Iterator[Event]:
    """What follows from their states."""
    kinds = {"down": ("down", "is down"), "leaving": ("leave", "leaves"), "left": ("left", "has left")}
    for name, changes in lives.items():
        place, guest = about.places[name], name in record.agents[record.founders :]
        for change in changes[:1] if guest else ():
            yield Event(seconds(about, change.time_s), "join", place, f"{name} joins")
        before = ""
        for change in changes:
            if change.state in kinds and change.state != before:
                kind, verb = kinds[change.state]
                yield Event(seconds(about, change.time_s), kind, place, f"{name} {verb}")
            before = change.state
