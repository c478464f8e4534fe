"""Timing: how long a hop and a visit take, in virtual seconds.

A message over a link takes   U(low_s, high_s) + Exp(mean_s) + bytes / bytes_per_s;
a visit takes                 slowdown_i * compute seconds of agent i.
"""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, unknown

COMPUTE = ("model", "measured")
FLOPS_PER_S = 1e9  # the fixed cost model's agent: one operation a nanosecond
CALIBRATED_AGENTS_MAX = 64


@dataclass(frozen=True)
class Timing:
    """One link and compute model; `paper`, `walkman` and `link` below are the usual ones."""

    low_s: float = 1e-5
    high_s: float = 1e-4
    mean_s: float = 0.0
    bytes_per_s: float = float("inf")
    compute: str | float = "model"  # the fixed cost model, "measured" on this machine, or seconds a visit
    slowdown: tuple[tuple[int, float], ...] = ()  # (agent, factor): stragglers; all others have factor 1

    def __post_init__(self) -> None:
        given = self.slowdown.items() if isinstance(self.slowdown, Mapping) else self.slowdown
        object.__setattr__(self, "slowdown", tuple((int(agent), float(factor)) for agent, factor in given))
        if isinstance(self.compute, str) and self.compute not in COMPUTE:
            raise unknown("compute model", self.compute, COMPUTE)
        for name in ("low_s", "high_s", "mean_s"):
            if not 0 <= getattr(self, name) < np.inf:
                raise AmbleError(f"timing: {name}={getattr(self, name)} was given; seconds must be zero or more.")
        if self.high_s < self.low_s:
            raise AmbleError(f"timing: high_s={self.high_s} is below low_s={self.low_s}; give low_s <= high_s.")
        if not self.bytes_per_s > 0:
            raise AmbleError(f"timing: bytes_per_s={self.bytes_per_s} was given; it must be above zero.")
        if not isinstance(self.compute, str) and not 0 <= self.compute < np.inf:
            raise AmbleError(f"timing: compute={self.compute} was given; seconds must be zero or more.")
        for agent, factor in self.slowdown:
            if not 0 < factor < np.inf:
                raise AmbleError(f"timing: agent {agent}'s slowdown is {factor}; it must be above zero.")

    def link(self, message_bytes: float) -> Any:
        """What `link_seconds` needs to know: the fixed part, the width of the uniform part, the exponential's mean."""
        return np.array([self.low_s + message_bytes / self.bytes_per_s, self.high_s - self.low_s, self.mean_s])

    def factors(self, agents: int) -> Any:
        """Each agent's slowdown."""
        factors = np.ones(agents)
        for agent, factor in self.slowdown:
            if not 0 <= agent < agents:
                raise AmbleError(f"timing slows agent {agent} down; agents are numbered 0 to {agents - 1}.")
            factors[agent] = factor
        return factors


def link_seconds(xp: Any, link: Array, u: Array) -> Array:
    """Seconds of one message, from one uniform draw (no model here mixes the uniform and the exponential part)."""
    fixed, width, mean = link
    return fixed + width * u - mean * xp.log1p(-u)


def link(latency_s: float, bytes_per_s: float = float("inf"), **more: Any) -> Timing:
    """Latency + bytes / bandwidth."""
    return Timing(low_s=latency_s, high_s=latency_s, bytes_per_s=bytes_per_s, **more)


NAMED: dict[str, dict[str, Any]] = {
    "paper": {},  # hop ~ U(1e-5, 1e-4) s
    "walkman": {"low_s": 0.0, "high_s": 0.0, "mean_s": 1.0},  # hop ~ Exp(1)
    "unit": {"low_s": 1.0, "high_s": 1.0, "compute": 0.0},  # time in hops: each takes a second, visits none
}


def make(timing: "str | Timing | Mapping[str, Any]") -> Timing:
    """A Timing, a name (paper, walkman, unit), or a mapping of Timing's fields, `model` being such a name."""
    if isinstance(timing, Timing):
        return timing
    given = {"model": timing} if isinstance(timing, str) else dict(timing)
    model = given.pop("model", "paper")
    if model not in NAMED:
        raise unknown("timing", model, NAMED)
    known = [field.name for field in fields(Timing)]
    for key in given:
        if key not in known:
            raise unknown("timing setting", key, [*known, "model"])
    return Timing(**{**NAMED[model], **given})


def settings(timing: Timing) -> dict[str, Any]:
    """The fields as plain JSON values (an infinite bandwidth is None)."""
    plain = asdict(timing)
    plain["bytes_per_s"] = None if np.isinf(timing.bytes_per_s) else timing.bytes_per_s
    plain["slowdown"] = [list(pair) for pair in timing.slowdown]
    return plain


def from_settings(plain: Mapping[str, Any]) -> Timing:
    """The Timing that `settings` was made from."""
    bandwidth = plain["bytes_per_s"]
    return Timing(**{**plain, "bytes_per_s": float("inf") if bandwidth is None else bandwidth})


def compute_seconds(timing: Timing, rules: Any, problem: Any) -> Any:
    """Seconds of one visit at each agent, slowdown included."""
    N = problem.agents
    if timing.compute == "model":
        seconds = modelled(rules, problem)
    elif timing.compute == "measured":
        seconds = measured(rules, problem)
    else:
        seconds = np.full(N, float(timing.compute))
    return seconds * timing.factors(N)


def modelled(rules: Any, problem: Any) -> Any:
    """Operations of the objective's calls, at one a nanosecond; an objective of your own is taken as one us."""
    each = problem.stacked if problem.own is None else None
    if each is None:
        return np.full(problem.agents, 1e-6)
    flops = sum(times * each.flops(kind) for kind, times in rules.work.items())
    return np.asarray(flops, np.float64) / FLOPS_PER_S


def measured(rules: Any, problem: Any) -> Any:
    """The median of several timed NumPy visits at each agent; agents beyond the first 64 get the median of those."""
    start = np.zeros(problem.dimension)
    seconds = np.zeros(problem.agents)
    timed = min(problem.agents, CALIBRATED_AGENTS_MAX)
    rounds = hasattr(rules, "round")
    slot, token = (None, None) if rounds else (rules.slot(start), rules.token(start, problem.agents))
    for i in range(timed):
        f = problem.objective(i)
        agent = rules.agent(f, start)
        laps = []
        for _ in range(7):
            begin = time.perf_counter()
            if rounds:
                agent = rules.round(f, agent, agent.x)
            else:
                agent, slot, token = rules.visit(f, agent, slot, token)
            laps.append(time.perf_counter() - begin)
        seconds[i] = np.median(laps)
    seconds[timed:] = np.median(seconds[:timed])
    return seconds
