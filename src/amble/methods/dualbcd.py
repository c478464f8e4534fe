"""Dual-BCD: block coordinate descent on the dual, with tokens as nodes of their own (Hendrikx)."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, Number, namespace
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Agent(NamedTuple):
    x: Array  # the start, until the first visit
    z: Array  # where h was last differentiated
    g: Array  # grad h(z)
    fresh: Number  # one until the first visit


class Token(NamedTuple):
    t: Array
    agents: Number  # N, which is part of the settings and need not be sent


@final
@method
class DualBCD:
    r"""The token and the agent take their mean, and the agent a coordinate step on the dual.

        x_i, t <- (x_i + t)/2
        z_i' = (1 - rho_i) z_i + rho_i x_i,   x_i' = x_i - (grad h_i(z_i') - grad h_i(z_i))/sigma

    where
        h_i    is f_i - mu/2 |x|^2, so mu must be at most the curvature of the flattest f_i
        sigma  is mu N/(N + M): the quadratic parts of all f_i, divided among the N agents and the M tokens
        rho_i  is sigma/(sigma + L_i), L_i the smoothness of h_i
    At every visit sum_i x_i + sum_m t_m = -1/sigma sum_i grad h_i(z_i), so where all agree, the sum of all f_i has no
    slope. Both lines are coordinate steps that never lower the dual, in whatever order tokens come (Hendrikx: A
    principled framework for the design and analysis of token algorithms, arXiv 2205.15015, in its plain form; there,
    agents take dual steps at random times of their own, here once per visit).

    Parameters
    ----------
    mu : the curvature that every f_i has at least, above zero. Too small is slow, too large may diverge
    tokens : how many walk at once

    Example
    -------
    >>> import amble
    >>> amble.DualBCD(mu=0.05)
    DualBCD(mu=0.05, tokens=1)
    """

    mu: float = 0.1
    tokens: int = 1

    label: ClassVar[str] = "Dual-BCD"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    needs: ClassVar[tuple[str, ...]] = ("smoothness",)
    positive: ClassVar[tuple[str, ...]] = ("mu",)

    def agent(self, f: Objective, start: Array) -> Agent:
        return Agent(start, start, f.grad(start) - self.mu * start, namespace(start).asarray(1.0))

    def slot(self, start: Array) -> tuple[()]:  # noqa: ARG002 - nothing is remembered about a token
        return ()

    def token(self, start: Array, agents: int, m: int) -> Token:  # noqa: ARG002 - all tokens start alike
        return Token(start, namespace(start).asarray(float(agents)))

    def visit(self, f: Objective, agent: Agent, slot: tuple[()], token: Token) -> tuple[Agent, tuple[()], Token]:
        xp, N, M = namespace(token.t), token.agents, self.tokens
        sigma = self.mu * N / (N + M)
        x = xp.where(agent.fresh > 0, -M / N * agent.x - agent.g / sigma, agent.x)
        t = (x + token.t) / 2
        L = xp.maximum(f.smoothness - self.mu, 0.0)
        rho = sigma / (sigma + L)
        z = (1 - rho) * agent.z + rho * t
        g = f.grad(z) - self.mu * z
        return Agent(t - (g - agent.g) / sigma, z, g, 0 * agent.fresh), slot, Token(t, N)

    def estimate(self, token: Token) -> Array:
        return token.t

    def message_numbers(self, p: int) -> int:
        return p
