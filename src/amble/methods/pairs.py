"""Averaging in pairs: each agent has a messenger, which goes to a random neighbour and back while the agent computes.

A pair method says only what an agent does when its messenger is back:  pair(f, agent) -> agent.
Messenger i carries the model of agent i to a neighbour j, and brings the change back:

    at j       c = (z - x_j)/2,  x_j' = x_j + c
    at home    x_i' = x_i - c, then pair(f_i, agent i), and z = x_i leaves

If nothing else has happened to x_i in between, both now hold the mean of the two. If something has, the sum of all
models is still the same: what j has got, i gives. No agent waits for another, and none is locked.

The messenger is a token of the engines, one per agent. `schedule.py` has the clock of `networks/errands.py`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

from amble.arrays import Array, either, namespace
from amble.losses.objective import Objective
from amble.methods.protocol import PairMethod

HOME, AWAY, ALONE = 0.0, 1.0, -1.0  # where a messenger is; a single agent has nobody to send it to


class Messenger(NamedTuple):
    cargo: Array  # the model z on the way out, the change c on the way back
    place: Array


@dataclass(frozen=True)
class PairRules:
    """What the engines call (see methods/__init__), for a method that averages in pairs."""

    method: PairMethod

    def message_numbers(self, p: int) -> int:
        return p

    def agent(self, f: Objective, start: Array) -> Any:
        return self.method.agent(f, start)

    def slot(self, start: Array) -> tuple[()]:  # noqa: ARG002 - nothing is remembered about a messenger
        return ()

    def token(self, start: Array, agents: int, m: int) -> Messenger:  # noqa: ARG002 - all start alike, at home
        return Messenger(0 * start, namespace(start).asarray(HOME if agents > 1 else ALONE))

    def visit(self, f: Objective, agent: Any, slot: tuple[()], token: Messenger) -> tuple[Any, tuple[()], Messenger]:
        xp = namespace(token.cargo)

        def host() -> tuple[Any, Messenger]:
            change = (token.cargo - agent.x) / 2
            return agent._replace(x=agent.x + change), Messenger(change, xp.full_like(token.place, HOME))

        def home() -> tuple[Any, Messenger]:
            mine = self.method.pair(f, agent._replace(x=agent.x - token.cargo))
            there = token.place != ALONE
            return mine, Messenger(xp.where(there, mine.x, 0.0), xp.where(there, AWAY, ALONE))

        mine, messenger = either(xp, token.place == AWAY, host, home)
        return mine, slot, messenger

    def estimate(self, token: Messenger) -> Array:
        return token.cargo  # never asked for: the model is the mean of the agents' own
