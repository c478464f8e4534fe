"""PenaltyPath: the models of one problem under ever smaller penalties, and the one that held-out rows choose."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amble.arrays import Array, Indices
from amble.drawing import End, headline, label_ends, literal, new_figure, save
from amble.errors import AmbleError, as_path, need
from amble.files import write_whole
from amble.look import COLOURS, QUIET, RULE, look
from amble.problem.problem import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMED_MAX = 8  # coefficients that the figure's legend names: the largest


@final
@dataclass(frozen=True, eq=False)
class PenaltyPath:
    """Models along a path of penalties, the strongest first, made by `amble.path`.

    lambdas, l1_ratio   model k minimises  mean loss + lambdas[k] (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)
    models              one per row, in the units of training, as `run.model`
    hops                visits that the token made for each
    loss, loss_error    mean loss of the held-out rows under each penalty, and its standard error; nan without such rows
    metric              NMSE or accuracy of the held-out rows
    """

    problem: Problem
    lambdas: Array
    l1_ratio: float
    models: Array
    hops: Indices
    loss: Array
    loss_error: Array
    metric: Array
    message_bytes: int

    def __repr__(self) -> str:
        chosen = f", best {self.lambdas[self.best]:.3g}" if self.chooses else ""
        span = f"{len(self.lambdas)} lambdas from {self.lambdas[0]:.3g} to {self.lambdas[-1]:.3g}"
        return f"PenaltyPath({self.problem.name}: {span}{chosen}, {int(self.hops.sum()):,} hops)"

    @property
    def chooses(self) -> bool:
        """Whether rows were held out, so that one model is the best."""
        return bool(np.isfinite(self.loss).any())

    @property
    def best(self) -> int:
        """The index of the penalty with the smallest loss on the held-out rows."""
        if not self.chooses:
            raise AmbleError("no rows were held out, so no penalty is the best; give held_out= a share, such as 0.2.")
        return int(np.nanargmin(self.loss))

    @property
    def simplest(self) -> int:
        """The index of the strongest penalty whose held-out loss is within one standard error of the smallest."""
        bound = self.loss[self.best] + self.loss_error[self.best]
        return int(np.flatnonzero(self.loss <= bound)[0])

    @property
    def coef(self) -> Array:
        """Coefficients in the data's own units: one row per penalty, one column per column of the data; with several
        classes (penalties, classes, columns)."""
        return self._in_units()[0]

    @property
    def intercept(self) -> Array:
        """Intercepts in the data's own units, one per penalty; with several classes (penalties, classes)."""
        return self._in_units()[1]

    @property
    def nonzero(self) -> Indices:
        """How many coefficients each model has that are not zero, without the intercept."""
        return np.asarray(np.count_nonzero(self._flat(self.coef), axis=1))

    def _in_units(self) -> tuple[Array, Array]:
        scaling, width = self.problem.scaling, self._width
        assert scaling is not None
        w = self.models.reshape(len(self.models), -1, width + bool(self.problem.settings.get("intercept", True)))
        coef = w[..., :width] * scaling.y_std / scaling.X_std
        constant = w[..., width:].sum(axis=-1) * scaling.y_std + scaling.y_mean - coef @ scaling.X_mean
        return (coef[:, 0], constant[:, 0]) if w.shape[1] == 1 else (coef, constant)

    @property
    def _width(self) -> int:
        assert self.problem.scaling is not None
        return len(self.problem.scaling.X_mean)

    def predict(self, X: ArrayLike, k: int | None = None) -> NDArray[Any]:
        """Predictions of one model of the path.

        Parameters
        ----------
        X : rows (d, p) in the units of training, not scaled
        k : the index of its penalty, by default the best

        Returns
        -------
        array of d targets in their own units, or labels

        Example
        -------
        >>> import amble
        >>> data = amble.load("diabetes")
        >>> amble.path(data, lambdas=20).predict(data.X[:3]).round()
        array([205.,  69., 176.])
        """
        return np.asarray(self.problem.predict(self.models[self.best if k is None else k], X))

    def columns(self) -> dict[str, NDArray[Any]]:
        """The path as columns: penalties, costs, quality on the held-out rows, and every coefficient.

        Returns
        -------
        dict of arrays, one entry per penalty

        Example
        -------
        >>> import amble
        >>> list(amble.path(amble.load("diabetes"), lambdas=5).columns())[:9]
        ['lambda', 'l1', 'ridge', 'nonzero', 'hops', 'loss', 'loss_error', 'metric', 'coef age']
        """
        table: dict[str, NDArray[Any]] = {
            "lambda": self.lambdas,
            "l1": self.l1_ratio * self.lambdas,
            "ridge": (1 - self.l1_ratio) * self.lambdas,
            "nonzero": self.nonzero,
            "hops": self.hops,
            "loss": self.loss,
            "loss_error": self.loss_error,
            "metric": self.metric,
        }
        return table | dict(zip(self.names, self._flat(self.coef).T, strict=True))

    @property
    def names(self) -> list[str]:
        """What each coefficient is called: by its column and, with several classes, by the class."""
        columns = self.problem.columns or tuple(f"x{j}" for j in range(self._width))
        if self.coef.ndim == 2:
            return [f"coef {name}" for name in columns]
        labels = [] if self.problem.labels is None else self.problem.labels.tolist()
        return [f"coef {name} of {label}" for label in labels for name in columns]

    def _flat(self, values: Array) -> Array:
        return values.reshape(len(self.lambdas), -1)

    def to_pandas(self) -> Any:
        """The path as a table.

        Returns
        -------
        pandas.DataFrame : one row per penalty, the strongest first

        Example
        -------
        >>> import amble
        >>> table = amble.path(amble.load("diabetes"), lambdas=20).to_pandas()
        >>> table["nonzero"].tolist()[:5]
        [0, 2, 2, 3, 4]
        """
        return need("pandas", "all").DataFrame(self.columns())

    def save(self, path: str | Path) -> Path:
        """Write the table as a .csv file.

        Parameters
        ----------
        path : of the file, which is replaced if it is there

        Returns
        -------
        Path : that of the file

        Example
        -------
        >>> import amble
        >>> print(amble.path(amble.load("diabetes"), lambdas=5).save("path.csv"))
        path.csv
        """
        path, text = as_path(path, "the table"), io.StringIO()
        writer, table = csv.writer(text, lineterminator="\n"), self.columns()
        writer.writerow(table)
        writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
        write_whole({path: text.getvalue().encode()})
        return path

    def plot(self, path: str | Path) -> Path:
        """A figure of the coefficients and of the held-out loss against the penalty.

        Parameters
        ----------
        path : of the figure, whose ending (.png, .svg, .pdf) says its format

        Returns
        -------
        Path : that of the figure

        Example
        -------
        >>> import amble
        >>> print(amble.path(amble.load("diabetes"), lambdas=5).plot("path.png"))
        path.png
        """
        return save(path_figure(self), as_path(path, "the figure"))


@look()
def path_figure(path: PenaltyPath) -> "Figure":
    figure = new_figure(9 if path.chooses else 5, 3.4)
    panels = figure.subplots(1, 2 if path.chooses else 1, squeeze=False)[0]
    width = path._width
    each = path.models.reshape(len(path.models), -1, width + bool(path.problem.settings.get("intercept", True)))
    lines = each[..., :width].reshape(len(path.models), -1)
    largest = np.argsort(-np.abs(lines).max(axis=0), kind="stable")[:NAMED_MAX].tolist()
    names = [name.removeprefix("coef ") for name in path.names]
    for j in range(len(names)):
        style: dict[str, Any] = {"color": RULE, "lw": 0.6, "zorder": 1}
        if j in largest:
            style = {"color": COLOURS[largest.index(j)], "label": literal(names[j])}
        panels[0].plot(path.lambdas, lines[:, j], **style)
    panels[0].set_ylabel("coefficient of the scaled column")
    if path.chooses:
        low, high = path.loss - path.loss_error, path.loss + path.loss_error
        panels[1].fill_between(path.lambdas, low, high, color=COLOURS[0], alpha=0.2, lw=0)
        panels[1].plot(path.lambdas, path.loss, color=COLOURS[0])
        panels[1].set_ylabel("mean loss of the held-out rows")
    for axes in panels:
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.set_xlabel("lambda")
        if path.chooses:
            axes.axvline(path.lambdas[path.best], color=QUIET, lw=0.8, ls="--")
            axes.axvline(path.lambdas[path.simplest], color=QUIET, lw=0.8, ls=":")
    headline(figure, _seen(path, names), _about(path))
    ends = [End(path.lambdas[-1], lines[-1, j], names[j], COLOURS[k]) for k, j in enumerate(largest)]
    if not label_ends(panels[0], ends):
        panels[0].legend()
    return figure


def _seen(path: PenaltyPath, names: list[str]) -> str:
    """How many coefficients the chosen models have, or else which is the first."""
    total = len(names)
    if path.chooses:
        best, simplest = path.nonzero[path.best], path.nonzero[path.simplest]
        few = f"; {simplest} are as good within one standard error" if simplest < best else ""
        return f"The held-out rows choose {best} of {total} coefficients{few}"
    return f"{path.nonzero[-1]} of {total} coefficients are not zero under the smallest penalty"


def _about(path: PenaltyPath) -> str:
    marks = "; dashed: the least loss, dotted: the strongest penalty within one standard error" if path.chooses else ""
    return f"{path.problem.name}, l1_ratio {path.l1_ratio:g}{marks}"
