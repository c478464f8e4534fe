"""Tunes the settings, measures visits and makes the runs of the plan; each run is kept as soon as it is done."""

import contextlib
import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from amble import methods
from amble.arrays import Array
from amble.data.datasets import Dataset
from amble.data.loading import load
from amble.errors import AmbleError
from amble.files import ending as ending_of
from amble.files import write_whole
from amble.paper.plan import FULL_STEP, PILOT_POWERS, Figure, Job
from amble.problem.problem import Problem
from amble.problem.split import split
from amble.report.machine import this_machine
from amble.results.history import costs
from amble.results.loading import load_run
from amble.results.run import Run
from amble.schedule import cost
from amble.schedule.timing import Timing
from amble.simulation import tuning
from amble.simulation.planning import limits
from amble.simulation.running import begin, measured, stages
from amble.workers import Workers

CALIBRATION = "calibration.json"
ENDINGS = (".json", ".npz")  # of a saved run


def make_all(jobs: Sequence[Job], folder: Path, compute: str, workers: int | None) -> dict[Job, list[Run]] | None:
    """Every job's runs, one per seed; None after Ctrl-C. Runs that are in the folder are not repeated."""
    runs = folder / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    kept = tuned(jobs, runs)
    left = [job for job in sorted(jobs, key=_size, reverse=True) if job.tuned and job not in kept]
    to_tune = [(alike, runs) for alike in but_for_reading(left)]
    with Workers(workers) as pool:
        if not pool.run(tune_jobs, to_tune, lambda: len(tuned(jobs, runs)), sum(job.tuned for job in jobs), "tuning"):
            return None
        while True:  # a full run may refuse the tuned value, or show a better one; then the runs are repeated with that
            records = tuned(jobs, runs)
            settled = {job: with_chosen(job, records[job]) if job.tuned else job for job in jobs}
            visit_s = _visits(pool, list(settled.values()), folder / CALIBRATION, compute)
            if visit_s is None or not _runs(pool, settled, visit_s, runs):
                return None
            if tuned(jobs, runs) == records:
                break
    return {job: [_read(own, seed, visit_s[own], runs) for seed in own.seeds] for job, own in settled.items()}


def _runs(pool: Workers, settled: Mapping[Job, Job], visit_s: Mapping[Job, float], folder: Path) -> bool:
    def there() -> int:
        return sum(is_there(own, seed, visit_s[own], folder) for own in settled.values() for seed in own.seeds)

    left = [
        (job, own, visit_s[own], folder)
        for job, own in settled.items()
        if not all(is_there(own, seed, visit_s[own], folder) for seed in own.seeds)
    ]
    left.sort(key=lambda each: _size(each[1]), reverse=True)  # the longest first
    return pool.run(make_runs, left, there, sum(len(job.seeds) for job in settled), "runs")


def _size(job: Job) -> int:
    """Roughly how long a job takes: the more agents compute at once, the more is computed in the same virtual time."""
    at_once = job.figure.agents if methods.is_round(job.method) else job.method.tokens
    return problem_size(job.figure) * at_once * (10 if "prox" in job.method.work else 1)


def problem_size(figure: Figure) -> int:
    """Roughly what a prox costs."""
    return {"usps": 100, "ijcnn1": 10}.get(figure.data, 1)


@lru_cache
def data_of(name: str) -> Dataset:
    """Read once per process: of large files it takes seconds."""
    return load(name)


@lru_cache(maxsize=24)  # all that a process meets: to find an optimum again takes longer than most runs
def problem_of(figure: Figure, seed: int) -> Problem:
    return split(data_of(figure.data), agents=figure.agents, seed=seed, ridge=figure.ridge, weights="agents")


# --- tuning ---------------------------------------------------------------------------------------------------------


def but_for_reading(jobs: Sequence[Job]) -> list[list[Job]]:
    """Jobs that differ in nothing else together: their pilot runs are the same."""
    alike: dict[str, list[Job]] = {}
    for job in jobs:
        alike.setdefault(replace(job, reading=None).stem("pilots"), []).append(job)
    return list(alike.values())


def tune_jobs(alike: Sequence[Job], folder: Path) -> None:
    """Choose the settings of jobs that differ in the reading alone."""
    made: dict[tuple[float, int], Run] = {}
    for job in alike:
        tune_job(job, folder, made)


def tune_job(job: Job, folder: Path, made: dict[tuple[float, int], Run]) -> None:
    """Choose the method's step or penalty on the first seed, and keep it with all that was tried."""
    problem, network = problem_of(job.figure, job.seeds[0]), job.network_with(job.seeds[0])
    search: dict[str, Any] = {
        "walk": job.walk,
        "laps": job.figure.pilot_laps,
        "powers": PILOT_POWERS,
        "seed": job.seeds[0],
    }
    # long=1: the runs themselves are the test of a long run (make_runs)
    _, record = tuning.tune(job.method, problem, network, long=1, reading=job.reading, made=made, **search)
    keep_tuning(job, record, folder)


def tuning_file(job: Job, folder: Path) -> Path:
    return folder / f"{job.stem('tuning', tuning.CLOSE, tuning.RISE)}.json"  # another rule chooses again


def keep_tuning(job: Job, record: Mapping[str, Any], folder: Path) -> None:
    write_whole({tuning_file(job, folder): f"{json.dumps(record, indent=2)}\n".encode()})


def tuned(jobs: Sequence[Job], folder: Path) -> dict[Job, dict[str, Any]]:
    """What was tried and chosen for the jobs that are tuned already."""
    records = {}
    for job in jobs:
        if job.tuned:
            with contextlib.suppress(OSError, ValueError, KeyError):  # not there, or damaged: it is tuned again
                record = json.loads(tuning_file(job, folder).read_text())
                records[job] = {**record, "chosen": float(record["chosen"])}
    return records


def with_chosen(job: Job, record: Mapping[str, Any]) -> Job:
    return replace(job, method=replace(job.method, **{record["setting"]: record["chosen"]}))


# --- seconds of a visit ---------------------------------------------------------------------------------------------


def _visits(pool: Workers, jobs: Sequence[Job], file: Path, compute: str) -> dict[Job, float] | None:
    if compute == "model":
        return {job: modelled(job) for job in jobs}
    keys = {key_of(job) for job in jobs}

    def measured() -> int:
        return len(keys & calibrated(file).keys())

    batch = [(jobs, file)] if measured() < len(keys) else []  # one job: parallel measurements would disturb each other
    if not pool.run(calibrate, batch, measured, len(keys), "measuring visits"):
        return None
    seconds = calibrated(file)
    return {job: seconds[key_of(job)] for job in jobs}


def key_of(job: Job) -> str:
    return f"{job.figure.data}: {job.method.label} {json.dumps(methods.settings(job.method))}"


def calibrated(file: Path) -> dict[str, float]:
    """Seconds of a visit that were measured already."""
    with contextlib.suppress(OSError, ValueError, KeyError):  # not there, or damaged: it is measured again
        return dict(json.loads(file.read_text())["visit_s"])
    return {}


def calibrate(jobs: Sequence[Job], file: Path) -> None:
    """Measure and store how long a visit takes on this machine: the median over the agents, to three digits."""
    for job in jobs:
        known = calibrated(file)
        if key_of(job) not in known:
            problem = problem_of(job.figure, job.seeds[0])
            # a worker computes on one thread, so the thread's own time is what a visit takes when nothing else runs
            seconds = np.median(cost.measured(methods.check(job.method, problem), problem, time.thread_time))
            known[key_of(job)] = float(f"{seconds:.3g}")
            text = json.dumps({"machine": this_machine(), "visit_s": known}, indent=2)
            write_whole({file: f"{text}\n".encode()})


def modelled(job: Job) -> float:
    """How long a visit takes in the fixed cost model, the same on every machine."""
    problem = problem_of(job.figure, job.seeds[0])
    return float(f"{np.median(cost.modelled(methods.check(job.method, problem), problem)):.3g}")


def machine_of(folder: Path) -> dict[str, str]:
    """The machine on which visits were measured; this one where none were."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        return dict(json.loads((folder / CALIBRATION).read_text())["machine"])
    return this_machine()


# --- runs -----------------------------------------------------------------------------------------------------------


def path_of(job: Job, seed: int, visit_s: float, folder: Path) -> Path:
    return folder / job.stem(f"seed{seed}", seed, visit_s)


def is_there(job: Job, seed: int, visit_s: float, folder: Path) -> bool:
    return all(ending_of(path_of(job, seed, visit_s, folder), ending).is_file() for ending in ENDINGS)


def make_runs(job: Job, own: Job, visit_s: float, folder: Path) -> None:
    """The job's runs that are not there yet, each saved as soon as it is done. `own` has the tuned value: where full
    runs show a better one, or the loss rises with it, the runs are left to be made with another."""
    record = tuned([job], folder).get(job, {})
    made: dict[float, tuple[Run, tuning.Trial | None]] = {}  # full runs of the first seed
    if record and "full" not in record:
        record = choose_by_full_runs(job, record, visit_s, made)
        keep_tuning(job, record, folder)
        if with_chosen(job, record) != own:
            return
    for seed in own.seeds:
        if is_there(own, seed, visit_s, folder):
            continue
        first = made.get(record["chosen"]) if made and seed == own.seeds[0] else None
        run, trial = first or judged(own, seed, visit_s)
        if record and trial is not None and not tuning.all_refused(record) and trial.rises:
            keep_tuning(job, tuning.refuse(record), folder)
            for other in own.seeds:
                for ending in ENDINGS:
                    ending_of(path_of(own, other, visit_s, folder), ending).unlink(missing_ok=True)
            return
        replace(run, tuning=record).save(path_of(own, seed, visit_s, folder))


def choose_by_full_runs(
    job: Job, record: Mapping[str, Any], visit_s: float, made: dict[float, tuple[Run, tuning.Trial | None]]
) -> dict[str, Any]:
    """Pilot runs are much shorter than the runs on which methods are judged. So the choice is made on the first seed,
    by the training loss of runs with the whole budgets. These runs are added to `made`."""

    def trial_of(value: float) -> tuning.Trial:
        run, trial = judged(with_chosen(job, {**record, "chosen": value}), job.seeds[0], visit_s)
        assert trial is not None  # of a tuned job
        made[value] = run, trial
        return trial

    return tuning.rescore(record, trial_of, FULL_STEP, job.figure.full_tries)


def judged(job: Job, seed: int, visit_s: float) -> tuple[Run, tuning.Trial | None]:
    """A run that spends both budgets, and the losses that it had, of a tuned job."""
    film: dict[int, Array] | None = {} if job.tuned and tuning.is_gossip(job.method) else None
    run = spend(job, seed, visit_s, film)
    problem = problem_of(job.figure, seed)
    return run, tuning.trial(run, problem, job.reading or "", film) if job.tuned else None


def spend(job: Job, seed: int, visit_s: float, film: dict[int, Array] | None = None) -> Run:
    """A run that goes on until both budgets of its figure are spent, the virtual time and the communication, or it
    has converged. `film` gets the agents' models at each record but the end."""
    problem, timing = problem_of(job.figure, seed), Timing(compute=visit_s)
    run = begin(job.method, problem, job.network_with(seed), walk=job.walk, timing=timing, seed=seed)

    def go(run: Run, **stop: Any) -> Run:
        """Up to a limit, as `simulate` and `resume` do; the history is computed once, at the end."""
        none = dict.fromkeys(("hops", "rounds", "time_s", "comm_units"))
        until = limits(run.method, problem, **{**none, **stop}, tolerance=job.tolerance)
        going = stages(run, problem, until, job.tolerance, "auto", False)
        while True:
            try:
                moment = next(going)
            except StopIteration as end:
                done: Run = end.value
                return done
            if film is not None:
                film[moment.hop] = np.array(replace(run, state=moment.state.on_numpy()).models)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a run that diverges says so in the table
        run = go(run, time_s=job.figure.time_s)
        units = costs(replace(run, recorded=run.recorded[-1:]))["comm_units"][-1]
        if run.stopped == "time_s" and units < job.figure.comm_units:
            run = go(run, comm_units=job.figure.comm_units)
        return measured(run, problem, True, False)


def _read(job: Job, seed: int, visit_s: float, folder: Path) -> Run:
    path = path_of(job, seed, visit_s, folder)
    try:
        return load_run(path)
    except AmbleError as error:
        raise AmbleError(
            f"the kept run {path}.npz is damaged; delete it, and run the same command again to regenerate it."
        ) from error
