"""The work of one job: some runs as lanes, and what is kept of them, a row each."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from amble.methods import Method
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.results.reaching import COSTS, reach
from amble.results.run import Run
from amble.simulation.many import run_many
from amble.simulation.running import begin

ENDS = ("time_s", "comm_units", "bytes", "objective", "suboptimality")  # at the end of a run
SIDES = ("distance", "distance_local", "metric", "metric_local")

Rows = dict[str, NDArray[Any]]


class Job(NamedTuple):
    """Runs to make: lane l runs methods[l] with seeds[l], on problems[of[l]] over networks[over[l]]."""

    methods: list[Method]
    seeds: list[int]
    problems: list[Problem]
    of: list[int]
    networks: list[Network]
    over: list[int]
    options: dict[str, Any]  # walk, timing, start, every
    stop: dict[str, Any]
    within: tuple[float, ...]
    optimum: bool


def make(job: Job) -> Rows:
    """A row for each run, as columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a single run would warn of is in the row
        problems = [job.problems[k] for k in job.of]
        lanes = zip(job.methods, problems, job.over, job.seeds, strict=True)
        begun = [begin(method, on, job.networks[k], seed=seed, **job.options) for method, on, k, seed in lanes]
        return rows_of(run_many(begun, problems, optimum=job.optimum, **job.stop), job.within)


def rows_of(runs: Sequence[Run], within: Sequence[float]) -> Rows:
    """The ends of runs, and what they had cost when they came near to the optimum's metric for good."""
    rows: Rows = {
        "stopped": np.array([run.stopped for run in runs]),
        "hops": np.array([run.history["hop"][-1] for run in runs], np.int64),
    }
    for name in (*ENDS, *SIDES):
        rows[name] = np.array([run.history[name][-1] if name in run.history else np.nan for run in runs], np.float64)
    for share in within:
        for cost in COSTS:
            rows[column(cost, share)] = np.array(
                [reach(run, "metric", cost, share, run.problem["optimum_metric"]) for run in runs]
            )
    return rows


def measured(within: Sequence[float]) -> list[str]:
    """The columns of numbers that a row has."""
    return ["hops", *ENDS, *SIDES, *(column(cost, share) for share in within for cost in COSTS)]


def column(cost: str, share: float) -> str:
    """The name of the column with what a run had cost when its metric was within this share of the optimum's."""
    return f"{'hops' if cost == 'hop' else cost}_within_{share:g}"
