"""Sweep: one row per run, the best setting with its spread over seeds, and tests between two methods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from amble import methods
from amble.drawing import save
from amble.errors import AmbleError, as_path, need, unknown
from amble.files import write_whole
from amble.sweeps.heatmap import heatmap
from amble.sweeps.measured import LABELS, Significance, Spread, is_higher_better, label_of, quantile, values_of
from amble.sweeps.plan import Case
from amble.sweeps.significance import significance


@final
@dataclass(frozen=True, eq=False)
class Sweep:
    """The runs of a sweep, one row each; made by `amble.sweep`. `print` shows the best settings."""

    cases: tuple[Case, ...]
    rows: tuple[dict[str, Any], ...]
    missing: int = 0  # runs that were asked for and are not made yet
    accuracy: bool = False  # whether a higher metric is better

    def __len__(self) -> int:
        return len(self.cases)

    def __repr__(self) -> str:
        left = f", {self.missing} missing" if self.missing else ""
        return f"Sweep({len(self)} runs of {len({case.method for case in self.cases})} settings{left})"

    def __str__(self) -> str:
        if not self.cases:
            return repr(self)
        return "\n".join([repr(self), *(str(each) for each in self.ranked()[:10])])

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The table: what a run was, then what it measured."""
        names = dict.fromkeys(name for case in self.cases for name in methods.settings(case.method))
        settings = [methods.settings(case.method) for case in self.cases]
        table = {"method": np.array([case.method.label for case in self.cases])}
        for name in names:
            values = [each.get(name) for each in settings]
            numbers = all(value is None or isinstance(value, int | float) for value in values)
            whole = numbers and all(isinstance(value, int) for value in values)
            table[name] = np.array(
                values if whole else [np.nan if value is None else value for value in values] if numbers
                else ["" if value is None else str(value) for value in values]
            )  # fmt: skip
        table |= {name: np.array([getattr(case, name) for case in self.cases]) for name in LABELS[1:]}
        return table | {
            name: np.array([row[name] for row in self.rows]) for name in (self.rows[0] if self.rows else ())
        }

    def to_pandas(self) -> Any:
        """The table, one row per run.

        Returns
        -------
        pandas.DataFrame : the method and its settings, network, split and seed; why the run stopped; its hops, time_s,
            comm_units and bytes; objective, suboptimality, distance and metric at its end; and for each share of
            `within`, what it had cost when its metric came that near to the optimum's for good, nan where it did not

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> sweep = amble.sweep(amble.IBCD(), problem, grid={"tau": [0.1, 1.0]}, seeds=range(3), hops=200)
        >>> sweep.to_pandas().groupby("tau")["objective"].median().round(3).to_dict()
        {0.1: 4.952, 1.0: 4.89}
        """
        return need("pandas", "all").DataFrame(self.columns)

    def save(self, path: str | Path) -> Path:
        """Write the table to a file.

        Parameters
        ----------
        path : of the file, which ends in .csv or .parquet

        Returns
        -------
        Path : that of the file

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> sweep = amble.sweep(amble.Relay(), problem, seeds=range(3), hops=100)
        >>> print(sweep.save("sweep.csv"))
        sweep.csv
        """
        path = as_path(path, "the table")
        if path.suffix not in (".csv", ".parquet"):
            raise AmbleError(f"{path.name!r} was given for a table; end it in .csv or .parquet.")
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            columns = self.columns
            lines = [",".join(columns), *(",".join(map(cell, row)) for row in zip(*columns.values(), strict=True))]
            write_whole({path: ("\n".join(lines) + "\n").encode()})
        else:
            import io

            arrow, parquet = need("pyarrow", "parquet"), need("pyarrow.parquet", "parquet")
            content = io.BytesIO()
            parquet.write_table(
                arrow.table({name: arrow.array(column) for name, column in self.columns.items()}), content
            )
            write_whole({path: content.getvalue()})
        return path

    def ranked(self, by: str = "objective") -> list[Spread]:
        """All settings, the best first: by the median over seeds and splits, for each network.

        Parameters
        ----------
        by : the measured column that counts: objective, distance, metric, time_s_within_0.01 and so on. The lower, the
            better, but for accuracy

        Returns
        -------
        list of Spread

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> sweep = amble.sweep(amble.IBCD(), problem, grid={"tau": [0.1, 1.0]}, seeds=range(3), hops=200)
        >>> [each.settings["tau"] for each in sweep.ranked()]
        [1.0, 0.1]
        """
        values, sign = values_of(self, by), -1.0 if is_higher_better(self, by) else 1.0
        settings: dict[tuple[Any, str], list[int]] = {}
        for k, case in enumerate(self.cases):
            settings.setdefault((case.method, case.network), []).append(k)
        ranked = []
        for (method, network), some in settings.items():
            own = values[some]
            low, median, high = sorted(sign * quantile(own, share) for share in (0.25, 0.5, 0.75))
            missed = int(np.isinf(own).sum())
            label = method.label
            ranked.append(
                Spread(label, methods.settings(method), network, by, median, low, high, len(some), missed)
            )  # fmt: skip
        return sorted(ranked, key=lambda each: (sign * each.median, each.missed, sign * each.high))

    def best(self, by: str = "objective") -> Spread:
        """The best setting, with its spread over seeds.

        Parameters
        ----------
        by : as of `ranked`

        Returns
        -------
        Spread : method, settings, network, median, low, high (the quartiles), runs, missed

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> sweep = amble.sweep(amble.IBCD(), problem, grid={"tau": [0.1, 1.0]}, seeds=range(3), hops=200)
        >>> sweep.best().settings
        {'tau': 1.0, 'tokens': 1}
        """
        self._refuse_nothing()
        return self.ranked(by)[0]

    def compare(self, a: str | Mapping[str, Any], b: str | Mapping[str, Any], by: str = "objective") -> Significance:
        """Whether two methods differ, over pairs of runs with the same seed, network and split.

        Parameters
        ----------
        a, b : a method's name, or a mapping of its name and settings: {"method": "API-BCD", "tau": 0.1}. Of several
            settings that it fits, the best counts; it was chosen on the same seeds, which flatters it
        by : as of `ranked`

        Returns
        -------
        Significance : pairs, a_better, b_better, ratio (the median of a's value by b's), p_value (Wilcoxon signed-rank,
            two-sided; a run without a value counts as worse than all that have one)

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> sweep = amble.sweep([amble.Relay(), amble.WPG()], problem, seeds=range(8), hops=200)
        >>> result = sweep.compare("Relay", "WPG", by="hops_within_0.01")
        >>> result.a_better, round(result.p_value, 4)
        (8, 0.0078)
        """
        self._refuse_nothing()
        return significance(self, self._chosen(a, by), self._chosen(b, by), by)

    def _chosen(self, wanted: str | Mapping[str, Any], by: str) -> Any:
        """The method that fits, the best of several."""
        asked = {"method": wanted} if isinstance(wanted, str) else dict(wanted)
        own = {case.method: {"method": case.method.label, **methods.settings(case.method)} for case in self.cases}
        fit = [method for method, settings in own.items() if asked.items() <= settings.items()]
        if not fit:
            raise unknown("method in this sweep", str(wanted), {label_of(case.method) for case in self.cases})
        for best in self.ranked(by):
            for method in fit:
                if own[method] == {"method": best.method, **best.settings}:
                    return method
        return fit[0]

    def _refuse_nothing(self) -> None:
        if not self.cases:
            raise AmbleError("no run of this sweep is made yet; run it again.")

    def plot(self, path: str | Path, x: str | None = None, y: str | None = None, by: str = "objective") -> Path:
        """A heat map: the median of a measured column over seeds, for two settings. Where others vary too, a cell has
        that of the best one.

        Parameters
        ----------
        path : of the figure, whose ending (.png, .svg, .pdf) says its format
        x, y : settings, or method, network, split, seed; by default the setting that varies most, and the method, or
            the next setting if there is one method
        by : as of `ranked`

        Returns
        -------
        Path : that of the figure

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> grid = {"tau": [0.01, 0.1, 1.0], "tokens": [1, 2, 5]}
        >>> sweep = amble.sweep(amble.APIBCD(), problem, grid=grid, seeds=range(2), hops=200)
        >>> print(sweep.plot("sweep.png"))
        sweep.png
        """
        self._refuse_nothing()
        return save(heatmap(self, x, y, by), as_path(path, "the figure"))


def cell(value: Any) -> str:
    """A value in a CSV file; nothing for one that is not there."""
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else repr(float(value))
    text = str(value)
    return f'"{text}"' if "," in text else text


def collected(cases: Sequence[Case], keys: Sequence[str], rows: Mapping[str, dict[str, Any]], accuracy: bool) -> Sweep:
    """The sweep of those cases whose rows are there."""
    made = [(case, rows[key]) for case, key in zip(cases, keys, strict=True) if key in rows]
    own = tuple(case for case, _ in made)
    return Sweep(own, tuple(row for _, row in made), len(cases) - len(made), accuracy)
