"""Survey: exact sums over all agents. It trains nothing, so it is not in the registry of methods to compare."""

from typing import Any, ClassVar, NamedTuple

from amble.arrays import Array
from amble.losses.objective import Objective
from amble.methods.parameters import method


class Part(NamedTuple):
    """What one agent adds to the sums, in place of a loss."""

    numbers: Array


class Last(NamedTuple):
    x: Array


@method
class Survey:
    r"""Each agent gives its numbers once: a gift method whose gifts are constant.

        v = numbers_i,  w = 1

    After one lap the token's total is the sum over all agents, and z their mean. As with every gift method, the dead
    are counted out, newcomers are added, and nothing counts twice.

    Parameters
    ----------
    tokens : how many walk at once

    Example
    -------
    >>> import numpy as np
    >>> import amble
    >>> from amble.methods.survey import Part, Survey
    >>> parts = [Part(np.array([1.0, 3.0])), Part(np.array([3.0, 5.0]))]
    >>> problem = amble.Problem.from_objectives(parts, dimension=2)
    >>> amble.simulate(Survey(), problem, hops=2, optimum=False).model
    array([2., 4.])
    """

    tokens: int = 1

    label: ClassVar[str] = "survey"
    weigh: ClassVar[str] = "scalar"
    positive: ClassVar[tuple[str, ...]] = ()
    work: ClassVar[dict[str, int]] = {}
    needs: ClassVar[tuple[str, ...]] = ()

    def agent(self, f: Objective, start: Array) -> Last:  # noqa: ARG002
        return Last(start)

    def gift(self, f: Any, agent: Last, z: Array) -> tuple[Last, Array, Array]:  # noqa: ARG002
        return Last(z), f.numbers, 1.0 + 0.0 * z[0]
