"""Telling a callback of a run's records, while the run goes on."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, Indices
from amble.engines import State
from amble.problem import reference
from amble.problem.optimum import UNASKED_GRADIENTS, NoOptimum, Optimum, Watch
from amble.problem.problem import Problem
from amble.progress import Meter, interruptible
from amble.results.history import costs, quality
from amble.results.run import Run
from amble.schedule.rounds import Rounds
from amble.schedule.schedule import Schedule
from amble.simulation.planning import record_hops
from amble.tracking.record import OnRecord, record_of


class Moment(NamedTuple):
    """A record as it is made."""

    schedule: Schedule | Rounds
    hop: int  # or round
    model: Array
    local: Array
    penalised: float | None
    state: State  # until the run goes on


Going = Generator[Moment, None, Run]


@dataclass
class Teller:
    """Calls `on_record` with each record, in order and once."""

    on_record: OnRecord
    run: Run  # as it begins
    problem: Problem
    best: Optimum | NoOptimum
    told: int = field(init=False)  # the last hop that it was told of
    schedule: Schedule | Rounds | None = None
    grid: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    costs: dict[str, Any] = field(default_factory=dict)  # at every hop of the grid

    def __post_init__(self) -> None:
        self.told = int(self.run.recorded[-1]) if len(self.run.recorded) else -1

    def __call__(self, moment: Moment) -> None:
        if moment.schedule is not self.schedule:
            self.schedule, self.grid = moment.schedule, record_hops(moment.schedule.hops, self.run.every)
            self.costs = costs(replace(self.run, schedule=moment.schedule, recorded=self.grid))
        k = int(np.searchsorted(self.grid, moment.hop))
        self._tell(moment, {name: column[k] for name, column in self.costs.items()})

    def last(self, run: Run) -> None:
        """The end of the run, which may be anywhere."""
        hop = int(run.recorded[-1])
        if hop > self.told:
            spent = costs(replace(run, recorded=run.recorded[-1:]))
            penalised = float(run.history["penalised"][-1]) if "penalised" in run.history else None
            moment = Moment(run.schedule, hop, run.consensus[-1], run.local[-1], penalised, run.state)
            self._tell(moment, {name: column[-1] for name, column in spent.items()})

    def _tell(self, moment: Moment, spent: dict[str, Any]) -> None:
        self.told = moment.hop
        columns = quality(self.problem, moment.model[None], moment.local[None], self.best)
        row = spent | {name: column[0] for name, column in columns.items()}
        row |= {} if moment.penalised is None else {"penalised": moment.penalised}
        self.on_record(record_of(row, self.run.label, 1, self.run.settings))


def told(going: Going, on_record: OnRecord | None, begun: Run, problem: Problem, optimum: bool, show: bool) -> Run:
    """The run that `going` ends with; it has `begun` so, and `on_record` is told of its records meanwhile. An exception
    of that ends the run, and is not taken for a mistake in a method."""
    teller = None
    with interruptible() as asked, closing(going):
        if on_record is not None:
            best: Optimum | NoOptimum = NoOptimum("optimum=False was given")
            if optimum:
                with Meter("optimum", None, show=show, unit="gradients") as meter:
                    best = reference.known(problem, Watch(UNASKED_GRADIENTS, meter.update, asked.is_set))
            teller = Teller(on_record, begun, problem, best)
        while True:
            try:
                moment = next(going)
            except StopIteration as end:
                run: Run = end.value
                break
            if teller is not None:
                teller(moment)
        if teller is not None:
            teller.last(run)
    return run
