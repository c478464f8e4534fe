"""WPG: walk proximal gradient, the baseline of the paper's section V (eq. 19)."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, namespace
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array


@final
@method
class WPG:
    r"""A gradient step at the token, averaged into it.

        x_i' = z - alpha grad f_i(z)
        z'   = z + (x_i' - x_i) / N

    where
        alpha  is the learning rate; with a small one z tends to the minimiser of sum_i f_i

    Parameters
    ----------
    alpha : the step, above zero
    tokens : how many walk at once

    Example
    -------
    >>> import amble
    >>> amble.WPG(alpha=0.3)
    WPG(alpha=0.3, tokens=1)
    """

    alpha: float = 0.5
    tokens: int = 1

    label: ClassVar[str] = "WPG"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    weigh: ClassVar[str] = "agents"
    positive: ClassVar[tuple[str, ...]] = ("alpha",)

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start)

    def gift(self, f: Objective, agent: Agent, z: Array) -> tuple[Agent, Array, Array]:  # noqa: ARG002 - the old x is in the slot
        x = z - self.alpha * f.grad(z)
        return Agent(x), x, namespace(z).asarray(0.0)
