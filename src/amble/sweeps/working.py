"""Makes the runs of a plan that are missing, job by job, and keeps their rows in a folder."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from pathlib import Path
from typing import Any

import numpy as np

from amble.data.packed import DAMAGED, arrays_of, npz_of
from amble.engines.lane_program import IN_TURN
from amble.engines.lanes import Lanes
from amble.errors import AmbleError
from amble.files import write_whole
from amble.methods import is_round
from amble.progress import Asked, Meter, interruptible
from amble.schedule.cost import modelled
from amble.simulation.many import Interrupted, even_parts, lanes_at_once
from amble.simulation.planning import HOPS_DEFAULT, limits
from amble.simulation.running import begin
from amble.sweeps.executors import opened
from amble.sweeps.plan import Case, Plan
from amble.sweeps.rows import Job, Rows, make
from amble.workers import LOOK_S, cores

LANES_LEAST = 32  # fewer lanes are slower per run, so more workers do not help then
JOBS_PER_WORKER = 3  # so that no worker is idle for long at the end
FEW_S = 10.0  # less work is done in this process, as every worker would compile the programs anew
HOP_S = 3e-7  # of a hop, besides its arithmetic
ATTEMPTS = 3  # with new workers, where one was killed
FILES = "rows-*.npz"


class Kept:
    """The rows of runs by their keys, in memory and, where there is a folder, in files of it."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.rows: dict[str, dict[str, Any]] = {}
        for file in sorted(folder.glob(FILES)) if folder else ():
            try:
                columns = arrays_of(file.read_bytes())
                self._take(columns.pop("key").tolist(), columns)
            except DAMAGED:  # what was in it is made again
                file.unlink(missing_ok=True)

    def _take(self, keys: Sequence[str], columns: Rows) -> None:
        names, rows = list(columns), zip(*(column.tolist() for column in columns.values()), strict=True)
        self.rows |= {key: dict(zip(names, row, strict=True)) for key, row in zip(keys, rows, strict=True)}

    def add(self, keys: Sequence[str], columns: Rows) -> None:
        """Keep these rows; a file is written whole or not at all."""
        self._take(keys, columns)
        if self.folder is not None:
            name = hashlib.sha256("".join(keys).encode()).hexdigest()[:16]
            write_whole({self.folder / f"rows-{name}.npz": npz_of({"key": np.array(keys), **columns})})


def work(
    plan: Plan, cases: Sequence[Case], keys: Sequence[str], kept: Kept, executor: Any, workers: int | None, show: bool
) -> Asked:
    """Make what is missing. Ctrl-C ends it early, and so does SIGTERM; what is done is kept."""
    missing = [(case, key) for case, key in zip(cases, keys, strict=True) if key not in kept.rows]
    missing = list({key: (case, key) for case, key in missing}.values())
    done = len(cases) - len(missing)
    left, seconds = chunks(plan, missing, workers or cores())
    long = seconds > FEW_S
    with interruptible(patient=True) as asked, Meter("sweep", len(cases), done, show, "runs", lines=long) as meter:
        for _ in range(ATTEMPTS):
            if not left or asked.is_set():
                return asked
            with opened(executor, workers, len(left) if long else 1) as (pool, count):
                left = _round(plan, left, kept, pool, count, asked, meter)
        if left and not asked.is_set():
            raise AmbleError(
                f"workers were killed {ATTEMPTS} times, perhaps by lack of memory; finished runs are kept, so run the "
                "same sweep again, with fewer workers."
            )
    return asked


Chunk = list[tuple[Case, str]]


def chunks(plan: Plan, missing: Sequence[tuple[Case, str]], workers: int) -> tuple[list[Chunk], float]:
    """The runs of each job: as many as one program should have, but fewer where workers would be left without any. And
    roughly how many seconds they take on one core."""
    made: list[Chunk] = []
    seconds = 0.0
    alike: dict[Any, Chunk] = {}
    for case, key in missing:
        alike.setdefault((type(case.method), getattr(case.method, "tokens", 1), case.split), []).append((case, key))
    for group in alike.values():
        case = group[0][0]
        problem, network = plan.problem(case.split, case.seed), plan.network(case)
        run = begin(case.method, problem, network, seed=case.seed, walk=plan.walk, timing=plan.timing, every=plan.every)
        names = ("hops", "rounds", "time_s", "comm_units", "tolerance")
        stop = limits(run.method, problem, *(plan.stop[name] for name in names))
        most = lanes_at_once(run, problem, stop)
        visits = (stop["hops"] or HOPS_DEFAULT) * (problem.agents if is_round(run.method) else 1)
        seconds += len(group) * visits * (HOP_S + float(np.mean(modelled(run.method, problem))))
        together = problem.own is None and Lanes.way_of(run.method, problem) != IN_TURN
        fair = -(-len(missing) // (JOBS_PER_WORKER * workers))
        size = max(1, min(most if together else len(group), max(fair, LANES_LEAST if together else 1)))
        made += even_parts(group, size)
    return made, seconds


def _round(
    plan: Plan, left: list[Chunk], kept: Kept, pool: Executor, count: int, asked: Asked, meter: Meter
) -> list[Chunk]:
    """Work on the chunks until all are done, Ctrl-C comes or a worker is killed; what is left then."""
    waiting: dict[Future[Rows], Chunk] = {}
    coming: Iterator[Chunk] = iter(left)
    lost: list[Chunk] = []
    done = meter.begin
    while not asked.is_set():
        while len(waiting) < max(1, 2 * count) and not lost and (chunk := next(coming, None)) is not None:
            try:
                waiting[pool.submit(make, job_of(plan, chunk))] = chunk
            except BrokenExecutor:
                lost.append(chunk)
        if not waiting:
            break
        for future in wait(waiting, LOOK_S, FIRST_COMPLETED)[0]:
            chunk = waiting.pop(future)
            try:
                kept.add([key for _, key in chunk], future.result())
            except (BrokenExecutor, Interrupted):
                lost.append(chunk)
                continue
            done += len(chunk)
            meter.update(done)
    for future in waiting:
        future.cancel()
    meter.begin = done
    return [*lost, *waiting.values(), *coming]


def job_of(plan: Plan, chunk: Chunk) -> Job:
    """What a worker needs for these runs, with each problem and network once."""
    problems = [plan.problem(case.split, case.seed) for case, _ in chunk]
    networks = [plan.network(case) for case, _ in chunk]
    of, own_problems = distinct(problems)
    over, own_networks = distinct(networks)
    return Job(
        methods=[case.method for case, _ in chunk],
        seeds=[case.seed for case, _ in chunk],
        problems=own_problems,
        of=of,
        networks=own_networks,
        over=over,
        options={"walk": plan.walk, "timing": plan.timing, "start": plan.start, "every": plan.every},
        stop=plan.stop,
        within=plan.within,
        optimum=plan.optimum,
    )


def distinct(things: Sequence[Any], key: Callable[[Any], Any] = id) -> tuple[list[int], list[Any]]:
    """Which of the different things each one is, and these."""
    own = {key(thing): thing for thing in things}
    numbers = {name: k for k, name in enumerate(own)}
    return [numbers[key(thing)] for thing in things], list(own.values())
