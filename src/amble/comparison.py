"""compare: several methods on one problem and network, with the same seed, walk and timing."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amble import methods
from amble.network import Network
from amble.problem import Problem
from amble.run import Run
from amble.simulation import simulate


@dataclass(frozen=True)
class Comparison:
    """Runs side by side; a sequence of Run. `best_metric` is the metric of the centralised optimum."""

    runs: tuple[Run, ...]
    task: str
    best_metric: float
    warned: tuple[str, ...] = ()  # what a person should know about the runs

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, k: int) -> Run:
        return self.runs[k]

    def table(self) -> Any:
        """A rich table of where each run ended (print it, or let a notebook show it)."""
        from amble.report.table import comparison_table

        return comparison_table(self)

    def plot(self, path: str | Path) -> Path:
        """The metric against virtual time and against communication, like the paper's figures."""
        from amble.report.figures import comparison_figure

        return comparison_figure(self, Path(path))

    def save(self, folder: str | Path) -> list[Path]:
        """Every run as FOLDER/1-i-bcd.npz and .json, and so on."""
        names = [f"{k}-{run.method.label.lower()}" for k, run in enumerate(self.runs, 1)]
        return [run.save(Path(folder) / name) for name, run in zip(names, self.runs, strict=True)]


def compare(chosen: Sequence[Any], problem: Problem, network: Network | None = None, **options: Any) -> Comparison:
    """Simulate each method; takes the options of `simulate`. Ctrl-C keeps the runs made so far."""
    for method in chosen:
        methods.check(method)
    runs: list[Run] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for method in chosen:
            try:
                runs.append(simulate(method, problem, network, **options))
            except KeyboardInterrupt:  # outside a replay, where nothing of this run is there yet
                if not runs:
                    raise
                break
            if runs[-1].stopped == "interrupted":
                break
    best = problem.metric(problem.optimum().w)
    said = tuple(str(each.message) for each in caught if issubclass(each.category, UserWarning))
    return Comparison(tuple(runs), problem.task, best, said)
