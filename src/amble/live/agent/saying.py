"""What an agent writes into its status: the protocol's state, and what only the driver can measure."""

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from amble.arrays import Array, norm
from amble.live import status
from amble.live.agent.waiting import waits
from amble.live.core.protocol import Core
from amble.live.process import Process, this_process

RATE_S = 5.0  # hops/s are over so long


@dataclass
class Gauge:
    """How fast visits are made, and how far the model moves between two visits of one token."""

    begun_s: float
    process: Process = field(default_factory=this_process)
    visits: deque[tuple[float, int]] = field(default_factory=deque)  # how many were made by when
    z: dict[int, Array] = field(default_factory=dict)  # the estimate at each token's last visit
    moved: dict[int, float] = field(default_factory=dict)

    def visited(self, m: int, z: Array) -> None:
        if m in self.z:
            self.moved[m] = float(norm(z - self.z[m]) / (norm(z) or 1.0))
        self.z[m] = z

    def hops_per_s(self, now_s: float, made: int) -> float:
        """The rate of this process, which has made so many visits."""
        if not self.visits:
            self.visits.append((self.begun_s, 0))
        self.visits.append((now_s, made))
        while len(self.visits) > 2 and now_s - self.visits[1][0] >= RATE_S:
            self.visits.popleft()
        since_s, before = self.visits[0]
        return (made - before) / (now_s - since_s) if now_s > since_s else 0.0


def status_of(
    core: Core, gauge: Gauge, now_s: float, *, joined: bool, ended: bool, made: int, **known: Any
) -> status.Status:
    """The status of an agent that runs, or has `ended`; `joined`: a token has come to it from another agent; `made`:
    visits by this process. Fields in `known` are copied unchanged."""
    return status.Status(
        name=core.me,
        time_s=time.time(),
        state=_state(core, joined, ended),
        process=gauge.process,
        visits=int(core.rows["holder"].visits),
        hops_per_s=0.0 if ended else gauge.hops_per_s(now_s, made),
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
            tokens[m] = status.Sight((seen.epoch.number, seen.epoch.author), seen.hop, here, to, gauge.moved.get(m))
    return tokens
