"""Many runs at once: lanes of compiled programs, whose results are those of the same runs one after another."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from amble import methods
from amble.arrays import Array, Indices
from amble.compiling.kept import kept_programs
from amble.engines.lane_program import RECORDS, Progress
from amble.engines.lanes import BLOCK, Lanes, lanes_that_fit, shape_of
from amble.errors import need
from amble.problem.problem import Problem
from amble.progress import interruptible
from amble.results.history import with_histories
from amble.results.run import Run
from amble.schedule.many import Trip, plan_many
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule
from amble.simulation.planning import lap_hops, limits, moves_of, plan, reason, record_hops
from amble.simulation.running import PIECE_S, stages
from amble.simulation.telling import told

RECORD_BYTES_MAX = 1 << 28  # of the recorded models of the lanes of one program
PIECE_LEAST = 256  # hops, or rounds, of the first call

Watch = Callable[[int], object]  # is told how many runs are done


class Interrupted(Exception):
    """Ctrl-C came before the runs were done."""


def run_many(
    begun: Sequence[Run],
    problems: Sequence[Problem],
    *,
    hops: int | None = None,
    rounds: int | None = None,
    time_s: float | None = None,
    comm_units: int | None = None,
    tolerance: float | None = None,
    optimum: bool = True,
    watch: Watch = lambda _: None,
) -> list[Run]:
    """The runs that `begun` become on their problems, as `simulate` would make each of them.

    Runs of one shape are lanes of one program, as many at a time as are fastest and fit the memory. Those on objectives
    of your own are made one after another. A run that diverges says so in `stopped`, and there is no warning.
    """
    done: dict[int, Run] = {}
    for group in groups(begun, problems, bool(tolerance)):
        first, problem = begun[group[0]], problems[group[0]]
        stop = limits(first.method, problem, hops, rounds, time_s, comm_units, tolerance)
        at_once = lanes_at_once(first, problem, stop)
        for some in even_parts(group, at_once):
            runs, on = [begun[k] for k in some], [problems[k] for k in some]
            if problem.own is None:
                with kept_programs(need("jax", "sim")):
                    made = _lanes(runs, on, stop, tolerance)
            else:
                made = [_alone(run, problem, stop, tolerance) for run in runs]
            done |= zip(some, made, strict=True)
            watch(len(done))
    by_problem: dict[int, list[int]] = {}
    for k, problem in enumerate(problems):
        by_problem.setdefault(id(problem), []).append(k)
    for some in by_problem.values():
        done |= zip(some, with_histories([done[k] for k in some], problems[some[0]], optimum), strict=True)
    return [done[k] for k in range(len(begun))]


def groups(begun: Sequence[Run], problems: Sequence[Problem], by_laps: bool = False) -> list[list[int]]:
    """The numbers of the runs that can be lanes of one program; `by_laps`: those whose laps have as many hops."""
    shapes: dict[Any, list[int]] = {}
    for k, (run, problem) in enumerate(zip(begun, problems, strict=True)):
        own = k if problem.own is not None else shape_of(run.method, problem, run.network, run.meets)
        start = None if run.start is None else run.start.tobytes()
        lap = lap_hops(run) if by_laps else 0
        shapes.setdefault((own, run.every, start, lap), []).append(k)
    return list(shapes.values())


def even_parts(things: list[Any], most: int) -> list[list[Any]]:
    """As few parts as there can be with at most so many things, all of one size but for one thing: parts of one size
    share a compiled program."""
    count = -(-len(things) // most)
    return [things[k * len(things) // count : (k + 1) * len(things) // count] for k in range(count)]


def lanes_at_once(run: Run, problem: Problem, stop: dict[str, Any]) -> int:
    """How many runs like this one are made by one program."""
    if problem.own is not None:
        return 1
    hops = stop["hops"] or BLOCK
    records = hops // run.every if run.every else 50 * np.log(1 + hops / 50) + 1
    by_records = int(RECORD_BYTES_MAX / (16 * problem.dimension * max(records, 1)))
    return max(1, min(lanes_that_fit(run.method, problem, run.network, run.meets), by_records))


def _alone(run: Run, problem: Problem, stop: dict[str, Any], tolerance: float | None) -> Run:
    done = told(stages(run, problem, stop, tolerance, "auto", False), None, run, problem, False, False)
    if done.stopped == "interrupted":
        raise Interrupted
    return done


def _lanes(
    runs: Sequence[Run], problems: Sequence[Problem], stop: dict[str, Any], tolerance: float | None
) -> list[Run]:
    """The runs, as lanes of one program, without their histories."""
    first = runs[0]
    lap = lap_hops(first)
    machine = Lanes([run.method for run in runs], problems, [run.network for run in runs], first.start, first.meets)
    staged = bool(tolerance) and stop["hops"] is not None and stop["time_s"] is None and stop["comm_units"] is None
    stage = min(64 * lap, stop["hops"]) if staged else stop["hops"]
    schedules = plans(runs, {**stop, "hops": stage})
    at = machine.start(_hops(schedules))
    model, local = machine.read(at)
    film, hop = Film(model, local), 0
    while True:
        at = _play(machine, schedules, at, hop, film, first.every, lap, tolerance or 0.0)
        ends, settled = np.asarray(at.ends)[: len(runs)], np.asarray(at.settled)[: len(runs)]
        lost = np.asarray(at.state.lost)[: len(runs)] >= 0
        going = ~(settled | lost)
        if not staged or stage == stop["hops"] or not going.any():
            break
        hop, stage = stage, min(4 * stage, stop["hops"])  # as in `stages`: nobody knows how long a run will be
        longer = plans([run for run, goes in zip(runs, going, strict=True) if goes], {**stop, "hops": stage})
        for k, schedule in zip(np.flatnonzero(going).tolist(), longer, strict=True):
            schedules[k] = schedule
        at = machine.with_ends(at, np.where(going, _hops(schedules), ends))
    film.close(*machine.read(at))
    done = []
    for k, (run, schedule, state) in enumerate(zip(runs, schedules, machine.states(at), strict=True)):
        why = "diverged" if lost[k] else "tolerance" if settled[k] else reason(run, schedule, stop)
        end = int(ends[k])
        done.append(replace(run, schedule=schedule.first(end), state=state, stopped=why, **film.records(k, end)))
    return done


def _hops(schedules: Sequence[Schedule | Rounds]) -> Indices:
    return np.array([schedule.hops for schedule in schedules], np.int64)


class Film:
    """The models of all lanes at each point of the grid."""

    def __init__(self, model: Array, local: Array) -> None:
        self.hops: list[Indices] = [np.zeros(1, np.int64)]
        self.models, self.locals = [model[:, None]], [local[:, None]]

    def add(self, hops: Indices, models: Array, local: Array) -> None:
        """The models at more points of the grid."""
        self.hops.append(hops)
        self.models.append(models)
        self.locals.append(local)

    def close(self, model: Array, local: Array) -> None:
        """The models at the end of each lane."""
        self.grid = np.concatenate(self.hops)
        self.sides = [(np.concatenate(side, axis=1), end) for side, end in ((self.models, model), (self.locals, local))]

    def records(self, k: int, end: int) -> dict[str, Any]:
        """Lane k's records up to the hop at which it ended, as the fields of a run."""
        count = int(np.searchsorted(self.grid, end, side="right"))
        recorded, between = self.grid[:count], bool(self.grid[count - 1] != end)
        if between:
            recorded = np.append(recorded, end)
        sides = [
            np.concatenate([film[k, :count], last[[k]]]) if between else film[k, :count] for film, last in self.sides
        ]
        return {"recorded": recorded, "consensus": sides[0], "local": sides[1]}


def _play(
    machine: Lanes,
    schedules: Sequence[Schedule | Rounds],
    at: Progress,
    hop: int,
    film: Film,
    every: int | None,
    lap: int,
    tolerance: float,
) -> Progress:
    """Advance all lanes from this hop to the ends of their schedules, or until each has diverged or settled."""
    limit = int(_hops(schedules).max())
    grid = record_hops(limit, every)
    laps = np.arange(lap, limit + 1, lap) if tolerance else np.zeros(0, np.int64)
    walking = isinstance(schedules[0], Schedule)
    distinct = list({id(schedule): schedule for schedule in schedules}.values())
    number_of = {id(schedule): number for number, schedule in enumerate(distinct)}
    which = np.array([number_of[id(schedule)] for schedule in schedules])
    block = BLOCK if walking else max(1, BLOCK // machine.shape.agents)
    borders = np.arange(0, limit, block)
    pauses = np.unique(np.concatenate([grid, laps, borders, [limit]]))
    piece = PIECE_LEAST
    with interruptible() as asked:
        while hop < limit:
            if asked.is_set():
                raise Interrupted
            number = hop // block
            stop = min(hop + piece, (number + 1) * block, limit)
            between = pauses[(pauses > hop) & (pauses < stop)][: RECORDS - 1]
            stop = int(pauses[pauses > hop][RECORDS - 1]) if len(between) == RECORDS - 1 else stop
            points = np.concatenate([[hop], between, [stop]])
            names = ("agent", "token", *(("role",) if machine.shape.meets else ())) if walking else ()
            columns = [_columns(distinct, name, number * block, block) for name in names]
            on_grid = np.isin(points[1:], grid)
            at_lap = np.isin(points[1:], laps)
            began = time.perf_counter()
            at, models, local = machine.advance(
                at, columns, which, number * block, points, on_grid | at_lap, at_lap, tolerance
            )
            film.add(points[1:][on_grid], models[:, on_grid], local[:, on_grid])
            if time.perf_counter() - began < PIECE_S:
                piece *= 2
            hop = stop
            if (np.asarray(at.ends)[: machine.count] <= hop).all():
                break
    return at


def _columns(schedules: Sequence[Any], name: str, begin: int, length: int) -> Indices:
    """A block of one column of all schedules; those that end before have their last entry again."""
    rows = [getattr(schedule, name)[begin : begin + length] for schedule in schedules]
    width = max(1, *(len(row) for row in rows))
    return np.stack([np.pad(row, (0, width - len(row)), mode="edge" if len(row) else "constant") for row in rows])


def plans(runs: Sequence[Run], stop: dict[str, Any]) -> list[Schedule | Rounds]:
    """The schedule of each run; runs that differ only in settings that cost nothing share theirs."""
    keys = [schedule_key(run) for run in runs]
    first = dict(zip(keys, runs, strict=True))
    if methods.is_round(runs[0].method):
        made: dict[Any, Schedule | Rounds] = {key: plan(run, stop) for key, run in first.items()}
    else:
        made = dict(zip(first, plan_many([trip(run) for run in first.values()], **stop), strict=True))
    return [made[key] for key in keys]


def schedule_key(run: Run) -> tuple[Any, ...]:
    walk = run.walk if isinstance(run.walk, str) else id(run.walk)
    units = methods.round_units(run.method, run.network) if methods.is_round(run.method) else 0
    cost = run.timing, run.compute_s.tobytes(), run.message_bytes, units
    return id(run.network), walk, run.seed, methods.tokens_among(run.method, run.network.agents), *cost


def trip(run: Run) -> Trip:
    walk, tokens = moves_of(run)
    return Trip(walk, tokens, run.compute_s, run.timing.link(run.message_bytes), run.seed)
