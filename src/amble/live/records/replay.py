"""Replay: recomputes every visit of a live run from the agents' data, and compares every digest.

A visit can be recomputed when it is its agent's next one and its parcel is known. That is the parcel as the sender had
it: after the sender's own visit one hop before, or after the sender reissued it (a recount of it).
Nothing but the record and the data decides the order, so a replay needs no clock.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from amble.data.datasets import count
from amble.errors import AmbleError
from amble.live.core.message import Epoch
from amble.live.core.packing import digest
from amble.live.core.parcels import Visits, loss_at
from amble.live.journal.file import ARITHMETIC
from amble.live.journal.journal import Event, Visited
from amble.live.records.record import Record
from amble.losses.objective import Objective
from amble.methods.protocol import TokenMethod, is_gift

RECOUNT, REISSUE, LEAVES = "recount", "reissue", "leaves"

Watch = Callable[[str, int, Any], None]


class Issue(NamedTuple):
    """A parcel as an agent sent it."""

    agent: str
    token: int
    hop: int
    epoch: Epoch


class Outcome(NamedTuple):
    """How a replay went: each visit has two digests, of the parcel before and after."""

    visits: int
    made: int
    equal: int
    first: str  # that differs, if one does
    left: tuple[str, ...]  # what could not be recomputed, and why

    @property
    def whole(self) -> bool:
        return self.equal == 2 * self.visits

    def __str__(self) -> str:
        summary = f"{self.equal:,} of {2 * self.visits:,} digests are equal ({self.made:,} of {self.visits:,} visits)"
        return "; ".join([summary, *([f"the first difference: {self.first}"] if self.first else []), *self.left])


def check_arithmetic(record: Record, method: TokenMethod) -> None:
    """Refuses a run with another arithmetic: its digests differ although nothing is damaged."""
    full = is_gift(method) and method.weigh == "full"
    if record.arithmetic > ARITHMETIC or (full and record.arithmetic < ARITHMETIC):
        raise AmbleError(
            f"this run was computed by arithmetic {record.arithmetic} of another amble, and this one has {ARITHMETIC}: "
            "its digests cannot be compared; replay it with the amble that made it."
        )


@dataclass
class _Agent:
    """One agent of the replay."""

    name: str
    index: int
    objective: Objective
    holder: Any
    lines: tuple[Visited, ...]
    recounts: Mapping[tuple[int, int, int], Event]  # by (token, epoch, hop before the visit)
    leaves: Collection[tuple[int, Epoch, int]]  # visits at which it removed its share: (token, epoch, hop)
    shares: dict[int, tuple[Epoch, Any]] = field(default_factory=dict)
    done: int = 0


class Replay:
    """All agents of a record whose objectives are known."""

    def __init__(
        self, record: Record, visits: Visits, objectives: Mapping[str, Objective], watch: Watch = lambda *_: None
    ) -> None:
        """`watch(agent, number of its visit, its holder then)` is called after each visit."""
        self.record, self.visits, self.watch = record, visits, watch
        self.parcels: dict[Issue, Any] = {}
        self.newest: dict[int, tuple[Issue, Any]] = {}  # each token, as an agent last sent it
        self.places: dict[tuple[str, int, int], list[Issue]] = {}  # all parcels of the replay, by (agent, token, hop)
        self.again: dict[Issue, tuple[Issue, Event]] = {}  # what an issue was reissued as
        self.agents = {}
        for index, name in enumerate(record.agents):
            if name in objectives and name in record.visits:
                events = record.events[name]
                recounts = {(e.token, e.epoch or 0, e.hop): e for e in events if e.kind == RECOUNT}
                holder = visits.holder(objectives[name])
                lines = record.visits[name]
                leaves = {(e.token, Epoch(e.epoch or 0, e.author or 0), e.hop) for e in events if e.kind == LEAVES}
                self.agents[name] = _Agent(name, index, objectives[name], holder, lines, recounts, leaves)
        self._lay_out()
        self.equal, self.first = 0, ""

    def _lay_out(self) -> None:
        """Where parcels will come from: starts, visits, and reissues, each of the newest before it."""
        begun = dict[Issue, Any]()
        for agent in self.agents.values():
            for line in agent.lines:
                self._place(Issue(agent.name, line.token, line.hop, Epoch(line.epoch, line.author)))
            issued = {(e.token, e.epoch): e for e in self.record.events[agent.name] if e.kind == REISSUE}
            for event in sorted(issued.values(), key=lambda each: each.epoch or 0):
                issue = Issue(agent.name, event.token, event.hop, Epoch(event.epoch or 0, agent.index))
                before = [each for each in self.places.get(issue[:3], []) if each.epoch < issue.epoch]
                if before:
                    self.again[max(before, key=lambda each: each.epoch)] = (issue, event)
                elif event.hop == 0:  # from the beginning, by one who never had it
                    begun[issue] = self._recounted(self.visits.parcel(event.token), event)
                self._place(issue)
            for line in agent.lines:  # by its own hands
                if (line.giver, line.hop) == (agent.name, 1):
                    start = Issue(agent.name, line.token, 0, Epoch(0, agent.index))
                    self._place(start)
                    begun[start] = self.visits.parcel(line.token)
        for issue, parcel in begun.items():
            self._left_hands(issue, parcel)

    def _left_hands(self, issue: Issue, parcel: Any) -> None:
        """Adds a parcel, and what it was reissued as."""
        self._keep(issue, parcel)
        while issue in self.again:
            issue, event = self.again[issue]
            parcel = self._recounted(parcel, event)
            self._keep(issue, parcel)

    def _keep(self, issue: Issue, parcel: Any) -> None:
        self.parcels[issue] = parcel
        last = self.newest.get(issue.token)
        if last is None or (last[0].epoch, last[0].hop) <= (issue.epoch, issue.hop):
            self.newest[issue.token] = issue, parcel

    def _place(self, issue: Issue) -> None:
        self.places.setdefault(issue[:3], []).append(issue)

    def run(self, halt: Callable[[], bool] = lambda: False) -> Outcome:
        """Until all visits are recomputed, no more can be, or `halt` is true."""
        moving = True
        while moving and not halt():
            moving = False
            for agent in self.agents.values():
                while agent.done < len(agent.lines) and (source := self._source(agent)) is not None:
                    self._make(agent, agent.lines[agent.done], source)
                    moving = True
        made = sum(agent.done for agent in self.agents.values())
        return Outcome(self.record.hops, made, self.equal, self.first, tuple(self._left(halt())))

    def _source(self, agent: _Agent) -> Issue | None:
        """The parcel of the agent's next visit, if it is known by now.

        At a recount the epoch it came in is not recorded; then it is the one whose digest is that of the record.
        """
        line = agent.lines[agent.done]
        if line.number != agent.done + 1:
            return None
        offered = self._offered(agent, line)
        known = [issue for issue in offered if issue in self.parcels]
        if len(offered) > 1:
            known = [issue for issue in known if digest(self.parcels[issue]) == line.before] or (
                known if len(known) == len(offered) else []
            )
        return known[-1] if known else None

    def _offered(self, agent: _Agent, line: Visited) -> list[Issue]:
        epoch = Epoch(line.epoch, line.author)
        offered = self.places.get((line.giver, line.token, line.hop - 1), [])
        if self._recount(agent, line) is None:
            return [issue for issue in offered if issue.epoch == epoch]
        return [issue for issue in offered if issue.epoch < epoch]

    def _recount(self, agent: _Agent, line: Visited) -> Event | None:
        mine = line.author == agent.index
        return agent.recounts.get((line.token, line.epoch, line.hop - 1)) if mine else None

    def _make(self, agent: _Agent, line: Visited, source: Issue) -> None:
        """What protocol.Core does at a visit."""
        parcel, epoch = self.parcels[source], Epoch(line.epoch, line.author)
        self._compare(agent, line, "before", digest(parcel))
        if (event := self._recount(agent, line)) is not None:
            parcel = self._recounted(parcel, event, agent.holder)
        given_in, share = agent.shares.get(line.token, (None, self.visits.share()))
        known = (agent.holder, share, parcel, agent.index, line.hop, given_in != epoch)
        if (line.token, epoch, line.hop) in agent.leaves:
            agent.holder, share, parcel = self.visits.leave(*known)
            agent.shares.pop(line.token, None)
        else:
            f = loss_at(agent.objective, line.token, line.hop, self.visits.method.tokens)
            agent.holder, share, parcel = self.visits.visit(f, *known)
            agent.shares[line.token] = (epoch, share)
        self.watch(agent.name, line.number, agent.holder)
        agent.done += 1
        self._compare(agent, line, "after", digest(parcel))
        self._left_hands(Issue(agent.name, line.token, line.hop, epoch), parcel)
        if len(self.places[source[:3]]) == 1 and source not in self.again:
            del self.parcels[source]  # no other visit needs it: memory stays bounded

    def _recounted(self, parcel: Any, event: Event, holder: Any = None) -> Any:
        flags = np.array([float(name in event.buried) for name in self.record.agents])
        flags = np.append(flags, np.zeros(len(parcel.buried) - len(flags)))
        return self.visits.recount(parcel, Epoch(event.epoch or 0, event.author or 0), flags, holder)

    def _compare(self, agent: _Agent, line: Visited, side: str, computed: str) -> None:
        if computed == getattr(line, side):
            self.equal += 1
        elif not self.first:
            self.first = (
                f"{agent.name}, its visit {line.number}: token {line.token} {side} hop {line.hop} of epoch "
                f"{line.epoch}:{line.author} is {computed}, and {getattr(line, side)} was recorded"
            )

    def _left(self, halted: bool) -> list[str]:
        left = ["the replay was stopped before its end"] if halted else []
        visited = {name for name, lines in self.record.visits.items() if lines}
        unknown = {name for name in self.record.agents if name not in self.record.visits}
        lacking = [name for name in self.record.agents if name in (visited | unknown) - self.agents.keys() - {""}]
        left += [f"the data of {name} are missing here" for name in lacking]
        for agent in self.agents.values():
            if not halted and agent.done < len(agent.lines):
                line = agent.lines[agent.done]
                needed = f"{line.giver}'s token {line.token} of hop {line.hop - 1}, epoch {line.epoch}:{line.author}"
                if line.number != agent.done + 1:
                    needed = f"its own visit {agent.done + 1}"
                left.append(
                    f"{count(len(agent.lines) - agent.done, 'visit')} of {agent.name} cannot be made without {needed}"
                )
        return left
