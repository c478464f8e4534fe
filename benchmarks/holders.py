"""What everyone who holds a model has, not the mean of their models.

A run's model is the mean of its tokens' estimates, or of its agents' models. Nobody holds that mean: before the first
message, the mean of N models that were fitted apart can be good already. So a level counts as reached when the models
of all tokens (of a method with tokens), or of all agents (of gossip), are that good on average. With one token, or with
a server, one model is all there is.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import amble
from amble import engines, methods
from amble.arrays import tree_map


def holders(run: amble.Run) -> str:
    """Who holds models: "one", "tokens" or "agents"."""
    if methods.walks(run.method):
        return "one" if methods.tokens(run.method) == 1 else "tokens"
    return "one" if methods.is_round(run.method) and run.method.hears == "mean" else "agents"


def held(run: amble.Run, problem: amble.Problem, first: int) -> list[Any]:
    """The models of all holders at each record of the run from number `first` on, which takes a replay."""
    if holders(run) == "one":
        return [model[None] for model in run.consensus[first:]]
    machine = engines.engine_for("auto", run.method, problem, run.network, run.start, run.meets)
    rule = methods.rules(run.method, np.zeros(problem.dimension), problem.penalty, run.meets)
    state, hop, models = machine.start(), 0, []
    for record in run.recorded[first:].tolist():
        state = machine.advance(state, run.schedule, hop, record)
        hop = record
        if holders(run) == "agents":
            models.append(np.array(state.agents.x))
            continue
        tokens = state.on_numpy().tokens
        each = (tree_map(lambda a: a[m], tokens) for m in range(methods.tokens(run.method)))  # noqa: B023
        models.append(np.array([rule.estimate(token) for token in each]))
    return models


def first_good(
    run: amble.Run, problem: amble.Problem, firsts: Sequence[int | None], good: Sequence[Callable[[Any], bool]]
) -> list[int | None]:
    """For each level, the record from which on all holders' models are good; `firsts` are those of the run's model.

    Found by halving: what is good at a record is taken to stay so until the end.
    """
    there = [first for first in firsts if first is not None]
    if not there or holders(run) == "one":
        return list(firsts)
    begin = min(there)
    models = held(run, problem, begin)
    found: list[int | None] = []
    for first, fine in zip(firsts, good, strict=True):
        if first is None or not fine(models[-1]):
            found.append(None)
            continue
        low, high = first - begin, len(models) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if fine(models[middle]) else (middle + 1, high)
        found.append(low + begin)
    return found
