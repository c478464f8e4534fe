"""WADMM: random-walk ADMM, also known as Walkman (the paper's reference for a walk with a dual)."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, namespace
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array
    y: Array  # the dual


@final
@method
class WADMM:
    r"""A prox with a dual: the penalty no longer moves the limit.

        x_i' = argmin_x f_i(x) + beta/2 |x - (z + y_i/beta)|^2          (form "prox")
        x_i' = z + (y_i - grad f_i(x_i)) / beta                         (form "gradient", at the old x_i)
        y_i' = y_i + beta (z - x_i')
        z'   = z + [(x_i' - y_i'/beta) - (x_i - y_i/beta)] / N

    where
        beta  is the penalty: it sets the speed, not the limit
    The gift is x_i - y_i/beta.

    Parameters
    ----------
    beta : the penalty, above zero
    tokens : how many walk at once
    form : prox or gradient

    Example
    -------
    >>> import amble
    >>> amble.WADMM(beta=2.0)
    WADMM(beta=2.0, tokens=1, form='prox')
    """

    beta: float = 1.0
    tokens: int = 1
    form: str = "prox"

    label: ClassVar[str] = "WADMM"
    weigh: ClassVar[str] = "agents"
    positive: ClassVar[tuple[str, ...]] = ("beta",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"form": ("prox", "gradient")}

    @property
    def work(self) -> dict[str, int]:
        return {"prox": 1} if self.form == "prox" else {"grad": 1}

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start, y=0 * start)

    def gift(self, f: Objective, agent: Agent, z: Array) -> tuple[Agent, Array, Array]:
        x, y, beta = agent.x, agent.y, self.beta
        x = f.prox(z + y / beta, beta, x) if self.form == "prox" else z + (y - f.grad(x)) / beta
        y = y + beta * (z - x)
        return Agent(x, y), x - y / beta, namespace(z).asarray(0.0)
