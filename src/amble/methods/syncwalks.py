"""The synchronous form with M walks (the paper's eq. 11); with M = 1 it is eq. 4-5, the form with a server."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, Number
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array


@final
@method
class SyncWalks:
    r"""Every round, all agents hear all tokens and all tokens hear all agents.

        x_i' = argmin_x f_i(x) + tau/2 sum_m |x - z_m|^2,   i = 1..N      (eq. 11a)
        z_m' = 1/N sum_i x_i',                              m = 1..M      (eq. 11b)

    All z_m are equal from the first round on, so sum_m |x - z_m|^2 = M |x - z|^2 with z the mean of the agents' x.

    Parameters
    ----------
    tau : the penalty on the distance to each token, above zero
    tokens : how many there are

    Example
    -------
    >>> import amble
    >>> amble.SyncWalks(tokens=3)
    SyncWalks(tau=0.1, tokens=3)
    """

    tau: float = 0.1
    tokens: int = 5

    label: ClassVar[str] = "SyncWalks"
    work: ClassVar[dict[str, int]] = {"prox": 1}
    hears: ClassVar[str] = "mean"
    positive: ClassVar[tuple[str, ...]] = ("tau",)
    penalty: ClassVar[str] = "tau"  # of the penalised F (eq. 10)

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start)

    def say(self, agent: Agent) -> Array:
        return agent.x

    def round(self, f: Objective, agent: Agent, heard: Array, degree: Number) -> Agent:  # noqa: ARG002
        return Agent(f.prox(heard, self.tau * self.tokens, agent.x))
