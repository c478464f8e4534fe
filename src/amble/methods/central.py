"""Central: the paper's eq. 4-5, the penalty method with a server."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, Number
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array


@final
@method
class Central:
    r"""Every round, all agents hear the server and the server hears all agents.

    x_i' = argmin_x f_i(x) + tau/2 |x - z|^2,   i = 1..N      (eq. 4)
    z'   = 1/N sum_i x_i'                                     (eq. 5)

    Parameters
    ----------
    tau : the penalty on the distance to the server's model, above zero

    Example
    -------
    >>> import amble
    >>> amble.Central(tau=0.5)
    Central(tau=0.5)
    """

    tau: float = 1.0

    label: ClassVar[str] = "Central"
    work: ClassVar[dict[str, int]] = {"prox": 1}
    hears: ClassVar[str] = "mean"
    positive: ClassVar[tuple[str, ...]] = ("tau",)
    penalty: ClassVar[str] = "tau"  # of the penalised F (eq. 3)

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start)

    def say(self, agent: Agent) -> Array:
        return agent.x

    def round(self, f: Objective, agent: Agent, heard: Array, degree: Number) -> Agent:  # noqa: ARG002
        return Agent(f.prox(heard, self.tau, agent.x))
