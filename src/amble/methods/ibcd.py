"""I-BCD: incremental block-coordinate descent (the paper's eq. 6-8 and algorithm 1)."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, namespace
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array


@final
@method
class IBCD:
    r"""One block of F(x, z) = sum_i f_i(x_i) + tau/2 sum_i |x_i - z|^2 at a time.

        x_i' = argmin_x f_i(x) + tau/2 |x - z|^2      (eq. 7)
        z'   = z + (x_i' - x_i) / N                   (eq. 8)

    where
        z    travels; with one token it stays the mean of all x_i
        tau  is the penalty: larger brings x_i nearer to z, and the limit nearer to the optimum

    Parameters
    ----------
    tau : the penalty on the distance to the token, above zero
    tokens : how many walk at once

    Example
    -------
    >>> import amble
    >>> amble.IBCD(tau=0.5)
    IBCD(tau=0.5, tokens=1)
    """

    tau: float = 1.0
    tokens: int = 1

    label: ClassVar[str] = "I-BCD"
    work: ClassVar[dict[str, int]] = {"prox": 1}
    weigh: ClassVar[str] = "agents"
    positive: ClassVar[tuple[str, ...]] = ("tau",)
    penalty: ClassVar[str] = "tau"  # of the penalised F (eq. 3)

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start)

    def gift(self, f: Objective, agent: Agent, z: Array) -> tuple[Agent, Array, Array]:
        x = f.prox(z, self.tau, agent.x)
        return Agent(x), x, namespace(z).asarray(0.0)
