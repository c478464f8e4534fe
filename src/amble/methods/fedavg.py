"""FedAvg: federated averaging, with a server and full participation."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, Number, namespace
from amble.losses.objective import Objective, again, number_of
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array
    share: Array


@final
@method
class FedAvg:
    r"""A few gradient steps at every agent, then the mean.

        x_i' = E steps  x <- x - alpha grad f_i(x) / share_i  from z
        z'   = 1/N sum_i share_i x_i'

    where
        share_i  is agent i's part in the sum: 1, or N d_i / D for weights="rows", which is FedAvg's mean by rows
        E        is local_steps; for E > 1 and agents with different data the limit is not the optimum

    Parameters
    ----------
    alpha : the step, above zero
    local_steps : how many steps an agent makes in a round

    Example
    -------
    >>> import amble
    >>> amble.FedAvg(local_steps=3)
    FedAvg(alpha=0.1, local_steps=3)
    """

    alpha: float = 0.1
    local_steps: int = 5

    label: ClassVar[str] = "FedAvg"
    hears: ClassVar[str] = "mean"
    positive: ClassVar[tuple[str, ...]] = ("alpha",)

    @property
    def work(self) -> dict[str, int]:
        return {"grad": self.local_steps}

    def agent(self, f: Objective, start: Array) -> Agent:
        return Agent(x=start, share=namespace(start).asarray(number_of(f, "share", 1.0)) * 1.0)

    def say(self, agent: Agent) -> Array:
        return agent.share * agent.x

    def round(self, f: Objective, agent: Agent, heard: Array, degree: Number) -> Agent:  # noqa: ARG002
        x = heard
        for step in range(self.local_steps):
            x = x - self.alpha * again(f, step).grad(x) / agent.share
        return Agent(x, agent.share)
