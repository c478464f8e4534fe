"""The smallest methods, for the fault simulator: an error of one gift in an account is visible at once."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np


class Tally(NamedTuple):
    x: Any  # visits so far


@dataclass(frozen=True)
class Mean:
    """Every agent gives a number, and the model is the mean of the last ones. The number changes at each of the first
    `settle` visits, so that an older gift cannot be taken for a newer one. Then it stays the same, so that the model
    can be compared exactly.
    """

    tokens: int = 1
    settle: int = 10
    weigh: str = "scalar"
    label: ClassVar[str] = "Mean"

    def agent(self, f: Any, start: Any) -> Tally:  # noqa: ARG002
        return Tally(0 * start)

    def gift(self, f: float, agent: Tally, z: Any) -> tuple[Tally, Any, Any]:  # noqa: ARG002
        again, weight = agent.x + 1.0, 1.0 if self.weigh == "scalar" else 0.0
        return Tally(again), np.array([_number(f, float(again[0]), self.settle)]), np.asarray(weight)


@dataclass(frozen=True)
class TrackedMean:
    """The same numbers with API-BCD's bookkeeping: each token is the mean of what it was given."""

    tokens: int = 1
    settle: int = 10
    weigh: ClassVar[str] = "agents"
    token_rule: ClassVar[str] = "tracked"
    label: ClassVar[str] = "Mean, tracked"

    def local(self, f: float, x: Any, s: Any) -> Any:  # noqa: ARG002
        visits = round(1 / float(x[0] - f)) if x[0] > f else 0  # which the number itself tells
        return np.array([_number(f, visits + 1, self.settle)])


def _number(f: float, visits: float, settle: int) -> float:
    return f + 1 / min(visits, settle)
