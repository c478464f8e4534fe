"""D-ADMM: decentralised ADMM over the links of a network."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, Number, namespace
from amble.losses.objective import Objective, number_of
from amble.methods.parameters import method

ALONE = 1e-9  # of the curvature: the weight of the prox of an agent without neighbours, which finds its own minimum


class Agent(NamedTuple):
    x: Array
    a: Array  # the dual


@final
@method
class DADMM:
    r"""Each agent agrees with its neighbours through a dual.

        x_i' = argmin_x f_i(x) + rho d_i |x|^2 - x.[rho (d_i x_i + sum_j x_j) - a_i]
             = argmin_x f_i(x) + rho d_i |x - c|^2,   c = (x_i + mean_j x_j - a_i/(rho d_i)) / 2
        a_i' = a_i + rho (d_i x_i' - sum_j x_j')

    where
        j    runs over the d_i neighbours of i
        rho  is the penalty: it sets the speed, not the limit
    What an agent hears in a round is used first for the dual's step, then for the next x.

    Parameters
    ----------
    rho : the penalty, above zero

    Example
    -------
    >>> import amble
    >>> amble.DADMM(rho=0.5)
    DADMM(rho=0.5)
    """

    rho: float = 0.1

    label: ClassVar[str] = "D-ADMM"
    work: ClassVar[dict[str, int]] = {"prox": 1}
    hears: ClassVar[str] = "sum"
    positive: ClassVar[tuple[str, ...]] = ("rho",)

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start, a=0 * start)

    def say(self, agent: Agent) -> Array:
        return agent.x

    def round(self, f: Objective, agent: Agent, heard: Array, degree: Number) -> Agent:
        xp, x, rho = namespace(heard), agent.x, self.rho
        a = agent.a + rho * (degree * x - heard)
        d = xp.maximum(degree, 1.0)
        c = xp.where(degree > 0, (x + heard / d - a / (rho * d)) / 2, x)
        return Agent(f.prox(c, xp.where(degree > 0, 2 * rho * d, ALONE * number_of(f, "curvature", 1.0)), x), a)
