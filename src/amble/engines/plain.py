"""The plain engine: a Python loop over NumPy arrays. It takes any objective and checks the compiled engine."""

from typing import Any

import numpy as np

from amble.arrays import tree_map
from amble.engines import State, first_lost
from amble.methods import is_round, rules
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.schedule.schedule import Schedule


class Plain:
    def __init__(self, method: Any, problem: Problem, network: Network, initial: Any) -> None:
        self.method, self.rules, self.network = method, rules(method, initial), network
        self.initial = initial
        self.rounds = is_round(method)
        self.problem = problem

    def start(self) -> State:
        N = self.problem.agents
        agents = stack([self.rules.agent(self.problem.objective(i), self.initial) for i in range(N)])
        if self.rounds:
            return State(agents, (), (), agents.x.sum(axis=0), np.array(-1))
        M = self.method.tokens
        slots = tree_map(lambda a: np.tile(a, (N, M, *(1,) * np.ndim(a))), self.rules.slot(self.initial))
        tokens = stack([self.rules.token(self.initial, N, m) for m in range(M)])
        return State(agents, slots, tokens, agents.x.sum(axis=0), np.array(-1))

    @np.errstate(over="ignore", invalid="ignore")  # divergence is reported, as by the compiled engine, not warned of
    def advance(self, state: State, schedule: Schedule | None, begin: int, end: int) -> State:
        state = state.on_numpy()
        if self.rounds:
            for k in range(begin, end):
                state = self._round(state, k)
            return state
        assert schedule is not None
        x_sum, lost = state.x_sum, state.lost
        hops = zip(
            range(begin, end), schedule.agent[begin:end].tolist(), schedule.token[begin:end].tolist(), strict=True
        )
        for k, i, m in hops:
            agent = tree_map(lambda a: a[i], state.agents)  # noqa: B023 - used within the loop's turn
            slot = tree_map(lambda a: a[i, m], state.slots)  # noqa: B023
            token = tree_map(lambda a: a[m], state.tokens)  # noqa: B023
            new_agent, new_slot, new_token = self.rules.visit(self.problem.objective(i), agent, slot, token)
            x_sum = x_sum + (new_agent.x - agent.x)
            lost = first_lost(np, lost, x_sum, k)
            write(state.agents, i, new_agent)
            write(state.slots, (i, m), new_slot)
            write(state.tokens, m, new_token)
        return state._replace(x_sum=x_sum, lost=lost)

    def _round(self, state: State, k: int) -> State:
        N = self.problem.agents
        before = [tree_map(lambda a: a[i], state.agents) for i in range(N)]  # noqa: B023
        heard = self._hear(np.stack([self.rules.say(agent) for agent in before]))
        degrees = self.network.degrees.astype(np.float64)
        agents = stack([self.rules.round(self.problem.objective(i), before[i], heard[i], degrees[i]) for i in range(N)])
        x_sum = agents.x.sum(axis=0)
        return State(agents, (), (), x_sum, first_lost(np, state.lost, x_sum, k))

    def _hear(self, said: Any) -> Any:
        """What each agent hears, one row each."""
        network = self.network
        if self.rules.hears == "mean":
            return np.broadcast_to(said.mean(axis=0), said.shape)
        across, own = network.metropolis()
        if self.rules.hears == "sum":
            across, own = np.ones_like(across), np.zeros_like(own)
        heard = own[:, None] * said
        np.add.at(
            heard, np.repeat(np.arange(network.agents), network.degrees), across[:, None] * said[network.neighbours]
        )
        return heard

    def read(self, state: State) -> tuple[Any, Any]:
        local = state.x_sum / self.problem.agents
        if self.rounds:
            N = self.problem.agents
            said = [self.rules.say(tree_map(lambda a: a[i], state.agents)) for i in range(N)]  # noqa: B023
            return sum(said) / N, local
        M = self.method.tokens
        tokens = [tree_map(lambda a: a[m], state.tokens) for m in range(M)]  # noqa: B023
        return sum(self.rules.estimate(token) for token in tokens) / M, local


def stack(trees: list[Any]) -> Any:
    return tree_map(lambda *leaves: np.stack(leaves).astype(np.float64), *trees)


def write(stacked: Any, index: Any, tree: Any) -> None:
    if isinstance(stacked, tuple):
        for branch, new in zip(stacked, tree, strict=True):
            write(branch, index, new)
    else:
        stacked[index] = tree
