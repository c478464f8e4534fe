"""A live run on one machine as a saved Run, so that amble report shows it with simulated ones. Its records are the
estimates that agents read at their visits, in the order of their common clock, with the mean of the agents' x_i at that
time. Both come from the replay of the run, which has every agent's data; so do the x_i at its end. Its timing is what
was measured, so that the simulator can use it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array, Indices
from amble.engines import State
from amble.engines.plain import stack
from amble.live.core.packing import Packing
from amble.live.core.short import ShortPacking
from amble.live.core.tracked_visits import TrackedToken
from amble.live.core.visits import GiftVisits
from amble.live.records import measured
from amble.live.records.record import Record
from amble.live.records.replay import Replay
from amble.methods import boards, gifts
from amble.methods.protocol import TokenMethod
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.results.history import with_history
from amble.results.run import Run
from amble.schedule.schedule import Schedule
from amble.simulation.planning import record_hops
from amble.simulation.running import describe

# causes (message.Cause) for which Run.stopped has another word; the others are the same in both
STOPPED_BY_CAUSE: dict[str, str] = {"seconds": "time_s", "asked": "interrupted"}


class Curves:
    """The models at the records, gathered while a run is replayed (Replay.watch)."""

    def __init__(self, record: Record, start: Array) -> None:
        names = record.agents[: record.founders]
        lines = sorted((line.time_s, name, line.number) for name in names for line in record.visits.get(name, ()))
        hop = {(name, number): k + 1 for k, (_, name, number) in enumerate(lines)}
        self.recorded = np.array(sorted({*record_hops(len(lines), None).tolist(), len(lines)}))
        self.consensus = np.tile(start, (len(self.recorded), 1))
        self.local = np.zeros_like(self.consensus)
        self.agents = len(names)
        self.shown = {key: int(at) for key, at in zip(hop, self._at(list(hop.values())), strict=True)
                      if self.recorded[at] == hop[key]}  # fmt: skip
        self.spans: dict[tuple[str, int], tuple[int, int]] = {}  # the records at which the x of a visit is the newest
        for name in names:
            numbers = [line.number for line in record.visits.get(name, ())]
            hops = np.array([hop[name, number] for number in numbers], int)
            # accumulated, so that a clock that was set back cannot put a later visit before an earlier one
            begins = [*self._at(np.maximum.accumulate(hops)).tolist(), len(self.recorded)]
            self.local[: begins[0]] += start / self.agents
            self.spans |= {(name, number): (begins[k], begins[k + 1]) for k, number in enumerate(numbers)}

    def _at(self, hops: ArrayLike) -> Indices:
        """The first record that is not before each of these hops."""
        return np.searchsorted(self.recorded, hops)

    def __call__(self, name: str, number: int, holder: Any) -> None:
        if (name, number) in self.shown:
            self.consensus[self.shown[name, number]] = holder.z
        begin, end = self.spans.get((name, number), (0, 0))
        self.local[begin:end] += holder.agent.x / self.agents


def as_run(
    problem: Problem, network: Network, method: TokenMethod, seed: int, replayed: Replay, curves: Curves, optimum: bool
) -> Run:
    """For a run that was replayed completely and that no agent has joined; `optimum`: whether to compare with it."""
    record = replayed.record
    lines = sorted(
        (line.time_s, line.token, record.agents.index(name), line.hop > 1 and line.giver != name)
        for name, each in record.visits.items()
        for line in each
    )
    begun_s = min(line.time_s - line.compute_s for each in record.visits.values() for line in each)
    time_s, token, agent, moved = (np.array(column) for column in zip(*lines, strict=True))
    about = describe(problem)
    run = Run(
        method=method,
        network=network,
        walk="live",
        timing=measured.timing(record),
        seed=seed,
        every=None,
        compute_s=measured.compute_s(record),
        message_bytes=ShortPacking(Packing(replayed.visits.parcel(0)), replayed.visits.short).size,
        problem={**about, "digest": f"live {about['digest']}"},  # a live run is not resumed by the simulator
        schedule=Schedule(time_s - begun_s, token, agent, moved),
        state=last_state(replayed),
        recorded=curves.recorded,
        consensus=curves.consensus,
        local=curves.local,
        start=replayed.visits.start,
        stopped=stopped(record),
    )
    return with_history(run, problem, optimum)


def stopped(record: Record) -> str:
    """The cause of the end, as Run.stopped names it; "interrupted" if no agent knows one."""
    causes = (status.get("cause") for status in record.status.values())
    cause = next(filter(None, causes), "interrupted")
    return STOPPED_BY_CAUSE.get(cause, cause)


def last_state(replayed: Replay) -> State:
    """What agents, slots and tokens were at the end, as the simulator has them."""
    visits, agents, tokens = replayed.visits, list(replayed.agents.values()), range(replayed.record.tokens)
    shares = [[agent.shares.get(m, (None, visits.share()))[1] for m in tokens] for agent in agents]
    parcels = [replayed.newest[m][1] for m in tokens]
    if not isinstance(visits, GiftVisits):  # a tracked token has its account, and perhaps a recount as well
        ends = [parcel.token.account if isinstance(parcel.token, TrackedToken) else parcel.token for parcel in parcels]
        parts = [agent.holder.agent for agent in agents], shares, ends
    else:
        parts = _gift_state([agent.holder.agent for agent in agents], [parcel.token for parcel in parcels])
    stacked = stack(parts[0])
    slots = stack([stack(row) for row in parts[1]])
    return State(stacked, slots, stack(parts[2]), stacked.x.sum(axis=0), np.array(-1))


def _gift_state(givers: list[Any], tokens: list[Any]) -> tuple[list[Any], list[list[Any]], list[Any]]:
    """One token is an account of its own; several share one, in ledgers."""
    if len(tokens) > 1:
        agents = [boards.Agent(giver.own, giver.given, giver.account.board) for giver in givers]
        slots = [[boards.NoSlot() for _ in tokens] for _ in givers]
        return agents, slots, [boards.Token(token.account.board, token.m) for token in tokens]
    (token,) = tokens
    ledger = gifts.Token(token.account.board.total[0], token.account.board.weight[0])
    return [giver.own for giver in givers], [[giver.given] for giver in givers], [ledger]
