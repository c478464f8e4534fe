"""TokenSGD: stochastic gradient descent carried by a token, for models whose loss is not convex."""

from typing import Any, ClassVar, NamedTuple, final

from amble.arrays import Array, namespace
from amble.errors import AmbleError, is_number
from amble.losses.objective import Objective, again
from amble.methods import rounding
from amble.methods.parameters import method

BETA_SQUARES, TINY = 0.999, 1e-8  # Adam's usual constants


class Moments(NamedTuple):
    """What momentum and Adam remember; arrays that the step does not use are empty."""

    u: Array  # the mean of gradients
    v: Array  # the mean of their squares
    steps: Array


class Agent(NamedTuple):
    x: Array  # the model that was last here
    moments: Moments
    left: Array  # r_i; empty where messages are not rounded


class Slot(NamedTuple):
    """An agent remembers nothing about a single token."""


class Token(NamedTuple):
    z: Array
    moments: Moments
    hops: Array


@final
@method
class TokenSGD:
    r"""A few gradient steps of the token's model at every agent. The token is the model: there is no mean over agents.

        w_0     = z + mix (x_i - z)                                   x_i: the model that was last at agent i
        g_e     = grad f_i(w_e) + mu (w_e - w_0)                      e = 0 .. E - 1, each with its own batch
        w_{e+1} = w_e - alpha_k d_e
        z' = x_i' = Q(w_E + r_i),  r_i' = w_E + r_i - z'

    where
        d_e      is g_e (step "plain"), u' = beta u + g_e ("momentum"), or
                 u'/(1 - beta^t) / (sqrt(v'/(1 - 0.999^t)) + 1e-8) with u' = beta u + (1 - beta) g_e and
                 v' = 0.999 v + 0.001 g_e^2 at the t-th step ("adam")
        alpha_k  after k hops of the token: alpha ("constant"), alpha / sqrt(1 + k/span) ("sqrt"), or
                 alpha/2 (1 + cos(pi min(1, k/span))) ("cosine")
        Q        rounds to the type of messages (methods/rounding.py). What it leaves out stays at the agent as r_i, and
                 is added at its next visit, so that no step is lost, however small. Q(w) = w in float64
    u, v and t travel with the token, which makes its messages two or three times as long, or stay at each agent
    (memory). With label skew a token forgets the labels of earlier agents if its steps are large: mu keeps local steps
    near w_0. mix, and several tokens, which meet in the agents' x_i, are for agents with similar data
    (docs/networks.md).

    Parameters
    ----------
    alpha : the learning rate, above zero
    tokens : how many walk at once; the model of a run is their mean
    local_steps : E, the steps at each visit
    step : plain, momentum or adam
    beta : of momentum and adam, below 1
    memory : where u, v and t are kept: token or agent
    schedule : of the learning rate, by the token's hops: constant, sqrt or cosine
    span : of the schedule, in hops of one token
    mu : the weight of the proximal term, zero or more
    mix : from 0 to 1; without it 0 for one token and 1/2 for several
    message : the type of the numbers that travel: float64, float32, float16 or int8. The short ones are for the model
        alone, so momentum and adam then need memory="agent"

    Example
    -------
    >>> import amble
    >>> amble.TokenSGD(alpha=0.1, local_steps=5, step="momentum").message_numbers(100)
    201
    """

    alpha: float = 0.1
    tokens: int = 1
    local_steps: int = 1
    step: str = "plain"
    beta: float = 0.9
    memory: str = "token"
    schedule: str = "constant"
    span: float = 1000.0
    mu: float = 0.0
    mix: float | None = None
    message: str = "float64"

    label: ClassVar[str] = "TokenSGD"
    continues: ClassVar[bool] = True  # live: a copy of the token can be continued without its agents
    positive: ClassVar[tuple[str, ...]] = ("alpha", "span")
    choices: ClassVar[dict[str, tuple[str, ...]]] = {
        "step": ("plain", "momentum", "adam"),
        "memory": ("token", "agent"),
        "schedule": ("constant", "sqrt", "cosine"),
        "message": rounding.TYPES,
    }

    def __post_init__(self) -> None:
        for name, fits, expected in (
            ("beta", 0 <= self.beta < 1, "zero or more, and below 1"),
            ("mu", self.mu >= 0, "zero or more"),
            ("mix", self.mix is None or (is_number(self.mix) and 0 <= self.mix <= 1), "a number from 0 to 1"),
        ):
            if not fits:
                raise AmbleError(f"{self.label}: {name}={getattr(self, name)!r} was given; it must be {expected}.")

        if self.message != "float64" and self.step != "plain" and self.memory == "token":
            raise AmbleError(
                f"{self.label}: message={self.message!r} was given, and the moments of step={self.step!r} "
                'travel too, and need all digits; give memory="agent" as well.'
            )

    @property
    def work(self) -> dict[str, int]:
        return {"grad": self.local_steps}

    def message_numbers(self, p: int) -> int:
        travel = {"plain": 0, "momentum": p, "adam": 2 * p + 1}[self.step]
        return p + 1 + (travel if self.memory == "token" else 0)

    def message_bytes(self, p: int) -> int:
        return rounding.message_bytes(self.message, p) + 8 * (self.message_numbers(p) - p)

    @property
    def short(self) -> dict[str, str]:
        """The part of a token that a live message has in fewer bytes."""
        return {} if self.message == "float64" else {"z": self.message}

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002 - every agent starts alike
        return Agent(start, self._moments(start, "agent"), 0 * (start[:0] if self.message == "float64" else start))

    def slot(self, start: Array) -> Slot:  # noqa: ARG002
        return Slot()

    def token(self, start: Array, agents: int, m: int) -> Token:  # noqa: ARG002 - all tokens start alike
        z = rounding.rounded(start, self.message)
        return Token(z, self._moments(start, "token"), namespace(start).asarray(0.0))

    def visit(self, f: Objective, agent: Agent, slot: Slot, token: Token) -> tuple[Agent, Slot, Token]:
        mix = (0.0 if self.tokens == 1 else 0.5) if self.mix is None else self.mix
        travels = self.memory == "token"
        moments = token.moments if travels else agent.moments
        alpha = self._alpha(token.hops)
        first = w = token.z + mix * (agent.x - token.z)
        for e in range(self.local_steps):
            g = again(f, e).grad(w) + self.mu * (w - first)
            moments, d = self._direction(moments, g)
            w = w - alpha * d
        z, left = w, agent.left
        if self.message != "float64":
            z = rounding.rounded(w + left, self.message)
            left = w + left - z
        agent = Agent(z, agent.moments if travels else moments, left)
        return agent, slot, Token(z, moments if travels else token.moments, token.hops + 1)

    def estimate(self, token: Token) -> Array:
        return token.z

    def _moments(self, start: Array, where: str) -> Moments:
        zero, none = 0 * start, 0 * start[:0]
        kept = self.step if where == self.memory else "plain"
        steps = namespace(start).zeros(1 if kept == "adam" else 0)
        return Moments(none if kept == "plain" else zero, zero if kept == "adam" else none, steps)

    def _direction(self, moments: Moments, g: Array) -> tuple[Moments, Array]:
        beta = self.beta
        if self.step == "plain":
            return moments, g
        if self.step == "momentum":
            u = beta * moments.u + g
            return moments._replace(u=u), u
        u = beta * moments.u + (1 - beta) * g
        v = BETA_SQUARES * moments.v + (1 - BETA_SQUARES) * g * g
        t = moments.steps + 1
        d = u / (1 - beta**t) / (namespace(g).sqrt(v / (1 - BETA_SQUARES**t)) + TINY)
        return Moments(u, v, t), d

    def _alpha(self, hops: Array) -> Any:
        xp = namespace(hops)
        if self.schedule == "sqrt":
            return self.alpha / xp.sqrt(1 + hops / self.span)
        if self.schedule == "cosine":
            return self.alpha / 2 * (1 + xp.cos(xp.pi * xp.minimum(1.0, hops / self.span)))
        return self.alpha
