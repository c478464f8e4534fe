"""DIGing: gossip with gradient tracking."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, Number, namespace
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array
    y: Array  # this agent's estimate of the mean gradient
    g: Array  # grad f_i(x)


@final
@method
class DIGing:
    r"""DGD along an estimate of the mean gradient, which agents track together.

        x^{k+1} = W x^k - alpha y^k
        y^{k+1} = W y^k + grad f(x^{k+1}) - grad f(x^k),   y^0 = grad f(x^0)

    where
        W      are the network's Metropolis weights
        y      has the same mean over agents as grad f(x), at every k
        alpha  is the step: it sets the speed, not the limit
    A message is x and y, so twice as long as that of DGD or EXTRA (Nedic, Olshevsky, Shi: Achieving geometric
    convergence for distributed optimization over time-varying graphs, SIAM J. Optim. 2017).

    Parameters
    ----------
    alpha : the step, above zero

    Example
    -------
    >>> import amble
    >>> amble.DIGing(alpha=0.2)
    DIGing(alpha=0.2)
    """

    alpha: float = 0.1

    label: ClassVar[str] = "DIGing"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    hears: ClassVar[str] = "mixed"
    positive: ClassVar[tuple[str, ...]] = ("alpha",)

    def message_numbers(self, p: int) -> int:
        return 2 * p

    def agent(self, f: Objective, start: Array) -> Agent:
        g = f.grad(start)
        return Agent(x=start, y=g, g=g)

    def say(self, agent: Agent) -> Array:
        return namespace(agent.x).concatenate([agent.x, agent.y])

    def round(self, f: Objective, agent: Agent, heard: Array, degree: Number) -> Agent:  # noqa: ARG002
        p = agent.x.shape[-1]
        x = heard[:p] - self.alpha * agent.y
        g = f.grad(x)
        return Agent(x, heard[p:] + g - agent.g, g)
