"""The timing of a live run, from its record, for the simulator.

Each agent measures by its own clock how long a visit took, and how long its token had waited before. A hop goes from
one agent to another, and their clocks differ. But when a token comes back to an agent, that agent's clock alone
measures how long it was away. This time, less the waits and visits on the way, is d, the time of its n hops:

    hop_s    = sum d / sum n                            over all returns of all tokens
    spread_s = root of sum (d - n hop_s)^2 / sum n      hops that do not depend on each other: n of them vary n times

So a hop includes everything but the visit: journal, encoding, the link, decoding. For the simulator it is a fixed time
plus an exponential one, with this mean and this spread. Without a spread, tokens that meet once would meet in every
lap.
"""

from typing import NamedTuple

import numpy as np

from amble.arrays import Array
from amble.live.journal.journal import Visited
from amble.live.records.record import Record
from amble.schedule.timing import Timing


class Hops(NamedTuple):
    """Seconds between the end of a visit and the token's arrival at the next agent."""

    mean_s: float
    spread_s: float


def timing(record: Record) -> Timing:
    """Each agent's mean visit, and the hops (no time at all where no token has come back to any agent)."""
    means, hops = compute_s(record), hops_of(record)
    mean, spread_s = float(means.mean()), min(hops.spread_s, hops.mean_s)
    slowdown = tuple((i, float(each / mean)) for i, each in enumerate(means)) if mean else ()
    fixed_s = hops.mean_s - spread_s
    return Timing(low_s=fixed_s, high_s=fixed_s, mean_s=spread_s, compute=mean, slowdown=slowdown)


def compute_s(record: Record) -> Array:
    """Mean seconds of a visit at each agent of the run's beginning; at one that made none, the mean of the others."""
    founders = record.agents[: record.founders]
    visits_s = [[line.compute_s for line in record.visits.get(name, ())] for name in founders]
    others = float(np.mean([np.mean(each) for each in visits_s if each])) if any(visits_s) else 0.0
    return np.array([np.mean(each) if each else others for each in visits_s])


def hops_of(record: Record) -> Hops:
    if not (returns := _returns(record)):
        return Hops(0.0, 0.0)
    d, n = np.array(returns).T
    mean_s = max(0.0, d.sum() / n.sum())
    return Hops(float(mean_s), float(np.sqrt(((d - n * mean_s) ** 2).sum() / n.sum())))


def _returns(record: Record) -> list[tuple[float, int]]:
    """Of each return of a token to an agent: seconds that it was neither visited nor waiting, and how many hops."""
    returns = []
    walked: tuple[int, int, int] | None = None  # the token and epoch that are looked at
    seen: dict[str, tuple[Visited, float]] = {}  # each agent's last visit of it, and the busy seconds up to then
    busy_s, hop = 0.0, 0
    for name, line in record.in_order():
        if walked != (line.token, line.epoch, line.author) or line.hop != hop + 1:  # nothing is known across a gap
            walked, seen, busy_s = (line.token, line.epoch, line.author), {}, 0.0
        busy_s, hop = busy_s + line.waited_s + line.compute_s, line.hop
        if name in seen:
            last, until_s = seen[name]
            returns.append((line.time_s - last.time_s - (busy_s - until_s), hop - last.hop))
        if hop > 1:  # the first agent keeps its token until another is up
            seen[name] = (line, busy_s)
    return returns
