"""simulate: make the schedule, replay it, record; resume: go on with a run as if it had never stopped."""

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from amble import (
    methods,
    network as networks,
    replay,
    rounds as clock,
    schedule as scheduling,
    timing as timings,
    walk as walks,
)
from amble.errors import AmbleError
from amble.network import Network
from amble.problem import Problem
from amble.progress import Meter, interruptible
from amble.rounds import Rounds
from amble.run import Run, with_history
from amble.schedule import Schedule

HOPS_DEFAULT = 10_000
LAPS_MAX = 1_000  # when only a tolerance is given
RECORDS_DEFAULT = 200
PIECE_S = 0.2  # what is computed between two looks at the progress bar and at Ctrl-C


def simulate(
    method: Any,
    problem: Problem,
    network: Network | None = None,
    *,
    hops: int | None = None,
    rounds: int | None = None,
    time_s: float | None = None,
    comm_units: int | None = None,
    tolerance: float | None = None,
    walk: Any = "cycle",
    timing: Any = "paper",
    seed: int = 0,
    every: int | None = None,
    engine: str = "auto",
    progress: bool = True,
) -> Run:
    """Run a method on a problem over a network, in virtual time.

    It stops at the first of: hops (visits), rounds (of a round method; a round is N visits), time_s (virtual seconds),
    comm_units (link crossings), tolerance (the model moved less than that, relative to its length, over a lap of N
    visits). With none given it stops after 10,000 hops. The model is recorded every `every` hops and at the end.
    Ctrl-C ends the run early and returns what there is.
    """
    methods.check(method, problem.agents)
    if network is None:
        network = (
            networks.random(problem.agents, 0.7, seed) if problem.agents > 3 else networks.complete(problem.agents)
        )
    if network.agents != problem.agents:
        raise AmbleError(
            f"the network has {network.agents} agents and the problem {problem.agents}; make them the same."
        )
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise AmbleError(f"seed={seed!r} was given; it must be a whole number, zero or more.")
    timing = timings.make(timing)
    rules = methods.rules(method)
    begun = Run(
        method=method,
        network=network,
        walk=walk,
        timing=timing,
        seed=int(seed),
        every=0,
        compute_s=timings.compute_seconds(timing, rules, problem),
        message_bytes=8 * rules.message_numbers(problem.dimension),
        problem=describe(problem),
        schedule=Rounds(np.zeros(0)),
        state=(),  # type: ignore[arg-type] # set by the engine below
        recorded=np.zeros(0, np.int64),
        consensus=np.zeros((0, problem.dimension)),
        local=np.zeros((0, problem.dimension)),
    )
    stop = limits(method, problem, hops, rounds, time_s, comm_units, tolerance)
    return _go(begun, problem, stop, every, tolerance, engine, progress)


def resume(
    run: Run,
    problem: Problem,
    *,
    hops: int | None = None,
    rounds: int | None = None,
    time_s: float | None = None,
    comm_units: int | None = None,
    tolerance: float | None = None,
    engine: str = "auto",
    progress: bool = True,
) -> Run:
    """Go on with a run up to new limits, counted from its very start; the result is that of one unbroken run."""
    if run.problem["digest"] != problem.digest:
        raise AmbleError(
            f"this run was made on {run.problem['name']!r} with other data or settings than the problem given; "
            "make the problem again as it was then."
        )
    stop = limits(run.method, problem, hops, rounds, time_s, comm_units, tolerance)
    return _go(run, problem, stop, run.every, tolerance, engine, progress)


def describe(problem: Problem) -> dict[str, Any]:
    """What a run says about its problem."""
    about = {"name": problem.name, "task": problem.task, "agents": problem.agents, "dimension": problem.dimension}
    return {**about, "digest": problem.digest, "settings": problem.settings}


def limits(
    method: Any,
    problem: Problem,
    hops: int | None,
    rounds: int | None,
    time_s: float | None,
    comm_units: int | None,
    tolerance: float | None,
) -> dict[str, Any]:
    """Where to stop, checked; hops of a round method become rounds."""
    given = {"hops": hops, "rounds": rounds, "time_s": time_s, "comm_units": comm_units, "tolerance": tolerance}
    for name, value in given.items():
        if value is not None and not value > 0:
            raise AmbleError(f"{name}={value} was given; it must be above zero.")
    N = problem.agents
    if rounds is not None and not methods.is_round(method):
        raise AmbleError(f"{method.label} walks and has no rounds; give hops={rounds * N} for as many visits.")
    if all(value is None for value in (hops, rounds, time_s, comm_units)):
        hops = HOPS_DEFAULT if tolerance is None else LAPS_MAX * max(N, 1000)
    if methods.is_round(method) and hops is not None:
        rounds = min(-(-hops // N), rounds or HOPS_DEFAULT * N)
    return {"hops": rounds if methods.is_round(method) else hops, "time_s": time_s, "comm_units": comm_units}


def plan(run: Run, stop: dict[str, Any]) -> Schedule | Rounds:
    """The whole schedule up to the limits."""
    parts: dict[str, Any] = {"compute_s": run.compute_s, "message_bytes": run.message_bytes, "seed": run.seed}
    if methods.is_round(run.method):
        return round_plan(run, parts, **stop)
    walk = walks.make(run.walk, run.network, run.method.tokens, run.seed)
    return scheduling.make(run.network, walk, run.timing, tokens=run.method.tokens, **parts, **stop)


def round_plan(
    run: Run, parts: dict[str, Any], hops: int | None, time_s: float | None, comm_units: int | None
) -> Rounds:
    """As many rounds as the limits allow; rounds cost alike, so units say how many fit."""
    fit = [] if hops is None else [hops]
    if comm_units is not None:
        fit.append(comm_units // run.method.round_units(run.network.agents))
    count = min(fit) if fit else 1024
    found = clock.make(run.timing, **parts, rounds=count)
    if time_s is None:
        return found
    while not fit and found.time_s[-1] <= time_s:
        count *= 2
        if count > scheduling.HOPS_MAX:
            raise AmbleError("rounds take no time in this timing, so time_s is never reached; stop by rounds.")
        found = clock.make(run.timing, **parts, rounds=count)
    return found.first(int(np.searchsorted(found.time_s, time_s, side="right")))


def _go(
    run: Run,
    problem: Problem,
    stop: dict[str, Any],
    every: int | None,
    tolerance: float | None,
    engine: str,
    show: bool,
) -> Run:
    """Replay from where the run stands to the end of the schedule, recording as it goes."""
    machine = replay.make(engine, run.method, problem)
    schedule = plan(run, stop)
    rounds = methods.is_round(run.method)
    lap = 1 if rounds else problem.agents
    if every is None or every == 0:
        every = lap if tolerance is not None else max(1, -(-schedule.hops // RECORDS_DEFAULT))
    if every < 1:
        raise AmbleError(f"every={every} was given; records are at least one hop apart.")
    fresh = len(run.recorded) == 0
    state = machine.start() if fresh else run.state
    on_grid = run.recorded % every == 0 if not fresh else np.zeros(0, bool)
    recorded = run.recorded[on_grid].tolist()
    consensus, local = list(run.consensus[on_grid]), list(run.local[on_grid])
    hop = int(run.recorded[-1]) if not fresh else 0
    if schedule.hops < hop:
        raise AmbleError(f"the run already stands at hop {hop}; give a limit beyond it.")

    def record() -> None:
        model, mean_x = machine.read(state)
        recorded.append(hop)
        consensus.append(np.array(model))
        local.append(np.array(mean_x))

    if fresh:
        record()
    stopped = "rounds" if rounds else "hops"
    for name in ("time_s", "comm_units"):
        if stop[name] is not None and schedule.hops < (stop["hops"] or np.inf):
            stopped = name
    meter = Meter(run.method.label, schedule.hops, hop, show)
    piece, lap_start = 64, (hop, consensus[-1] if consensus else None)
    with interruptible() as asked:
        try:
            while hop < schedule.hops:
                end = min((hop // every + 1) * every, hop + piece, schedule.hops)
                if tolerance is not None:
                    end = min(end, (hop // lap + 1) * lap)
                began = time.perf_counter()
                state = machine.advance(state, schedule, hop, end)
                full = end - hop == piece
                hop = end
                piece = piece * 2 if full and time.perf_counter() - began < PIECE_S else piece
                meter.update(hop)
                if hop % every == 0 or hop == schedule.hops:
                    record()
                    if not np.isfinite(consensus[-1]).all():
                        stopped = "diverged"
                        break
                if tolerance is not None and hop % lap == 0:
                    model = machine.read(state)[0]
                    was = lap_start[1]
                    lap_start = (hop, np.array(model))
                    if was is not None and np.linalg.norm(model - was) <= tolerance * np.linalg.norm(model):
                        stopped = "tolerance"
                        break
                if asked.is_set():
                    stopped = "interrupted"
                    break
        finally:
            meter.close()
    if recorded[-1] != hop:
        record()
    if stopped == "diverged":
        warnings.warn(
            f"{run.label} diverged: its model was no longer finite after {hop} hops; "
            f"try another {' or '.join(run.method.positive)}.",
            stacklevel=3,
        )
    done = replace(
        run,
        every=every,
        schedule=schedule.first(hop),
        state=state,
        recorded=np.array(recorded, np.int64),
        consensus=np.array(consensus),
        local=np.array(local),
        stopped=stopped,
    )
    return with_history(_on_numpy(done), problem)


def _on_numpy(run: Run) -> Run:
    """The state as NumPy arrays, so that a run in memory and one loaded from disk are alike."""
    from amble.arrays import tree_map

    parts = [tree_map(np.asarray, part) if part != () else () for part in run.state[:3]]
    return replace(run, state=type(run.state)(*parts, np.asarray(run.state.x_sum)))
