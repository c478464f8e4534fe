"""A live run on one machine as a saved Run, so that amble report shows it beside simulated ones.

Its records are the estimates that agents read at their visits, in the order of the one clock they share. Its timing is
what was measured, so that the simulator can be given it.
"""

from typing import Any

import numpy as np

from amble.live.formats.packing import Packing
from amble.live.records import measured
from amble.live.records.record import Record
from amble.network import Network
from amble.problem import Problem
from amble.replay.plain import Plain
from amble.run import Run, with_history
from amble.schedule import Schedule
from amble.simulation import describe, record_hops

Key = tuple[str, int]  # an agent and its visit


def recorded(record: Record) -> dict[Key, int]:
    """The visits whose estimates are records, and how many visits there were up to each."""
    times = {(name, line.number): line.time_s for name, lines in record.visits.items() for line in lines}
    order = sorted(times, key=lambda key: times[key])
    hops = {*record_hops(len(order), None).tolist(), len(order)} - {0}
    return {order[hop - 1]: hop for hop in sorted(hops)}


def as_run(
    problem: Problem, network: Network, method: Any, seed: int, record: Record, visits: Any, models: dict[Key, Any]
) -> Run:
    """`models` are the estimates at the visits that `recorded` names."""
    lines = sorted(
        (line.time_s, line.token, record.agents.index(name), line.hop > 1 and line.giver != name)
        for name, each in record.visits.items()
        for line in each
    )
    begun_s = min(line.time_s - line.compute_s for each in record.visits.values() for line in each)
    time_s, token, agent, moved = (np.array(column) for column in zip(*lines, strict=True))
    wanted = recorded(record)
    consensus = np.stack([np.zeros(problem.dimension), *(models[key] for key in wanted)])
    about = describe(problem)
    run = Run(
        method=method,
        network=network,
        walk="live",
        timing=measured.timing(record),
        seed=seed,
        every=None,
        compute_s=measured.compute_s(record),
        message_bytes=Packing(visits.parcel(0)).size,
        problem={**about, "digest": f"live {about['digest']}"},  # a live run is not resumed by the simulator
        schedule=Schedule(time_s - begun_s, token, agent, moved),
        state=Plain(method, problem, network).start().on_numpy(),
        recorded=np.array([0, *wanted.values()]),
        consensus=consensus,
        local=consensus,
        stopped=next(filter(None, (each.get("cause") for each in record.status.values())), "interrupted"),
    )
    return with_history(run, problem)
