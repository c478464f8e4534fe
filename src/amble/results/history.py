"""The curves of a run: its costs, and the quality of its recorded models."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from amble import methods
from amble.arrays import Array, leaves
from amble.errors import need
from amble.problem import reference
from amble.problem.optimum import NoOptimum, Optimum, Watch
from amble.problem.problem import Problem
from amble.results.run import Run
from amble.schedule.cost import computed_s
from amble.schedule.rounds import Rounds

VALUES_AT_ONCE = 1 << 20  # scores in memory, while many models are measured


def with_history(run: Run, problem: Problem, optimum: bool = True, watch: Watch | None = None) -> Run:
    """The run with its curves computed: costs from the schedule, the rest from the recorded models.

    Columns that the history already has came from states that no longer exist, so they stay. What is measured from the
    optimum is left out where that is not known; then `problem["optimum"]` says why.
    """
    best = reference.known(problem, watch) if optimum else NoOptimum("optimum=False was given")
    columns = quality(problem, run.consensus, run.local, best)
    return described(run, problem, costs(run) | run.history | columns, best, optimum)


def with_histories(
    runs: Sequence[Run], problem: Problem, optimum: bool = True, watch: Watch | None = None
) -> list[Run]:
    """The same for many runs of one problem: their models are measured together."""
    best = reference.known(problem, watch) if optimum else NoOptimum("optimum=False was given")
    consensus, local = np.concatenate([run.consensus for run in runs]), np.concatenate([run.local for run in runs])
    columns = quality(problem, consensus, local, best, values_of)
    spent: dict[Any, dict[str, NDArray[Any]]] = {}  # runs that differ in a setting alone cost the same
    done, begin = [], 0
    for run in runs:
        end = begin + len(run.recorded)
        key = id(run.schedule), run.message_bytes, run.recorded.tobytes(), run.compute_s.tobytes()
        if key not in spent:
            spent[key] = costs(run)
        own = {name: column[begin:end] for name, column in columns.items()}
        done.append(described(run, problem, spent[key] | run.history | own, best, optimum))
        begin = end
    return done


def described(
    run: Run, problem: Problem, history: dict[str, NDArray[Any]], best: Optimum | NoOptimum, optimum: bool
) -> Run:
    """The run with this history, and what is known about the optimum."""
    about: dict[str, Any] = {"known": True, "asked": optimum, "why": None}
    metric = problem.metric(best.w) if isinstance(best, Optimum) else np.nan
    if isinstance(best, NoOptimum):
        about |= {"known": False, "why": best.why}
    known = {**run.problem, "optimum": about, "optimum_metric": None if np.isnan(metric) else metric}
    return replace(run, history=history, problem=known)


def one_by_one(problem: Problem, models: Array) -> Array:
    """sum_i f_i at each model."""
    return np.array([float(problem.value(w)) for w in models])


def quality(
    problem: Problem,
    consensus: Array,
    local: Array,
    best: Optimum | NoOptimum,
    values: Callable[[Problem, Array], Array] = one_by_one,
) -> dict[str, NDArray[Any]]:
    """The columns of the history that say how good models are."""
    sides = {"": consensus, "_local": local}
    with np.errstate(all="ignore"):  # a diverged model has an infinite loss, and the run says so
        columns = {"objective": values(problem, consensus)}
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
        busy_s = np.concatenate([[0.0], np.cumsum(computed_s(run.method, run.schedule, run.compute_s))])[k]
    idle = 1 - busy_s / np.where(time_s > 0, N * time_s, np.inf)
    return {"hop": hop, "time_s": time_s, "comm_units": units, "bytes": sent, "idle": idle}


def values_of(problem: Problem, models: Array) -> Array:
    """sum_i f_i at each of many models, compiled; the last digits may differ from those of `problem.value`."""
    if problem.total is None:
        return one_by_one(problem, models)
    jax = need("jax", "sim")
    p = models.shape[1]
    rows = max(np.size(leaf) for leaf in leaves(problem.total)) // p
    at_once = 1 << max(0, (VALUES_AT_ONCE // max(rows, p)).bit_length() - 1)
    values = []
    with jax.enable_x64(True):
        total, penalty = jax.device_put((problem.total, problem.whole_penalty))
        for begin in range(0, len(models), at_once):
            some = models[begin : begin + at_once]
            padded = np.pad(some, ((0, at_once - len(some)), (0, 0)), mode="edge")
            values.append(np.asarray(_values()(total, penalty, padded))[: len(some)])
    return np.concatenate(values)


@cache
def _values() -> Any:
    import jax

    def value(total: Any, penalty: Any, w: Any) -> Any:
        return total.value(w) if penalty is None else total.value(w) + penalty.value(w)

    return jax.jit(jax.vmap(value, in_axes=(None, None, 0)))
