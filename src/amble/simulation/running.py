"""One run: replays its schedule, records its models and measures their quality."""

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from amble import engines, methods
from amble.arrays import Array, tree_map
from amble.data.datasets import Dataset
from amble.errors import AmbleError, expect, is_whole
from amble.losses.objective import number_of
from amble.methods import Method
from amble.methods.optional import weight_type
from amble.methods.own import explained
from amble.networks import walks
from amble.networks.choosing import tokens_apart, tokens_for
from amble.networks.network import Network
from amble.problem.optimum import UNASKED_GRADIENTS, UNASKED_LAPS, Watch
from amble.problem.problem import Problem
from amble.progress import Meter, interruptible
from amble.results.history import with_history
from amble.results.run import Run
from amble.schedule import timing as timings
from amble.schedule.cost import compute_seconds
from amble.schedule.rounds import Rounds
from amble.simulation import penalised as penalty
from amble.simulation.goal import Goal, goal_of
from amble.simulation.planning import lap_hops, limits, plan, reason, record_hops
from amble.simulation.telling import Going, Moment, told
from amble.tracking.record import OnRecord

PIECE_S = 0.2  # what is computed between two looks at the progress bar and at Ctrl-C


def run_once(
    method: Method,
    problem: Problem,
    network: Network,
    *,
    hops: int | None = None,
    rounds: int | None = None,
    time_s: float | None = None,
    comm_units: int | None = None,
    tolerance: float | None = None,
    metric: float | None = None,
    walk: Any = "auto",
    timing: Any = "paper",
    seed: int = 0,
    start: ArrayLike | None = None,
    every: int | None = None,
    penalised: bool = False,
    optimum: bool = True,
    engine: str = "auto",
    progress: bool = True,
    tuning: dict[str, Any] | None = None,
    on_record: OnRecord | None = None,
) -> Run:
    """What `simulate` does with a method whose settings are chosen."""
    about: dict[str, Any] = {"walk": walk, "timing": timing, "seed": seed, "start": start, "every": every}
    begun = begin(method, problem, network, penalised=penalised, tuning=tuning, **about)
    stop = limits(begun.method, problem, hops, rounds, time_s, comm_units, tolerance)
    going = stages(begun, problem, stop, tolerance, engine, progress, goal_of(metric, problem))
    done = told(going, on_record, begun, problem, optimum, progress)
    return measured(done, problem, optimum, progress)


def begin(
    method: Method,
    problem: Problem,
    network: Network,
    *,
    walk: Any = "auto",
    timing: Any = "paper",
    seed: int = 0,
    start: ArrayLike | None = None,
    every: int | None = None,
    penalised: bool = False,
    tuning: dict[str, Any] | None = None,
) -> Run:
    """A run before its first hop, with all that it depends on checked."""
    method = chosen(methods.check(method, problem), problem, network, walk, seed)
    check_records(method, every, penalised)
    start = first_model(start, problem)
    walk = weighted(method, problem) or walk_of(walk, method)
    meets = walks.has_roles(walk, methods.tokens(method))
    timing = timings.timing_from(timing)
    with explained(method):
        compute_s = compute_seconds(timing, method, problem)
        message_bytes = methods.message_bytes(method, problem.dimension, problem.penalty, meets)
    return Run(
        method=method,
        network=network,
        walk=walk if isinstance(walk, str | walks.Weighted) else walks.matrix(walk, network),
        timing=timing,
        seed=seed,
        every=None if every is None else int(every),
        compute_s=compute_s,
        message_bytes=message_bytes,
        problem=describe(problem),
        tuning=tuning or {},
        start=start,
        schedule=Rounds(np.zeros(0)),
        state=engines.State((), (), (), np.zeros(problem.dimension), np.array(-1)),  # the engine's, below
        recorded=np.zeros(0, np.int64),
        consensus=np.zeros((0, problem.dimension)),
        local=np.zeros((0, problem.dimension)),
        history={"penalised": np.zeros(0)} if penalised else {},
    )


def chosen(method: Method, problem: Problem, network: Network, walk: Any, seed: int) -> Method:
    """The method with as many tokens as suit the network, where it says only what to favour."""
    word = methods.favour(method)
    if word is None:
        return method
    if isinstance(walk, str) and walk in ("auto", "meeting"):
        quadratic = all(number_of(problem.objective(i), "quadratic", False) for i in range(problem.agents))
        once = quadratic and methods.is_gift(method) and method.weigh == "full"
        tokens = tokens_for(word, network, seed, once)
    else:
        tokens = tokens_apart(word, network.agents)
    return methods.check(methods.with_setting(method, "tokens", tokens), problem)


def weighted(method: Method, problem: Problem) -> walks.Weighted | None:
    """The walk of a method that has one of its own, which goes by the smoothness of the agents' losses."""
    law = methods.jumps(method)
    if law is None:
        return None
    weight = np.array([float(number_of(problem.objective(i), "smoothness", None)) for i in range(problem.agents)])
    if not (np.isfinite(weight) & (weight > 0)).all():
        raise AmbleError(
            f"{method.label} walks by the smoothness of each agent's loss, and one is {weight.min():g}; it must be "
            "above zero: give every agent rows, or a ridge."
        )
    return walks.Weighted(weight, *map(np.asarray, law))


def walk_of(walk: Any, method: Method) -> Any:
    """The walk, chosen for the method if it is auto."""
    if not isinstance(walk, str):
        return walk
    if walk == "auto":
        return "meeting" if methods.is_gift(method) and method.tokens > 1 else "cycle"
    if walk == "meeting" and methods.walks(method) and not methods.is_gift(method):
        raise AmbleError(
            f"walk='meeting' was given with {method.label}, whose tokens share no account, so they need not meet; "
            "leave the walk out, or give another, such as walk='cycle'."
        )
    return walk


def check_records(method: Method, every: int | None, penalised: bool) -> None:
    if penalised:
        penalty.check(method)
    if every is not None and not (is_whole(every) and every >= 1):
        raise AmbleError(f"every={every!r} was given; records are a whole number of hops apart, at least one.")


def measured(run: Run, problem: Problem, optimum: bool, show: bool) -> Run:
    """The run with its history, and a warning if the optimum was searched for and is not known. Ctrl-C ends the search
    for the optimum, and the run is kept."""
    with interruptible() as asked, Meter("optimum", None, show=show, unit="gradients") as meter:
        before = asked.times  # an earlier one ended the run, not this search
        laps = run.schedule.hops if methods.is_round(run.method) else run.schedule.hops // problem.agents
        watch = Watch(max(UNASKED_GRADIENTS, UNASKED_LAPS * laps), meter.update, lambda: asked.times > before)
        done = with_history(run, problem, optimum, watch)
    about = done.problem["optimum"]
    if about["asked"] and not about["known"] and problem.trains is None:  # such a model is not expected to have one
        message = f"{about['why']} The history has no suboptimality, distance and distance_local."
        warnings.warn(message, stacklevel=4)
    return done


def check_problem(problem: Problem) -> None:
    advice = "give an amble.Problem, such as amble.split(amble.load('diabetes'), agents=20)"
    if isinstance(problem, Dataset):
        advice = "divide it among agents first: amble.split(data, agents=20)"
    expect(problem, Problem, "the problem", advice)
    _ = problem.digest  # computed once: it asks each objective of your own, and refuses answers that no run could use


def describe(problem: Problem) -> dict[str, Any]:
    """What a run says about its problem: enough to use its model elsewhere, and to show which agent held which rows."""
    about = {"name": problem.name, "task": problem.task, "agents": problem.agents, "dimension": problem.dimension}
    about |= {"digest": problem.digest, "settings": problem.settings}
    if problem.scaling is not None:
        about["scaling"] = {key: np.asarray(value).tolist() for key, value in problem.scaling._asdict().items()}
        about["intercept"] = bool(problem.settings.get("intercept", True))
        about["loss"] = problem.loss
    if problem.labels is not None:
        about["labels"] = problem.labels.tolist()
    if problem.columns is not None:
        about["columns"] = list(problem.columns)
    if problem.target is not None:
        about["target"] = problem.target
    if problem.table:
        about["table"] = dict(problem.table)
    if problem.names is not None:
        about["names"] = list(problem.names)
    if problem.holdings is not None:
        about["holdings"] = problem.holdings
    return about


def first_model(start: Any, problem: Problem) -> Array | None:
    """The initial model: the one given, or else that of the losses; None: zeros."""
    if problem.trains is None:
        return None if start is None else initial_model(start, problem)
    numbers = getattr(start, "shape", None) == (problem.dimension,)
    if start is not None and not numbers:
        start = problem.trains.vector(start)
    return initial_model(problem.trains.start if start is None else start, problem)


def initial_model(start: ArrayLike, problem: Problem) -> Array:
    """The initial model as numbers, checked."""
    try:
        if np.iscomplexobj(start):
            raise TypeError
        model = np.array(start, np.float64)
    except (TypeError, ValueError) as error:
        raise AmbleError(f"start={start!r} was given; it must be {problem.dimension} real numbers.") from error
    if model.shape != (problem.dimension,):
        raise AmbleError(f"start has shape {model.shape}; {problem!r} needs ({problem.dimension},), as run.model has.")
    if not np.isfinite(model).all():
        raise AmbleError("start has numbers that are not finite; give finite ones.")
    if problem.penalty is not None and (model[problem.penalty.positive] < 0).any():
        raise AmbleError("start has numbers below zero for columns of positive=; give none there.")
    return model


def stages(
    run: Run,
    problem: Problem,
    stop: dict[str, Any],
    tolerance: float | None,
    engine: str,
    show: bool,
    goal: Goal | None = None,
) -> Going:
    """With a tolerance, in stages that grow fourfold: the schedule's length is not known beforehand, and each stage
    continues the last one as if it had never stopped."""
    with explained(run.method):
        if tolerance and stop["hops"] is not None and stop["time_s"] is None and stop["comm_units"] is None:
            lap = lap_hops(run)
            stage = max(64 * lap, 4 * (int(run.recorded[-1]) if len(run.recorded) else 0))
            while stage < stop["hops"]:
                run = yield from _go(run, problem, {**stop, "hops": stage}, tolerance, engine, show, goal)
                if run.stopped not in ("hops", "rounds"):
                    return run
                stage *= 4
        return (yield from _go(run, problem, stop, tolerance, engine, show, goal))


def _go(
    run: Run,
    problem: Problem,
    stop: dict[str, Any],
    tolerance: float | None,
    engine: str,
    show: bool,
    goal: Goal | None,
) -> Going:
    """Replay from the run's last hop to the end of the schedule, record models on the way, and yield what is recorded,
    but for an end that no grid has: the next stage may go on from there."""
    machine = engines.engine_for(engine, run.method, problem, run.network, run.start, run.meets)
    schedule = plan(run, stop)
    grid = record_hops(schedule.hops, run.every)
    fresh = len(run.recorded) == 0
    hop = 0 if fresh else int(run.recorded[-1])
    if schedule.hops < hop:
        raise AmbleError(f"the run is already at hop {hop}; give a limit beyond it.")
    state = machine.start() if fresh else run.state
    kept = np.isin(run.recorded, grid)  # the last record of an earlier stop may lie between the grid's
    records = list(zip(run.recorded[kept].tolist(), run.consensus[kept], run.local[kept], strict=True))
    penalised = list(run.history["penalised"][kept]) if "penalised" in run.history else None  # None: not asked for

    def record(hop: int, model: Array, local: Array) -> None:
        records.append((hop, model, local))
        if penalised is not None:
            penalised.append(penalty.penalised(run.method, problem, state))

    def moment() -> Moment:
        return Moment(schedule, *records[-1], None if penalised is None else penalised[-1], state)

    if fresh:
        record(0, *machine.read(state))
        yield moment()

    lap = lap_hops(run)
    on_grid = {*grid.tolist()}
    at_record = {*on_grid, schedule.hops}
    at_lap = set(range(lap, schedule.hops + 1, lap)) if tolerance else set()
    pauses = np.array(sorted(at_record | at_lap))
    if tolerance and hop % lap:  # stopped within a lap: what it began with has to be found again
        lap_model = machine.read(machine.advance(machine.start(), schedule, 0, hop - hop % lap))[0]
    else:
        lap_model = machine.read(state)[0]
    stopped = reason(run, schedule, stop)
    piece = 64
    with interruptible() as asked, Meter(run.method.label, schedule.hops, hop, show) as meter:
        while hop < schedule.hops:
            end = min(int(pauses[np.searchsorted(pauses, hop, side="right")]), hop + piece)
            began = time.perf_counter()
            state = machine.advance(state, schedule, hop, end)
            if end - hop == piece and time.perf_counter() - began < PIECE_S:
                piece *= 2
            hop = end
            meter.update(hop)
            if int(state.lost) >= 0:
                stopped = "diverged"
                break
            if hop in at_record or hop in at_lap:
                model, local = machine.read(state)
                if hop in at_record:
                    record(hop, model, local)
                    if hop in on_grid:
                        yield moment()
                    if goal and goal.reached(problem.metric(model)):
                        stopped = "metric"
                        break
                if tolerance and hop in at_lap:
                    if np.linalg.norm(model - lap_model) <= tolerance * np.linalg.norm(model):
                        stopped = "tolerance"
                        break
                    lap_model = model
            if asked.is_set():
                stopped = "interrupted"
                break
    if records[-1][0] != hop:
        record(hop, *machine.read(state))
    if stopped == "diverged":
        short = weight_type(run.method) != "float64"
        advice = 'try message="float64"' if short else 'try form="scalar", or one token'
        if positive := methods.positive(run.method):
            advice = f"try another {' or '.join(positive)}, or tune=True (--tune)"
        after = f"{'round' if methods.is_round(run.method) else 'hop'} {int(state.lost) + 1}"
        warnings.warn(f"{run.label} diverged: not finite from {after} on; {advice}.", stacklevel=3)
    recorded, consensus, local = (np.array(column) for column in zip(*records, strict=True))
    return replace(
        run,
        schedule=schedule.first(hop),
        state=tree_map(np.asarray, state),  # without a copy, which may be large: the engine does not use it again
        recorded=recorded,
        consensus=consensus,
        local=local,
        history={} if penalised is None else {"penalised": np.array(penalised)},
        stopped=stopped,
    )
