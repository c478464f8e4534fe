"""AD-PSGD: asynchronous gossip in pairs."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array
    g: Array  # the gradient that the agent is computing, at the x with which it began


@final
@method
class ADPSGD:
    r"""Each agent, at its own pace, averages with a random neighbour while it computes a gradient, then steps.

        x_i, x_j <- (x_i + x_j)/2,   x_i <- x_i - alpha grad f_i(x_i as it was when agent i began)

    where
        j      is a neighbour of i, chosen at random each time
        alpha  is the step: a constant one stops at a distance from the optimum that shrinks with it
    Nobody waits for a slow agent; a fast one takes more steps, and so its loss counts more (Lian, Zhang, Zhang, Liu:
    Asynchronous decentralized parallel stochastic gradient descent, ICML 2018). Averaging is without locks here:
    methods/pairs.py.

    Parameters
    ----------
    alpha : the step, above zero

    Example
    -------
    >>> import amble
    >>> amble.ADPSGD(alpha=0.2)
    ADPSGD(alpha=0.2)
    """

    alpha: float = 0.1

    label: ClassVar[str] = "AD-PSGD"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    positive: ClassVar[tuple[str, ...]] = ("alpha",)

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start, g=0 * start)

    def pair(self, f: Objective, agent: Agent) -> Agent:
        x = agent.x - self.alpha * agent.g
        return Agent(x, f.grad(x))
