"""The limits of a run, its schedule up to them, and the hops after which it is recorded."""

from typing import Any

import numpy as np

from amble import methods
from amble.errors import AmbleError, is_number, is_whole
from amble.methods import Method
from amble.networks import walks
from amble.networks.errands import Errands, errands
from amble.networks.network import layers
from amble.problem.problem import Problem
from amble.results.run import Run
from amble.schedule import rounds as clock
from amble.schedule import schedule as scheduling
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule

HOPS_DEFAULT = 10_000
LAPS_MAX = 50_000  # when only a tolerance is given


def limits(
    method: Method,
    problem: Problem,
    hops: int | None,
    rounds: int | None,
    time_s: float | None,
    comm_units: int | None,
    tolerance: float | None,
) -> dict[str, Any]:
    """Where to stop, checked; hops of a round method become rounds."""
    limits = {"hops": hops, "rounds": rounds, "time_s": time_s, "comm_units": comm_units, "tolerance": tolerance}
    for name, value in limits.items():
        count = name in ("hops", "rounds", "comm_units")
        if name == "tolerance" and is_number(value) and value == 0:  # none, as in live runs
            continue
        if value is not None and not (is_number(value) and 0 < value < np.inf and (is_whole(value) or not count)):
            raise AmbleError(f"{name}={value!r} was given; it must be above zero{', a whole number' if count else ''}.")
    N = problem.agents
    if rounds is not None and not methods.is_round(method):
        raise AmbleError(f"{method.label} has no rounds; give hops={rounds * N} for as many visits.")
    if all(value is None for value in (hops, rounds, time_s, comm_units)):
        hops = LAPS_MAX * N if tolerance else HOPS_DEFAULT
    if methods.is_round(method) and hops is not None:
        rounds = min(-(-hops // N), rounds or hops)
    return {"hops": rounds if methods.is_round(method) else hops, "time_s": time_s, "comm_units": comm_units}


def lap_hops(run: Run) -> int:
    """After how many hops a run may compare its model with the one before; a round is a lap of its own."""
    if methods.is_round(run.method):
        return 1
    walk = walks.walk_for(run.walk, run.network, methods.tokens(run.method), run.seed) if run.meets else None
    if not isinstance(walk, walks.Meetings):
        return run.network.agents
    return int(walk.lengths.sum())  # from one meeting to the next: between them the model may stand still for long


def plan(run: Run, stop: dict[str, Any]) -> Schedule | Rounds:
    """The whole schedule up to the limits."""
    parts: dict[str, Any] = {"compute_s": run.compute_s, "message_bytes": run.message_bytes, "seed": run.seed}
    if methods.is_round(run.method):
        links = None if run.method.hears == "mean" else len(run.network.edges)
        parts |= {"links": links, "messages": methods.tokens(run.method)}
        if methods.agrees(run.method):
            parts["layers"] = [len(layer) for layer in layers(run.network)[1:]]
        return round_plan(run, parts, **stop)
    walk, tokens = moves_of(run)
    return scheduling.plan_hops(run.network, walk, run.timing, tokens=tokens, **parts, **stop)


def moves_of(run: Run) -> tuple[walks.Walk | Errands, int]:
    """Where tokens, or messengers, go, and how many there are."""
    tokens = methods.tokens_among(run.method, run.network.agents)
    if methods.is_pair(run.method):
        return errands(run.network), tokens
    return walks.walk_for(run.walk, run.network, tokens, run.seed), tokens


def round_plan(
    run: Run, parts: dict[str, Any], hops: int | None, time_s: float | None, comm_units: int | None
) -> Rounds:
    """As many rounds as the limits allow; all rounds cost the same, so units say how many fit."""
    fit = [] if hops is None else [hops]
    each = methods.round_units(run.method, run.network)
    if comm_units is not None and each == 0 and hops is None and time_s is None:
        raise AmbleError("one agent never communicates, so comm_units cannot be reached; stop by rounds or time_s.")
    if comm_units is not None and each:
        fit.append(comm_units // each)
    count = min(fit) if fit else 1024
    planned = clock.plan_rounds(run.timing, **parts, rounds=count)
    if time_s is None:
        return planned
    while not fit and planned.time_s[-1] <= time_s:
        count *= 2
        if count > scheduling.HOPS_MAX:
            raise AmbleError("rounds take no time in this timing, so time_s is never reached; stop by rounds.")
        planned = clock.plan_rounds(run.timing, **parts, rounds=count)
    return planned.first(int(np.searchsorted(planned.time_s, time_s, side="right")))


def record_hops(hops: int, every: int | None) -> Any:
    """After which hops the model is recorded: every so many, or else each 2 % further than the last.

    Neither depends on where the run ends, so a run that is resumed has the records of one that never stopped.
    """
    if every is not None:
        return np.arange(0, hops + 1, every)
    grid = [0]
    while (following := grid[-1] + max(1, grid[-1] // 50)) <= hops:
        grid.append(following)
    return np.array(grid)


def reason(run: Run, schedule: Schedule | Rounds, stop: dict[str, Any]) -> str:
    """Which limit the schedule ends at: the one that one more hop, or round, would pass."""
    rounds = methods.is_round(run.method)
    if stop["hops"] is not None and schedule.hops == stop["hops"]:
        return "rounds" if rounds else "hops"
    if stop["comm_units"] is None:
        return "time_s"
    if stop["time_s"] is None:
        return "comm_units"
    each = methods.round_units(run.method, run.network) if rounds else 1
    spent = schedule.hops * each if isinstance(schedule, Rounds) else int(schedule.moved.sum())
    return "comm_units" if spent + each > stop["comm_units"] else "time_s"
