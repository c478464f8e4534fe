"""A method of one's own, written as a user would."""

from typing import Any, ClassVar, NamedTuple

import amble
from amble.arrays import namespace


class Agent(NamedTuple):
    x: Any


@amble.method
class Steps:
    """Some gradient steps at the token, averaged into it: settings of every kind."""

    alpha: float = 0.1
    steps: int = 2
    halve: bool = False
    order: str = "forwards"
    shifts: tuple[float, ...] = (0.0,)
    tokens: int = 1

    work: ClassVar[dict[str, int]] = {"grad": 2}
    weigh: ClassVar[str] = "agents"
    positive: ClassVar[tuple[str, ...]] = ("alpha",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"order": ("forwards", "backwards")}

    def agent(self, f, start):  # noqa: ARG002
        return Agent(start)

    def gift(self, f, agent, z):  # noqa: ARG002
        x, size = z, self.alpha / 2 if self.halve else self.alpha
        for k in range(self.steps):
            x = x - size * (self.steps - k if self.order == "backwards" else k + 1) * f.grad(x)
        return Agent(x + sum(self.shifts)), x, namespace(z).asarray(0.0)


@amble.method
class Gossip:
    """DGD with half of what is heard."""

    alpha: float = 0.1

    work: ClassVar[dict[str, int]] = {"grad": 1}
    hears: ClassVar[str] = "mean"

    def agent(self, f, start):  # noqa: ARG002
        return Agent(start)

    def say(self, agent):
        return agent.x

    def round(self, f, agent, heard, degree):  # noqa: ARG002
        return Agent((agent.x + heard) / 2 - self.alpha * f.grad(agent.x))
