"""The compute seconds of a visit: by a fixed model, or measured on this machine."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from amble import methods
from amble.schedule.timing import Timing

FLOPS_PER_S = 1e9  # the fixed cost model's agent: one operation a nanosecond
CALIBRATED_AGENTS_MAX = 64
CALIBRATED_LAPS, CALIBRATED_LAPS_LEAST = 7, 3
CALIBRATED_S = 1.0  # after this long, the least number of laps is enough


def compute_seconds(timing: Timing, method: Any, problem: Any) -> Any:
    """Seconds of one visit at each agent, slowdown included."""
    N = problem.agents
    if timing.compute == "model":
        seconds = modelled(method, problem)
    elif timing.compute == "measured":
        seconds = measured(method, problem)
    else:
        seconds = np.full(N, float(timing.compute))
    return seconds * timing.factors(N)


def modelled(method: Any, problem: Any) -> Any:
    """Operations of the objective's calls, at one a nanosecond; an objective of your own is taken as one us."""
    if problem.own is not None:
        return np.full(problem.agents, 1e-6)
    flops = sum(times * problem.stacked.flops(kind) for kind, times in method.work.items())
    if hasattr(method, "own_flops"):
        flops = flops + method.own_flops(problem.dimension)
    return np.asarray(flops, np.float64) / FLOPS_PER_S


def measured(method: Any, problem: Any, clock: Callable[[], float] = time.perf_counter) -> Any:
    """Each agent's median over some laps of a token that are really walked, in NumPy, on this machine.

    Of many agents the first 64 are timed, and the rest are given their median.
    """
    rules, rounds = methods.rules(method), methods.is_round(method)
    start = np.zeros(problem.dimension)
    timed = min(problem.agents, CALIBRATED_AGENTS_MAX)
    losses = [problem.objective(i) for i in range(timed)]
    agents = [rules.agent(f, start) for f in losses]
    slots = [None if rounds else rules.slot(start) for _ in losses]
    token = None if rounds else rules.token(start, problem.agents, 0)
    laps = np.zeros((CALIBRATED_LAPS, timed))
    begun = time.perf_counter()
    for lap in range(CALIBRATED_LAPS):
        if lap >= CALIBRATED_LAPS_LEAST and time.perf_counter() - begun > CALIBRATED_S:
            laps = laps[:lap]
            break
        heard = np.mean([agent.x for agent in agents], axis=0)
        for i, f in enumerate(losses):
            begin = clock()
            if rounds:
                agents[i] = rules.round(f, agents[i], heard, np.float64(1.0))
            else:
                agents[i], slots[i], token = rules.visit(f, agents[i], slots[i], token)
            laps[lap, i] = clock() - begin
    seconds = np.median(laps, axis=0)
    return np.concatenate([seconds, np.full(problem.agents - timed, np.median(seconds))])
