"""The plain engine: a Python loop over NumPy arrays. It takes any objective and is the compiled engine's check."""

from typing import Any

import numpy as np

from amble.arrays import tree_map
from amble.methods import is_round, rules
from amble.problem import Problem
from amble.replay import State
from amble.schedule import Schedule


class Plain:
    def __init__(self, method: Any, problem: Problem) -> None:
        self.rules = rules(method)
        self.rounds = is_round(method)
        self.problem = problem

    def start(self) -> State:
        zero, N = np.zeros(self.problem.dimension), self.problem.agents
        agents = stack([self.rules.agent(self.problem.objective(i), zero) for i in range(N)])
        if self.rounds:
            return State(agents, (), (), agents.x.sum(axis=0))
        M = self.rules.tokens
        slots = tree_map(lambda a: np.tile(a, (N, M, *(1,) * np.ndim(a))), self.rules.slot(zero))
        tokens = stack([self.rules.token(zero, N)] * M)
        return State(agents, slots, tokens, agents.x.sum(axis=0))

    @np.errstate(over="ignore", invalid="ignore")  # divergence is reported, as by the compiled engine, not warned of
    def advance(self, state: State, schedule: Schedule | None, begin: int, end: int) -> State:
        state = state.on_numpy()
        if self.rounds:
            for _ in range(begin, end):
                state = self._round(state)
            return state
        assert schedule is not None
        x_sum = state.x_sum
        for i, m in zip(schedule.agent[begin:end].tolist(), schedule.token[begin:end].tolist(), strict=True):
            agent = tree_map(lambda a: a[i], state.agents)  # noqa: B023 - used within the loop's turn
            slot = tree_map(lambda a: a[i, m], state.slots)  # noqa: B023
            token = tree_map(lambda a: a[m], state.tokens)  # noqa: B023
            new_agent, new_slot, new_token = self.rules.visit(self.problem.objective(i), agent, slot, token)
            x_sum = x_sum + (new_agent.x - agent.x)
            write(state.agents, i, new_agent)
            write(state.slots, (i, m), new_slot)
            write(state.tokens, m, new_token)
        return state._replace(x_sum=x_sum)

    def _round(self, state: State) -> State:
        N = self.problem.agents
        before = [tree_map(lambda a: a[i], state.agents) for i in range(N)]  # noqa: B023
        heard = sum(self.rules.say(agent) for agent in before) / N
        agents = stack([self.rules.round(self.problem.objective(i), before[i], heard) for i in range(N)])
        return State(agents, (), (), agents.x.sum(axis=0))

    def read(self, state: State) -> tuple[Any, Any]:
        local = state.x_sum / self.problem.agents
        if self.rounds:
            return local, local
        M = self.rules.tokens
        tokens = [tree_map(lambda a: a[m], state.tokens) for m in range(M)]  # noqa: B023
        return sum(self.rules.estimate(token) for token in tokens) / M, local


def stack(trees: list[Any]) -> Any:
    return tree_map(lambda *leaves: np.stack(leaves).astype(np.float64), *trees)


def write(stacked: Any, index: Any, tree: Any) -> None:
    for array, leaf in zip(stacked, tree, strict=True):
        array[index] = leaf
