"""PW-ADMM: parallel random-walk ADMM, WADMM with M tokens."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, namespace
from amble.losses.objective import Objective
from amble.methods.gifts import Token
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array
    y: Array  # the dual, one for all tokens
    s: Array  # the sum of this agent's copies


class Slot(NamedTuple):
    copy: Array


@final
@method
class PWADMM:
    r"""WADMM's step at c, with an increment M times as large, because it reaches only one of M tokens.

        x_i'  = argmin_x f_i(x) + beta/2 |x - (c + y_i/beta)|^2
        y_i'  = y_i + beta (c - x_i')
        z_m'  = z_m + (M/N) [(x_i' - y_i'/beta) - (x_i - y_i/beta)],   so that mean_m z_m = mean_i (x_i - y_i/beta)

    where
        c  is the visiting token z_m (form "own"), or the mean of the agent's copies of all tokens (form "copies")
    With its own token it is known to diverge for M > 1 in many settings; tune beta before drawing a curve.

    Parameters
    ----------
    beta : the penalty, above zero
    tokens : how many walk at once
    form : own or copies

    Example
    -------
    >>> import amble
    >>> amble.PWADMM(beta=2.0)
    PWADMM(beta=2.0, tokens=5, form='copies')
    """

    beta: float = 1.0
    tokens: int = 5
    form: str = "copies"

    label: ClassVar[str] = "PW-ADMM"
    work: ClassVar[dict[str, int]] = {"prox": 1}
    positive: ClassVar[tuple[str, ...]] = ("beta",)
    choices: ClassVar[dict[str, tuple[str, ...]]] = {"form": ("copies", "own")}

    def message_numbers(self, p: int) -> int:
        return p

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(x=start, y=0 * start, s=self.tokens * start)

    def slot(self, start: Array) -> Slot:
        return Slot(copy=start)

    def token(self, start: Array, agents: int, m: int) -> Token:  # noqa: ARG002 - all tokens start alike
        return Token(agents * start, namespace(start).asarray(float(agents)))

    def visit(self, f: Objective, agent: Agent, slot: Slot, token: Token) -> tuple[Agent, Slot, Token]:
        beta, M = self.beta, self.tokens
        z = self.estimate(token)
        s = agent.s + (z - slot.copy)
        c = z if self.form == "own" else s / M
        x = f.prox(c + agent.y / beta, beta, agent.x)
        y = agent.y + beta * (c - x)
        token = token._replace(total=token.total + M * ((x - y / beta) - (agent.x - agent.y / beta)))
        z_new = self.estimate(token)
        return Agent(x, y, s + (z_new - z)), Slot(copy=z_new), token

    def estimate(self, token: Token) -> Array:
        return token.total / token.weight
