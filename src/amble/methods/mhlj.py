"""MHLJ: gradient steps of a token whose walk prefers agents with steep losses, and jumps (Liu, El Rouayheb, Dwyer)."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array
from amble.errors import AmbleError
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array  # the model that it sent on last


@final
@method
class MHLJ:
    r"""Gradient steps of a token that visits agents in proportion to their smoothness, but for jumps.

        z' = z - gamma/L_i grad f_i(z)

    where
        L_i    is the smoothness of f_i, so an agent with a steep loss is visited often and takes short steps
        walk   to j with the chance 1/d_i min(1, d_i L_j / (d_j L_i)), d_i the degree; or else it stays. Agents in the
               long run count by L_i, times the step gamma/L_i: equally
        jumps  with the chance p_J, instead, d steps to random neighbours, of which only the last ends in a visit;
               d = 1 .. r with chances in proportion to (1 - p_d)^d. They free a token that is trapped among few agents,
               and change how often agents are visited: the limit is the minimiser of sum_i (s_i / L_i) f_i, s_i the
               share of visits
        limit  a constant gamma stops at a distance that shrinks with it
    The paper (arXiv 2407.20611, 2604.12260) has the mean of all L_i in the step, which no agent knows: here it is part
    of gamma. The method has this walk of its own, whatever walk= says.

    Parameters
    ----------
    gamma : the step, in units of 1/L_i, above zero; from 2 on it diverges
    p_J : the chance of a jump, from 0 (none) to below 1
    p_d : the chance that a jump ends with a step, above 0, at most 1
    r : steps of the longest jump
    tokens : how many walk at once; the model of a run is their mean

    Example
    -------
    >>> import amble
    >>> amble.MHLJ(gamma=0.2)
    MHLJ(gamma=0.2, p_J=0.1, p_d=0.5, r=3, tokens=1)
    """

    gamma: float = 0.1
    p_J: float = 0.1
    p_d: float = 0.5
    r: int = 3
    tokens: int = 1

    label: ClassVar[str] = "MHLJ"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    needs: ClassVar[tuple[str, ...]] = ("smoothness",)
    positive: ClassVar[tuple[str, ...]] = ("gamma",)

    def __post_init__(self) -> None:
        allowed = {
            "p_J": (0 <= self.p_J < 1, "a chance from 0 to below 1"),
            "p_d": (0 < self.p_d <= 1, "a chance above 0, at most 1"),
            "r": (1 <= self.r <= 1000, "a whole number of steps from 1 to 1000"),
        }
        for name, (fits, expected) in allowed.items():
            if not fits:
                raise AmbleError(f"MHLJ: {name}={getattr(self, name)!r} was given; it must be {expected}.")

    @property
    def jumps(self) -> tuple[float, float, int]:
        return self.p_J, self.p_d, self.r

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start)

    def slot(self, start: Array) -> tuple[()]:  # noqa: ARG002 - nothing is remembered about a token
        return ()

    def token(self, start: Array, agents: int, m: int) -> Array:  # noqa: ARG002 - all tokens start alike
        return start

    def visit(self, f: Objective, agent: Agent, slot: tuple[()], token: Array) -> tuple[Agent, tuple[()], Array]:  # noqa: ARG002 - the old x says nothing
        z = token - self.gamma / f.smoothness * f.grad(token)
        return Agent(z), slot, z

    def estimate(self, token: Array) -> Array:
        return token

    def message_numbers(self, p: int) -> int:
        return p
