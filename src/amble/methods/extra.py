"""EXTRA: the exact first-order gossip method."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, Number
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array
    half: Array  # (I + W)/2 x, of the round before
    g: Array  # grad f_i, of the round before


@final
@method
class EXTRA:
    r"""DGD with a correction that removes its error.

        x^1     = W x^0 - alpha grad f(x^0)
        x^{k+2} = (I + W) x^{k+1} - (I + W)/2 x^k - alpha [grad f(x^{k+1}) - grad f(x^k)]

    where
        W      are the network's Metropolis weights
        alpha  is the step: it sets the speed, not the limit
    The second line gives the first with x^0 for (I + W)/2 x^{-1} and zero for grad f(x^{-1}).

    Parameters
    ----------
    alpha : the step, above zero

    Example
    -------
    >>> import amble
    >>> amble.EXTRA(alpha=0.2)
    EXTRA(alpha=0.2)
    """

    alpha: float = 0.1

    label: ClassVar[str] = "EXTRA"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    hears: ClassVar[str] = "mixed"
    positive: ClassVar[tuple[str, ...]] = ("alpha",)

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start, half=start, g=0 * start)

    def say(self, agent: Agent) -> Array:
        return agent.x

    def round(self, f: Objective, agent: Agent, heard: Array, degree: Number) -> Agent:  # noqa: ARG002
        g = f.grad(agent.x)
        both = agent.x + heard
        return Agent(both - agent.half - self.alpha * (g - agent.g), both / 2, g)
