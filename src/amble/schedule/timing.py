"""Timing: how long a hop and a visit take, in virtual seconds.

A message over a link takes   U(low_s, high_s) or low_s + Exp(mean_s), + bytes / bytes_per_s;
a visit takes                 slowdown_i * compute seconds of agent i.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, final

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, is_number, unknown

COMPUTE = ("model", "measured")


@final
@dataclass(frozen=True)
class Timing:
    """How long a message and a visit take, in virtual seconds. The defaults are the paper's.

    Parameters
    ----------
    low_s, high_s : a message takes a time drawn uniformly between them
    mean_s : where low_s and high_s are equal, the mean of an exponential time that is added
    bytes_per_s : the bandwidth of a link
    compute : "model" (a fixed cost model), "measured" (on this machine), or seconds per visit
    slowdown : factors by agent, such as {3: 10.0}; all other agents have factor 1

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=20)
    >>> slow = amble.Timing(low_s=1.0, high_s=1.0, compute=0.0)
    >>> float(amble.simulate(amble.Relay(), problem, hops=20, timing=slow).history["time_s"][-1])
    19.0
    """

    low_s: float = 1e-5
    high_s: float = 1e-4
    mean_s: float = 0.0
    bytes_per_s: float = float("inf")
    compute: str | float = "model"
    slowdown: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        try:
            factors = self.slowdown.items() if isinstance(self.slowdown, Mapping) else self.slowdown
            pairs = tuple((int(agent), float(factor)) for agent, factor in factors)
        except (TypeError, ValueError) as error:
            raise AmbleError(f"timing: slowdown={self.slowdown!r} was given; give factors by agent.") from error
        object.__setattr__(self, "slowdown", pairs)
        if isinstance(self.compute, str) and self.compute not in COMPUTE:
            raise unknown("compute model", self.compute, COMPUTE)
        for name in ("low_s", "high_s", "mean_s"):
            if not (is_number(getattr(self, name)) and 0 <= getattr(self, name) < np.inf):
                raise AmbleError(f"timing: {name}={getattr(self, name)} was given; seconds must be zero or more.")
        if self.high_s < self.low_s:
            raise AmbleError(f"timing: high_s={self.high_s} is below low_s={self.low_s}; give low_s <= high_s.")
        if self.mean_s > 0 and self.high_s > self.low_s:
            raise AmbleError(
                f"timing: mean_s={self.mean_s} was given beside low_s={self.low_s} and high_s={self.high_s}; "
                "links are exponential or uniform, so make low_s and high_s equal, or mean_s zero."
            )
        if not (is_number(self.bytes_per_s) and self.bytes_per_s > 0):
            raise AmbleError(f"timing: bytes_per_s={self.bytes_per_s} was given; it must be above zero.")
        if not isinstance(self.compute, str) and not (is_number(self.compute) and 0 <= self.compute < np.inf):
            raise AmbleError(f"timing: compute={self.compute} was given; seconds must be zero or more.")
        for agent, factor in self.slowdown:
            if not 0 < factor < np.inf:
                raise AmbleError(f"timing: agent {agent}'s slowdown is {factor}; it must be above zero.")

    def link(self, message_bytes: float) -> Array:
        """The time of one message, as three numbers.

        Parameters
        ----------
        message_bytes : its size

        Returns
        -------
        array : the fixed seconds, the width of the uniform part, the mean of the exponential part

        Example
        -------
        >>> import amble
        >>> amble.Timing(low_s=1.0, high_s=3.0, bytes_per_s=100.0).link(message_bytes=50)
        array([1.5, 2. , 0. ])
        """
        return np.array([self.low_s + message_bytes / self.bytes_per_s, self.high_s - self.low_s, self.mean_s])

    def factors(self, agents: int) -> Array:
        """Each agent's slowdown.

        Parameters
        ----------
        agents : how many there are

        Returns
        -------
        array of factors

        Example
        -------
        >>> import amble
        >>> amble.Timing(slowdown={1: 10.0}).factors(3)
        array([ 1., 10.,  1.])
        """
        factors = np.ones(agents)
        for agent, factor in self.slowdown:
            if not 0 <= agent < agents:
                raise AmbleError(f"timing slows agent {agent} down; agents are numbered 0 to {agents - 1}.")
            factors[agent] = factor
        return factors


def link_seconds(xp: Any, link: Array, u: Array) -> Array:
    """Seconds of one message from one uniform draw, with which they grow; uniform or exponential, not both."""
    fixed, width, mean = link
    seconds: Array = fixed + width * u - mean * xp.log1p(-u)
    return seconds


def link(latency_s: float, bytes_per_s: float = float("inf"), **more: Any) -> Timing:
    """Latency + bytes / bandwidth."""
    return Timing(low_s=latency_s, high_s=latency_s, bytes_per_s=bytes_per_s, **more)


NAMED: dict[str, dict[str, Any]] = {
    "paper": {},  # hop ~ U(1e-5, 1e-4) s
    "link": {"low_s": 0.0, "high_s": 0.0},  # latency_s + bytes / bytes_per_s
    "walkman": {"low_s": 0.0, "high_s": 0.0, "mean_s": 1.0},  # hop ~ Exp(1)
    "unit": {"low_s": 1.0, "high_s": 1.0, "compute": 0.0},  # time in hops: each takes a second, visits none
}


def timing_from(timing: "str | Timing | Mapping[str, Any]") -> Timing:
    """A Timing, a name (paper, link, walkman, unit), or a mapping of Timing's fields, `model` being such a name.

    The model `link` also takes `latency_s`, which is low_s and high_s in one.
    """
    if isinstance(timing, Timing):
        return timing
    if not isinstance(timing, str | Mapping):
        raise AmbleError(f"timing={timing!r} was given; give a name, a table of settings or an amble.Timing.")
    values = {"model": timing} if isinstance(timing, str) else dict(timing)
    model = values.pop("model", "paper")
    if model not in NAMED:
        raise unknown("timing", model, NAMED)
    known = [field.name for field in fields(Timing)]
    if model == "link" and "latency_s" in values:
        values["low_s"] = values["high_s"] = values.pop("latency_s")
    for key in values:
        if key not in known:
            raise unknown("timing setting", key, [*known, "model", "latency_s"])
    return Timing(**{**NAMED[model], **values})


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
