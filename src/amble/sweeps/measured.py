"""What the runs of a sweep measured: columns, medians and quartiles, and the types of the answers about them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from amble.arrays import Array
from amble.errors import unknown
from amble.results.run import settings_text
from amble.sweeps.plan import Case

LABELS = ("method", "network", "split", "seed")


class Measured(Protocol):
    """What is asked of a sweep."""

    @property
    def cases(self) -> Sequence[Case]: ...
    @property
    def rows(self) -> Sequence[dict[str, Any]]: ...
    @property
    def accuracy(self) -> bool: ...


class Spread(NamedTuple):
    """One setting of a sweep and what its runs measured; `Sweep.best` and `Sweep.ranked` make it."""

    method: str
    settings: dict[str, Any]
    network: str
    by: str
    median: float  # over seeds and splits; infinite where half of the runs or more have no value
    low: float  # a quarter of the runs is below
    high: float  # a quarter is above
    runs: int
    missed: int  # runs without a value: they diverged, or did not come that near within their budget

    @property
    def label(self) -> str:
        """The method and its settings."""
        return labelled(
            self.method,
            ", ".join(f"{name}={value}" for name, value in self.settings.items() if value is not None),
        )

    def __str__(self) -> str:
        missed = f", {self.missed} of {self.runs} runs without one" if self.missed else f", {self.runs} runs"
        return (
            f"{self.label} on {self.network}: {self.by} {self.median:.4g} ({self.low:.4g} to {self.high:.4g}"
            f" in the middle half{missed})"
        )


class Significance(NamedTuple):
    """How two settings differ over paired seeds; `Sweep.compare` makes it."""

    a: str
    b: str
    by: str
    pairs: int
    a_better: int  # in how many pairs
    b_better: int
    ratio: float  # the median over pairs of a's value by b's, where both have one
    p_value: float  # of the Wilcoxon signed-rank test, two-sided

    def __str__(self) -> str:
        return (
            f"{self.by} of {self.a} against {self.b}: better in {self.a_better} of {self.pairs} pairs, worse in "
            f"{self.b_better}; median ratio {self.ratio:.4g}; p = {self.p_value:.2g} (Wilcoxon signed-rank)"
        )


def values_of(sweep: Measured, by: str) -> Array:
    """One measured column, with its sign changed where a higher value is better; infinite where a run has none."""
    known = [name for name in sweep.rows[0] if name != "stopped"] if sweep.rows else []
    if by not in known:
        raise unknown("measured column", by, known)
    column = np.array([row[by] for row in sweep.rows], np.float64)
    diverged = np.array([row["stopped"] == "diverged" for row in sweep.rows])
    none = np.isnan(column) | np.isinf(column) | diverged
    return np.where(none, np.inf, -column if is_higher_better(sweep, by) else column)


def is_higher_better(sweep: Measured, by: str) -> bool:
    return sweep.accuracy and by.startswith("metric")


def label_of(method: Any) -> str:
    return labelled(method.label, settings_text(method))


def labelled(name: str, settings: str) -> str:
    return f"{name} ({settings})" if settings else name


def quantile(values: Array, share: float) -> float:
    """One of the values: above the median, the higher of two, so that what fails half of the time has none."""
    return float(np.quantile(values, share, method="lower" if share < 0.5 else "higher"))
