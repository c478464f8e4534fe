"""The optimum that runs of one problem are compared with: looked for once, and unasked only where that is cheap."""

from dataclasses import dataclass
from typing import Protocol

from amble.errors import AmbleError
from amble.problem import optimum
from amble.problem.optimum import NoOptimum, Optimum, Watch


@dataclass
class Searched:
    """What the searches for a problem's optimum have found."""

    result: Optimum | NoOptimum | None = None
    given_up: tuple[int, NoOptimum] | None = None  # the last unasked search that ended early, and its most gradients


class Sought(optimum.Losses, Protocol):
    """What is asked of a problem."""

    @property
    def searched(self) -> Searched: ...


def verified(problem: Sought) -> Optimum:
    """The optimum, however long the search takes; where there is none, an error says why."""
    searched = problem.searched
    if searched.result is None:
        searched.result = optimum.find(problem)
    if isinstance(searched.result, NoOptimum):
        raise AmbleError(searched.result.why)
    return searched.result


def known(problem: Sought, watch: Watch | None = None) -> Optimum | NoOptimum:
    """The optimum if it has been asked for, or has few unknowns and is found with the gradients that `watch` allows."""
    searched = problem.searched
    if searched.result is not None:
        return searched.result
    most = optimum.UNASKED_UP_TO if problem.own is None else optimum.UNASKED_UP_TO_OWN
    if problem.penalty is not None:
        most = optimum.UNASKED_UP_TO_PENALISED
    if problem.dimension > most:
        return NoOptimum(
            f"the optimum of {problem.dimension:,} unknowns is computed only on request (above {most:,}); "
            "call problem.optimum() before the run to have it."
        )
    watch = watch or Watch(optimum.UNASKED_GRADIENTS)
    if searched.given_up is not None and watch.gradients_max <= searched.given_up[0]:
        return searched.given_up[1]
    result = optimum.find(problem, watch)
    if isinstance(result, Optimum) or result.settled:
        searched.result = result
        return result
    advice = "call problem.optimum() before the run for a longer search"
    given_up = NoOptimum(f"{result.why.rstrip('.')}; {advice}.", settled=False)
    searched.given_up = watch.gradients_max, given_up
    return given_up
