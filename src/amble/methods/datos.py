"""DATOS: exact gossip whose agents find the step by backtracking, so that there is nothing to tune."""

from typing import ClassVar, NamedTuple, final

from amble.arrays import Array, Number, namespace, while_loop
from amble.losses.objective import Objective, number_of
from amble.methods.parameters import method

MIX = 0.45  # c, of (0, 1/2): the weight of W
DELTA = 0.9  # of (0, 1]
FIRST = 10.0  # alpha^{-1}, over the mean curvature: too large, so that the first searches decide
UNSAID = 1e-5  # the curvature of an objective of your own that says none: the first step is then 1e6
HALVINGS_MAX = 60  # in one search
ROUNDING = 1e-13  # of |f_i(x)| + |f_i(0)|: a difference of two values that is smaller says nothing


class Agent(NamedTuple):
    x: Array
    d: Array
    g: Array  # grad f_i(x)
    alpha: Array
    x_half: Array
    d_half: Array
    size: Array  # |f_i(0)|


@final
@method
class DATOS:
    r"""Decentralised adaptive three-operator splitting: a step that all agents share, found by local backtracking.

        x^{k+1/2} = V x^k
        d^{k+1/2} = V (grad f(x^k) + d^k)
        alpha_i   = the first of alpha^{k-1}, alpha^{k-1}/2, alpha^{k-1}/4 .. with
                    f_i(x_i^k + s) <= f_i(x_i^k) + grad f_i(x_i^k).s + delta/(2 alpha_i) |s|^2,
                    s = x_i^{k+1/2} - alpha_i d_i^{k+1/2} - x_i^k
        alpha^k   = min_i alpha_i
        x^{k+1}   = x^{k+1/2} - alpha^k d^{k+1/2}
        d^{k+1}   = d^{k+1/2} + (x^k - x^{k+1/2}) / alpha^k - grad f(x^k)

    where
        V      is (1 - c) I + c W, with the network's Metropolis weights W and c = 0.45, so that V is positive definite
        d      sums to zero over agents, and tends to -grad f
        delta  is 0.9
        alpha  starts at ten times the least inverse mean curvature of an agent, and never grows
    This follows the form for smooth losses, with the minimum over all agents and without growing steps, of Kuruzov,
    Scutari, Gasnikov: Achieving linear convergence with parameter-free algorithms in decentralized optimization
    (NeurIPS 2024), and of Chen, Kuruzov, Scutari, Gasnikov (arXiv 2508.01466) without their nonsmooth term. A message
    is x and grad f(x) + d; the minimum takes 2(N - 1) messages more, of one number. A step that changes f_i by no more
    than rounding passes the test.

    Example
    -------
    >>> import amble
    >>> amble.DATOS()
    DATOS()
    """

    label: ClassVar[str] = "DATOS"
    work: ClassVar[dict[str, int]] = {"grad": 1, "value": 2}  # one trial: later ones hardly ever happen
    hears: ClassVar[str] = "mixed"
    positive: ClassVar[tuple[str, ...]] = ()

    def message_numbers(self, p: int) -> int:
        return 2 * p

    def agent(self, f: Objective, start: Array) -> Agent:
        xp, zero = namespace(start), 0 * start
        alpha, size = FIRST / xp.maximum(number_of(f, "curvature", UNSAID), 1e-300), xp.abs(f.value(zero))
        return Agent(start, zero, f.grad(start), alpha, start, zero, size)

    def say(self, agent: Agent) -> Array:
        return namespace(agent.x).concatenate([agent.x, agent.g + agent.d])

    def round(self, f: Objective, agent: Agent, heard: Array, degree: Number) -> Agent:  # noqa: ARG002
        p = agent.x.shape[-1]
        half = (1 - MIX) * self.say(agent) + MIX * heard
        x_half, d_half = half[:p], half[p:]
        agent = agent._replace(x_half=x_half, d_half=d_half)
        return agent._replace(alpha=backtrack(f, agent))

    def offer(self, agent: Agent) -> Number:
        return agent.alpha

    def agreed(self, f: Objective, agent: Agent, least: Number) -> Agent:
        x = agent.x_half - least * agent.d_half
        d = agent.d_half + (agent.x - agent.x_half) / least - agent.g
        return agent._replace(x=x, d=d, g=f.grad(x), alpha=least + 0 * agent.alpha)


def backtrack(f: Objective, agent: Agent) -> Array:
    """The first of alpha, alpha/2, alpha/4 .. that passes the test of DATOS."""
    xp, x, g = namespace(agent.x), agent.x, agent.g
    value = f.value(x)
    rounding = ROUNDING * (xp.abs(value) + agent.size)

    def too_large(state: tuple[Array, Array]) -> Array:
        alpha, tries = state
        move = agent.x_half - alpha * agent.d_half - x
        bound = value + g @ move + DELTA / (2 * alpha) * (move @ move) + rounding
        return (tries < HALVINGS_MAX) & ~(f.value(x + move) <= bound)  # a value that is no number is too large

    def halved(state: tuple[Array, Array]) -> tuple[Array, Array]:
        alpha, tries = state
        return alpha / 2, tries + 1

    alpha: Array = while_loop(xp, too_large, halved, (agent.alpha, 0 * agent.alpha))[0]
    return alpha
