"""The runs of the plan: settings tuned, visits measured, runs made, each kept as soon as it is there."""

import contextlib
import json
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from amble import methods, timing
from amble import network as networks
from amble.data.datasets import load
from amble.errors import AmbleError
from amble.machine import this_machine
from amble.problem import Problem, split
from amble.reproduction import DENSITY, PILOT_POWERS, Figure, Job
from amble.run import Run, load_run, write_whole
from amble.simulation import simulate
from amble.timing import Timing
from amble.tuning import tune
from amble.workers import Workers

CALIBRATION = "calibration.json"


def make_all(jobs: Sequence[Job], folder: Path, compute: str, workers: int | None) -> dict[Job, list[Run]] | None:
    """Every job's runs, one a seed; None when Ctrl-C came first. What is in the folder is not made again."""
    runs = folder / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    to_tune = [job for job in jobs if job.tuned and job not in tuned(jobs, runs)]
    with Workers(workers) as pool:
        if not pool.run(
            tune_job,
            [(job, runs) for job in sorted(to_tune, key=_size, reverse=True)],
            lambda: len(tuned(jobs, runs)),
            sum(job.tuned for job in jobs),
            "tuning",
        ):
            return None
        chosen = tuned(jobs, runs)
        settled = {job: replace(job, method=chosen[job][0]) if job.tuned else job for job in jobs}
        visit_s = _visits(pool, list(settled.values()), folder / CALIBRATION, compute)
        if visit_s is None:
            return None

        def there() -> int:
            return sum(is_there(job, seed, visit_s[job], runs) for job in settled.values() for seed in job.seeds)

        left = [
            (own, chosen[job][1] if job.tuned else {}, visit_s[own], runs)
            for job, own in settled.items()
            if not all(is_there(own, seed, visit_s[own], runs) for seed in own.seeds)
        ]
        left.sort(key=lambda each: each[0].hops * each[2], reverse=True)  # the longest first
        if not pool.run(make_runs, left, there, sum(len(job.seeds) for job in jobs), "runs"):
            return None
    return {job: [_read(own, seed, visit_s[own], runs) for seed in own.seeds] for job, own in settled.items()}


def _size(job: Job) -> int:
    return problem_size(job.figure) * ("prox" in job.method.work)


def problem_size(figure: Figure) -> int:
    """Roughly what a prox costs."""
    return {"usps": 100, "ijcnn1": 10}.get(figure.data, 1)


@lru_cache(maxsize=6)
def problem_of(figure: Figure, seed: int) -> Problem:
    return split(load(figure.data), agents=figure.agents, seed=seed, ridge=figure.ridge)


# --- tuning ---------------------------------------------------------------------------------------------------------


def tune_job(job: Job, folder: Path) -> None:
    """Choose the method's step or penalty on the first seed, and keep it with all that was tried."""
    problem, network = problem_of(job.figure, job.seeds[0]), networks.random(job.figure.agents, DENSITY, job.seeds[0])
    search: dict[str, Any] = {"laps": job.figure.pilot_laps, "powers": PILOT_POWERS, "seed": job.seeds[0]}
    method, record = tune(job.method, problem, network, **search)
    text = json.dumps({"settings": methods.settings(method), "record": record}, indent=2)
    write_whole({folder / f"{job.stem('tuning')}.json": f"{text}\n".encode()})


def tuned(jobs: Sequence[Job], folder: Path) -> dict[Job, tuple[Any, dict[str, Any]]]:
    """The methods as chosen, of those jobs that are tuned already, and what was tried."""
    found = {}
    for job in jobs:
        if job.tuned:
            with contextlib.suppress(OSError, ValueError, KeyError):  # not there, or damaged: it is tuned again
                kept = json.loads((folder / f"{job.stem('tuning')}.json").read_text())
                found[job] = methods.make(job.method.label, kept["settings"]), kept["record"]
    return found


# --- seconds of a visit ---------------------------------------------------------------------------------------------


def _visits(pool: Workers, jobs: Sequence[Job], file: Path, compute: str) -> dict[Job, float] | None:
    if compute == "model":
        return {job: modelled(job) for job in jobs}
    keys = {key_of(job) for job in jobs}

    def measured() -> int:
        return len(keys & calibrated(file).keys())

    batch = [(jobs, file)] if measured() < len(keys) else []  # one job: side by side they would disturb each other
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
    """Measure and store what a visit takes on this machine: the median over the agents, to three digits."""
    for job in jobs:
        known = calibrated(file)
        if key_of(job) not in known:
            problem = problem_of(job.figure, job.seeds[0])
            # a worker computes on one thread, so the thread's own time is what a visit takes when nothing else runs
            seconds = np.median(timing.measured(methods.check(job.method, problem), problem, time.thread_time))
            known[key_of(job)] = float(f"{seconds:.3g}")
            text = json.dumps({"machine": this_machine(), "visit_s": known}, indent=2)
            write_whole({file: f"{text}\n".encode()})


def modelled(job: Job) -> float:
    """What a visit takes in the fixed cost model, the same on every machine."""
    problem = problem_of(job.figure, job.seeds[0])
    return float(f"{np.median(timing.modelled(methods.check(job.method, problem), problem)):.3g}")


def machine_of(folder: Path) -> dict[str, str]:
    """The machine on which visits were measured; this one where none were."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        return dict(json.loads((folder / CALIBRATION).read_text())["machine"])
    return this_machine()


# --- runs -----------------------------------------------------------------------------------------------------------


def path_of(job: Job, seed: int, visit_s: float, folder: Path) -> Path:
    return folder / job.stem(f"seed{seed}", seed, visit_s)


def is_there(job: Job, seed: int, visit_s: float, folder: Path) -> bool:
    base = path_of(job, seed, visit_s, folder)
    return all(base.with_name(base.name + ending).is_file() for ending in (".json", ".npz"))


def make_runs(job: Job, record: dict[str, Any], visit_s: float, folder: Path) -> None:
    """The job's runs that are not there yet, each saved as soon as it is done."""
    for seed in job.seeds:
        if not is_there(job, seed, visit_s, folder):
            problem, network = problem_of(job.figure, seed), networks.random(job.figure.agents, DENSITY, seed)
            options: dict[str, Any] = {"timing": Timing(compute=visit_s), "seed": seed, "hops": job.hops}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a run that diverges says so in the table
                run = simulate(job.method, problem, network, progress=False, **options)
            replace(run, tuning=record).save(path_of(job, seed, visit_s, folder))


def _read(job: Job, seed: int, visit_s: float, folder: Path) -> Run:
    path = path_of(job, seed, visit_s, folder)
    try:
        return load_run(path)
    except AmbleError as error:
        raise AmbleError(
            f"the kept run {path}.npz is damaged; delete it, and run the same command again to make it anew."
        ) from error
