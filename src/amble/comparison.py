"""compare: several methods on one problem and network, with the same seed, walk and timing."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from amble import methods, penalised
from amble.errors import AmbleError
from amble.network import Network
from amble.problem import Problem
from amble.progress import interruptible
from amble.run import Run
from amble.simulation import simulate


@dataclass(frozen=True)
class Comparison:
    """Runs side by side, on one problem; a sequence of Run."""

    runs: tuple[Run, ...]

    def __repr__(self) -> str:
        return f"Comparison({', '.join(run.label for run in self.runs)})"

    @property
    def task(self) -> str:
        return str(self.runs[0].problem["task"])

    @property
    def best_metric(self) -> float:
        """The metric of the centralised optimum; nan without test rows."""
        known = self.runs[0].problem["optimum_metric"]
        return float("nan") if known is None else float(known)

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

    def report(self, path: str | Path) -> Path:
        """One web page with plots, tables and settings, that opens without a network."""
        from amble.report.page import write_page
        from amble.report.sections import group

        return write_page(Path(path), group(self.runs), title="Comparison of methods")

    def save(self, folder: str | Path) -> list[Path]:
        """Every run as FOLDER/1-i-bcd.json and .npz, and so on."""
        return [run.save(Path(folder) / file_name(k, run)) for k, run in enumerate(self.runs, 1)]


def compare(
    chosen: Sequence[Any],
    problem: Problem,
    network: Network | None = None,
    *,
    keep: str | Path | None = None,
    **options: Any,
) -> Comparison:
    """Simulate each method; takes the options of `simulate`. Ctrl-C keeps the runs made so far.

    `keep` is a folder in which each run is saved as soon as it is done.
    """
    if isinstance(chosen, str) or not isinstance(chosen, Sequence) or not chosen:
        raise AmbleError(f"{chosen!r} was given as methods; give a list of them, such as [amble.IBCD(), amble.WPG()].")
    for method in chosen:
        methods.check(method)
        if options.get("penalised"):
            penalised.check(method)
    runs: list[Run] = []
    with interruptible() as asked:
        for method in chosen:
            if asked.is_set():
                break
            runs.append(simulate(method, problem, network, **options))
            if keep is not None:
                runs[-1].save(Path(keep) / file_name(len(runs), runs[-1]))
    return Comparison(tuple(runs))


def file_name(k: int, run: Run) -> str:
    """1-i-bcd, 2-api-bcd, ..."""
    return f"{k}-{re.sub(r'[^a-z0-9]+', '-', run.method.label.lower()).strip('-') or 'run'}"
