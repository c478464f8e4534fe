"""The plain engine: a Python loop over NumPy arrays. It takes any objective and checks the compiled engine."""

from typing import Any, final

import numpy as np

from amble.arrays import Array, Tree, tree_map
from amble.engines import State, act, first_lost
from amble.losses.objective import Objective, drawn
from amble.methods import Method, RoundMethod, agrees, is_pair, is_round, rules, tokens_among
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule


@final
class Plain:
    def __init__(self, method: Method, problem: Problem, network: Network, initial: Array, meets: bool = False) -> None:
        self.method, self.problem, self.network, self.initial = method, problem, network, initial
        self.rules: Any = rules(method, initial, problem.penalty, meets)

    def start(self) -> State:
        N = self.problem.agents
        first = self.rules.agent
        agents = stack([first(self._objective(i, -1), self.initial) for i in range(N)])
        if is_round(self.method):
            return State(agents, (), (), agents.x.sum(axis=0), np.array(-1))
        rule, M = self.rules, tokens_among(self.method, N)
        slots = tree_map(lambda a: np.tile(a, (N, M, *(1,) * np.ndim(a))), rule.slot(self.initial))
        tokens = stack([rule.token(self.initial, N, m) for m in range(M)])
        return State(agents, slots, tokens, agents.x.sum(axis=0), np.array(-1))

    @np.errstate(
        over="ignore", invalid="ignore"
    )  # divergence is reported, as in the compiled engine, and not a warning
    def advance(self, state: State, schedule: Schedule | Rounds | None, begin: int, end: int) -> State:
        state = state.on_numpy()
        if is_round(self.method):
            for k in range(begin, end):
                state = self._round(self.method, state, k)
            return state
        assert isinstance(schedule, Schedule)
        role = [None] * (end - begin) if schedule.role is None else schedule.role[begin:end].tolist()
        x_sum, lost = state.x_sum, state.lost
        hops = zip(
            range(begin, end), schedule.agent[begin:end].tolist(), schedule.token[begin:end].tolist(), role, strict=True
        )
        for k, i, m, part in hops:
            agent = tree_map(lambda a: a[i], state.agents)  # noqa: B023 - used within the loop's turn
            slot = tree_map(lambda a: a[i, m], state.slots)  # noqa: B023
            token = tree_map(lambda a: a[m], state.tokens)  # noqa: B023
            new_agent, new_slot, new_token = act(self.rules, part, self._objective(i, k), agent, slot, token)
            x_sum = x_sum + (new_agent.x - agent.x)
            lost = first_lost(np, lost, x_sum, k)
            write(state.agents, i, new_agent)
            write(state.slots, (i, m), new_slot)
            write(state.tokens, m, new_token)
        return state._replace(x_sum=x_sum, lost=lost)

    def _objective(self, i: int, hop: int) -> Objective:
        at_hop: Objective = drawn(self.problem.objective(i), hop)
        return at_hop

    def _round(self, method: RoundMethod, state: State, k: int) -> State:
        N = self.problem.agents
        before = [tree_map(lambda a: a[i], state.agents) for i in range(N)]  # noqa: B023
        heard = self._hear(method, np.stack([method.say(agent) for agent in before]))
        degrees = self.network.degrees.astype(np.float64)
        after = [method.round(self._objective(i, k), before[i], heard[i], degrees[i]) for i in range(N)]
        if agrees(method):
            least = np.min([method.offer(agent) for agent in after])
            after = [method.agreed(self._objective(i, k), after[i], least) for i in range(N)]
        agents = stack(after)
        x_sum = agents.x.sum(axis=0)
        return State(agents, (), (), x_sum, first_lost(np, state.lost, x_sum, k))

    def _hear(self, method: RoundMethod, said: Array) -> Array:
        """What each agent hears, one row each."""
        network = self.network
        if method.hears == "mean":
            return np.broadcast_to(said.mean(axis=0), said.shape)
        across, own = network.metropolis()
        if method.hears == "sum":
            across, own = np.ones_like(across), np.zeros_like(own)
        heard: Array = own[:, None] * said
        linked = np.flatnonzero(network.degrees)
        if len(linked):
            heard[linked] += np.add.reduceat(across[:, None] * said[network.neighbours], network.starts[linked])
        return heard

    def read(self, state: State) -> tuple[Array, Array]:
        local = state.x_sum / self.problem.agents
        if is_round(self.method):
            N = self.problem.agents
            said = [self.method.say(tree_map(lambda a: a[i], state.agents)) for i in range(N)]  # noqa: B023
            return np.mean(said, axis=0)[: len(self.initial)], local
        if is_pair(self.method):
            return local, local
        rule, M = self.rules, self.method.tokens
        tokens = [tree_map(lambda a: a[m], state.tokens) for m in range(M)]  # noqa: B023
        return sum((rule.estimate(token) for token in tokens), np.zeros_like(self.initial)) / M, local


def stack(trees: list[Tree]) -> Tree:
    return tree_map(lambda *leaves: np.stack(leaves).astype(np.float64), *trees)


def write(stacked: Tree, index: int | tuple[int, int], tree: Tree) -> None:
    if isinstance(stacked, tuple):
        for branch, new in zip(stacked, tree, strict=True):
            write(branch, index, new)
    else:
        stacked[index] = tree
