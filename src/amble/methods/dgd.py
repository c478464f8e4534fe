"""DGD: decentralised gradient descent, the oldest of the gossip methods."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, Number
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array


@final
@method
class DGD:
    r"""Average with the neighbours, then a gradient step on the agent's own loss.

        x_i' = sum_j W_ij x_j - alpha grad f_i(x_i)

    where
        W      are the network's Metropolis weights
        alpha  is the step: a constant one stops at a distance from the optimum that shrinks with it

    Parameters
    ----------
    alpha : the step, above zero

    Example
    -------
    >>> import amble
    >>> amble.DGD(alpha=0.2)
    DGD(alpha=0.2)
    """

    alpha: float = 0.1

    label: ClassVar[str] = "DGD"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    hears: ClassVar[str] = "mixed"
    positive: ClassVar[tuple[str, ...]] = ("alpha",)

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start)

    def say(self, agent: Agent) -> Array:
        return agent.x

    def round(self, f: Objective, agent: Agent, heard: Array, degree: Number) -> Agent:  # noqa: ARG002
        return Agent(heard - self.alpha * f.grad(agent.x))
