"""compare: several methods on one problem and network, with the same seed, walk and timing."""

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from amble import networks
from amble.drawing import save
from amble.errors import AmbleError, as_path, check_flags, need
from amble.methods import check, check_penalty
from amble.problem.problem import Problem
from amble.progress import interruptible
from amble.randomness import check_seed
from amble.results.kept import check_folder, remove_runs
from amble.results.run import Run
from amble.simulation import penalised as penalty
from amble.simulation.running import check_problem
from amble.simulation.simulate import simulate
from amble.tracking.record import OnRecord, check_callback

TABLE_WIDTH = 80
REPLACE = "give another folder, or again=True to replace it"


@final
@dataclass(frozen=True)
class Comparison:
    """Runs side by side, on one problem, made by `compare`; a sequence of Run."""

    runs: tuple[Run, ...]

    def __repr__(self) -> str:
        return f"Comparison({', '.join(run.label for run in self.runs)})"

    def __str__(self) -> str:
        """The table of where each run ended, as plain text."""
        from rich.console import Console

        console = Console(width=TABLE_WIDTH, no_color=True, color_system=None)
        with console.capture() as capture:
            console.print(self.table())
        return "\n".join(line.rstrip() for line in capture.get().splitlines()).strip("\n")

    def to_pandas(self) -> Any:
        """Every record of every run as one table.

        Returns
        -------
        pandas.DataFrame : the histories below each other, with the run's number, from 1 on, in the column `run` and its
            label in `method`

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> runs = amble.compare([amble.Relay(), amble.WPG()], problem, hops=20)
        >>> runs.to_pandas().groupby("method", sort=False)["hop"].max().to_dict()
        {'Relay (full)': 20, 'WPG (alpha=0.5)': 20}
        """
        pandas = need("pandas", "all")
        tables = [run.to_pandas() for run in self.runs]
        for k, (table, run) in enumerate(zip(tables, self.runs, strict=True), 1):
            table.insert(0, "run", k)
            table.insert(1, "method", run.label)
        return pandas.concat(tables, ignore_index=True)

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
        """Where each run ended. `print(runs)` shows it as text.

        Returns
        -------
        rich.table.Table : for a rich console, or for a notebook

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> runs = amble.compare([amble.Relay(), amble.WPG()], problem, hops=20)
        >>> runs.table().row_count
        2
        """
        from amble.report.terminal import comparison_table

        return comparison_table(self.runs)

    def plot(self, path: str | Path) -> Path:
        """A figure of the metric against virtual time and against communication, like the paper's.

        Parameters
        ----------
        path : of the figure, whose ending (.png, .svg, .pdf) says its format

        Returns
        -------
        Path : that of the figure

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> runs = amble.compare([amble.Relay(), amble.WPG()], problem, hops=20)
        >>> print(runs.plot("compare.png"))
        compare.png
        """
        from amble.report.figures import comparison_figure

        return save(comparison_figure(self.runs), as_path(path, "the figure"))

    def report(self, path: str | Path) -> Path:
        """One web page with plots, tables and settings. It opens without internet access.

        Parameters
        ----------
        path : of the page

        Returns
        -------
        Path : that of the page

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> runs = amble.compare([amble.Relay(), amble.WPG()], problem, hops=20)
        >>> print(runs.report("report.html"))
        report.html
        """
        from amble.report.export import write_page
        from amble.report.page import Page
        from amble.report.sections import group

        return write_page(as_path(path, "the page"), Page("Comparison of methods", group(self.runs)))[0]

    def save(self, folder: str | Path, again: bool = False) -> list[Path]:
        """Keep every run, as FOLDER/1-relay.json and .npz, and so on.

        Parameters
        ----------
        folder : that of the files; one that holds a comparison already is refused
        again : replace that comparison instead, its runs and its pictures

        Returns
        -------
        list of Path : those of the .json files

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> runs = amble.compare([amble.Relay(), amble.WPG()], problem, hops=20)
        >>> [path.name for path in runs.save("both")]
        ['1-relay.json', '2-wpg.json']
        """
        check_folder(as_path(folder, "the folder for the runs"), again, REPLACE)
        remove_runs(Path(folder))
        return [run.save(Path(folder) / file_name(k, run)) for k, run in enumerate(self.runs, 1)]


def compare(
    methods: Sequence[Any],
    problem: Problem,
    network: Any = None,
    *,
    hops: int | None = None,
    rounds: int | None = None,
    time_s: float | None = None,
    comm_units: int | None = None,
    tolerance: float | None = None,
    metric: float | None = None,
    walk: Any = "auto",
    timing: Any = "paper",
    seed: int = 0,
    start: Any = None,
    tune: bool | Sequence[bool] = False,
    every: int | None = None,
    penalised: bool = False,
    optimum: bool = True,
    engine: str = "auto",
    progress: bool = True,
    on_record: OnRecord | None = None,
    keep: str | Path | None = None,
    again: bool = False,
) -> Comparison:
    """Simulate each method on one problem and network, with the same seed, walk and timing.

    Parameters
    ----------
    methods : a list of methods with their settings
    problem, network, hops, rounds, time_s, comm_units, tolerance, metric, walk, timing, seed, start, every, optimum,
    engine, progress : as of `simulate`
    penalised : the same, for those of the methods that minimise an F; at least one must
    tune : choose the step or penalty of every method first, by pilot runs; or a list, one value per method
    on_record : as of `simulate`; a record says the number of its run
    keep : a folder in which each run is saved as soon as it is done; one that holds a comparison already is refused
    again : replace that one instead, as soon as the first run is done

    Returns
    -------
    Comparison : a sequence of Run; `print` shows where each ended. Ctrl-C keeps the runs made so far.

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=20)
    >>> runs = amble.compare([amble.Relay(), amble.WPG(alpha=0.5)], problem, "ring", hops=100)
    >>> [f"{run.history['objective'][-1]:.3f}" for run in runs]
    ['4.842', '4.888']
    """
    listed = "give a list of them, such as [amble.IBCD(), amble.WPG()]"
    if isinstance(methods, str) or not isinstance(methods, Sequence) or not methods:
        raise AmbleError(f"{methods!r} was given as methods; {listed}.")
    check_problem(problem)
    tuned = list(tune) if isinstance(tune, Sequence) and not isinstance(tune, str) else [tune] * len(methods)
    if len(tuned) != len(methods):
        raise AmbleError(f"tune has {len(tuned)} values for {len(methods)} methods; give one per method, or True.")
    for each in tuned:
        check_flags(tune=each)
    check_flags(penalised=penalised, optimum=optimum, progress=progress, again=again)
    check_callback(on_record)
    for method in methods:
        check_penalty(check(method), problem)
    if penalised:
        penalty.check(*methods)
        rest = dict.fromkeys(method.label for method in methods if not penalty.has_one(method))
        if rest:
            warnings.warn(f"{', '.join(rest)}: no column penalised, because there is no F to record.", stacklevel=2)
    network = networks.as_network(network, problem.agents, seed=check_seed(seed))
    options: dict[str, Any] = {
        "hops": hops,
        "rounds": rounds,
        "time_s": time_s,
        "comm_units": comm_units,
        "tolerance": tolerance,
        "metric": metric,
        "walk": walk,
        "timing": timing,
        "seed": seed,
        "start": start,
        "every": every,
        "optimum": optimum,
        "engine": engine,
        "progress": progress,
    }
    if keep is not None:
        check_folder(as_path(keep, "the folder for the runs"), again, REPLACE)
    runs: list[Run] = []
    with interruptible() as asked:
        for method, tune_it in zip(methods, tuned, strict=True):
            if asked.is_set():
                break
            options |= {"penalised": penalised and penalty.has_one(method), "tune": tune_it}
            options["on_record"] = on_record and _numbered(on_record, len(runs) + 1)
            runs.append(simulate(method, problem, network, **options))
            if keep is not None:
                if len(runs) == 1:
                    remove_runs(Path(keep))
                runs[-1].save(Path(keep) / file_name(len(runs), runs[-1]))
    return Comparison(tuple(runs))


def _numbered(on_record: OnRecord, k: int) -> OnRecord:
    return lambda record: on_record(replace(record, run=k))


def file_name(k: int, run: Run) -> str:
    """1-i-bcd, 2-api-bcd, ..."""
    return f"{k}-{re.sub(r'[^a-z0-9]+', '-', run.method.label.lower()).strip('-') or 'run'}"
