"""The curves of a run: its costs, and what its recorded models are worth."""

from dataclasses import replace
from typing import Any

import numpy as np

from amble.problem.optimum import NoOptimum, Optimum, Watch
from amble.results.run import Run, costs


def with_history(run: Run, problem: Any, optimum: bool = True, watch: Watch | None = None) -> Run:
    """The run with its curves computed: costs from the schedule, the rest from the recorded models.

    What its history has already was computed from states that are gone, and stays. What is measured from the optimum is
    left out where that is not known; then `problem["optimum"]` says why.
    """
    best = problem.known_optimum(watch) if optimum else NoOptimum("optimum=False was given")
    sides = {"": run.consensus, "_local": run.local}
    with np.errstate(all="ignore"):  # a diverged model has an infinite loss, and the run says so
        history = costs(run) | run.history | {"objective": np.array([float(problem.value(w)) for w in run.consensus])}
        if isinstance(best, Optimum):
            scale = float(np.linalg.norm(best.w)) or 1.0
            history["suboptimality"] = history["objective"] - best.value
            for side, models in sides.items():
                history[f"distance{side}"] = np.linalg.norm(models - best.w, axis=1) / scale
        for side, models in sides.items():
            history[f"metric{side}"] = problem.metrics(models)
    about: dict[str, Any] = {"known": True, "asked": optimum, "why": None}
    metric = problem.metric(best.w) if isinstance(best, Optimum) else np.nan
    if isinstance(best, NoOptimum):
        about |= {"known": False, "why": best.why}
    described = {**run.problem, "optimum": about, "optimum_metric": None if np.isnan(metric) else metric}
    return replace(run, history=history, problem=described)
