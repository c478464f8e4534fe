"""What an agent writes into its status: the protocol's state, and what only the driver can measure."""

import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from amble.arrays import Array, norm
from amble.live import status
from amble.live.agent.waiting import waits
from amble.live.core.effects import Visit
from amble.live.core.protocol import Core
from amble.live.journal.journal import Event
from amble.live.process import Process, this_process

RATE_S = 5.0  # hops/s and mean times are over so long


class Pace(NamedTuple):
    """Of the last seconds; the means are None where there was no visit."""

    hops_per_s: float
    visit_s: float | None
    wait_s: float | None


@dataclass
class Gauge:
    """How fast visits are made, how far the model moves between two visits of one token, and what happened last."""

    begun_s: float
    process: Process = field(default_factory=this_process)
    visits: deque[tuple[float, int, float, float]] = field(default_factory=deque)  # how many by when; seconds of both
    visit_s: float = 0.0  # of all visits of this process
    wait_s: float = 0.0
    recent: deque[status.Recent] = field(default_factory=lambda: deque(maxlen=status.RECENT_MAX))
    events: deque[status.Told] = field(default_factory=lambda: deque(maxlen=status.EVENTS_MAX))
    counts: Counter[str] = field(default_factory=Counter)  # of events, by their kind
    z: dict[int, tuple[Array, Array | None]] = field(default_factory=dict)  # estimates at each token's last two visits

    def visited(self, m: int, z: Array) -> None:
        self.z[m] = (z, self.z[m][0] if m in self.z else None)

    def moved(self, m: int) -> float | None:
        z, before = self.z.get(m, (None, None))
        return None if z is None or before is None else float(norm(z - before) / (norm(z) or 1.0))

    def kept(self, visit: Visit, to: str, time_s: float, waited_s: float, compute_s: float) -> None:
        """A visit is in the journal, and its token is for `to`."""
        self.visit_s, self.wait_s = self.visit_s + compute_s, self.wait_s + waited_s
        self.recent.append(status.Recent(time_s, visit.token, visit.epoch.number, visit.hop, visit.giver, to))

    def told(self, event: Event) -> None:
        """An event is in the journal."""
        fields = {key: value for key, value in event._asdict().items() if key != "author"}
        self.events.append(status.Told(**fields))
        self.counts[event.kind] += 1

    def pace(self, now_s: float, made: int) -> Pace:
        """Of this process, which has made so many visits."""
        if not self.visits:
            self.visits.append((self.begun_s, 0, 0.0, 0.0))
        self.visits.append((now_s, made, self.visit_s, self.wait_s))
        while len(self.visits) > 2 and now_s - self.visits[1][0] >= RATE_S:
            self.visits.popleft()
        since_s, before, visit_s, wait_s = self.visits[0]
        count = made - before
        rate = count / (now_s - since_s) if now_s > since_s else 0.0
        if not count:
            return Pace(rate, None, None)
        return Pace(rate, (self.visit_s - visit_s) / count, (self.wait_s - wait_s) / count)


def status_of(
    core: Core, gauge: Gauge, now_s: float, *, joined: bool, ended: bool, made: int, **known: Any
) -> status.Status:
    """The status of an agent that runs, or has `ended`; `joined`: a token has come to it from another agent; `made`:
    visits by this process. Fields in `known` are copied unchanged."""
    pace = Pace(0.0, None, None) if ended else gauge.pace(now_s, made)
    return status.Status(
        name=core.me,
        time_s=time.time(),
        state=_state(core, joined, ended),
        process=gauge.process,
        visits=int(core.rows["holder"].visits),
        **pace._asdict(),
        up=tuple(sorted(set(core.neighbours.names) - core.neighbours.down_s.keys())),
        down=tuple(sorted(core.neighbours.down_s)),
        doubts={name: doubt.why for name, doubt in sorted(core.neighbours.doubts.of.items())},
        tokens=_tokens(core, gauge),
        waits=() if ended else waits(core, now_s, time.time()),
        stopped=core.stopped,
        cause=core.ending.cause if core.ending else "",
        likely_cause=core.likely_cause,
        left=core.left.words if core.left else "",
        all_out=bool(core.left and core.left.all_out),
        recent=tuple(gauge.recent),
        events=tuple(gauge.events),
        counts=dict(gauge.counts),
        **known,
    )


def _state(core: Core, joined: bool, ended: bool) -> status.State:
    if core.left:
        return "left"
    if core.ending:
        return "ended" if ended else "ending"
    if ended:
        return "stopped"
    if core.leaving:
        return "leaving"
    return "up" if joined else "joining"


def _tokens(core: Core, gauge: Gauge) -> dict[int, status.Sight]:
    tokens = {}
    for m in range(core.settings.tokens):
        seen, custody, errand = core.rows.get(f"sight/{m}"), core.rows.get(f"custody/{m}"), core.custodian.errands[m]
        if seen is not None:
            here = custody is not None and not errand.taken and not errand.passed
            to = custody.to if here and custody else ""
            tokens[m] = status.Sight((seen.epoch.number, seen.epoch.author), seen.hop, here, to, gauge.moved(m))
    return tokens
