"""The curves of a run: its costs, and the quality of its recorded models."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amble import methods
from amble.arrays import Array
from amble.problem import reference
from amble.problem.optimum import NoOptimum, Optimum, Watch
from amble.problem.problem import Problem
from amble.results.run import Run
from amble.schedule.rounds import Rounds


def with_history(run: Run, problem: Problem, optimum: bool = True, watch: Watch | None = None) -> Run:
    """The run with its curves computed: costs from the schedule, the rest from the recorded models.

    Columns that the history already has came from states that no longer exist, so they stay. What is measured from the
    optimum is left out where that is not known; then `problem["optimum"]` says why.
    """
    best = reference.known(problem, watch) if optimum else NoOptimum("optimum=False was given")
    history = costs(run) | run.history | quality(problem, run.consensus, run.local, best)
    about: dict[str, Any] = {"known": True, "asked": optimum, "why": None}
    metric = problem.metric(best.w) if isinstance(best, Optimum) else np.nan
    if isinstance(best, NoOptimum):
        about |= {"known": False, "why": best.why}
    described = {**run.problem, "optimum": about, "optimum_metric": None if np.isnan(metric) else metric}
    return replace(run, history=history, problem=described)


def quality(problem: Problem, consensus: Array, local: Array, best: Optimum | NoOptimum) -> dict[str, NDArray[Any]]:
    """The columns of the history that say how good models are."""
    sides = {"": consensus, "_local": local}
    with np.errstate(all="ignore"):  # a diverged model has an infinite loss, and the run says so
        columns = {"objective": np.array([float(problem.value(w)) for w in consensus])}
        if isinstance(best, Optimum):
            scale = float(np.linalg.norm(best.w)) or 1.0
            columns["suboptimality"] = columns["objective"] - best.value
            for side, models in sides.items():
                columns[f"distance{side}"] = np.linalg.norm(models - best.w, axis=1) / scale
        for side, models in sides.items():
            columns[f"metric{side}"] = problem.metrics(models)
    return columns


def costs(run: Run) -> dict[str, NDArray[Any]]:
    """The cost columns of the history, at the recorded hops."""
    k, N = run.recorded, run.network.agents
    time_s = np.concatenate([[0.0], run.schedule.time_s])[k]
    if isinstance(run.schedule, Rounds):
        hop, units = k * N, methods.round_units(run.method, run.network) * k
        sent = methods.round_bytes(run.method, run.network, run.message_bytes) * k
        busy_s = np.sum(run.compute_s) * k
    else:
        hop, units = k, np.concatenate([[0], np.cumsum(run.schedule.moved, dtype=np.int64)])[k]
        sent = units * run.message_bytes
        busy_s = np.concatenate([[0.0], np.cumsum(run.compute_s[run.schedule.agent])])[k]
    idle = 1 - busy_s / np.where(time_s > 0, N * time_s, np.inf)
    return {"hop": hop, "time_s": time_s, "comm_units": units, "bytes": sent, "idle": idle}
