"""Model: what training ends with, the same for a simulated run and a live one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array
from amble.data.targets import Targets
from amble.errors import AmbleError, as_path
from amble.losses import LOSSES
from amble.losses.logistic import sigmoid
from amble.problem.assemble import Scaling, prepare
from amble.problem.extras import extras, refuse_offset
from amble.problem.prediction import predict
from amble.problem.rows import check_width
from amble.results import model_file
from amble.results.exporting import pipeline
from amble.results.judging import Measures, measures, measures_at, score
from amble.results.onnx_file import write_onnx
from amble.results.partial import TIES
from amble.results.summary import Fit, Summary, summarise
from amble.results.sums import Sums
from amble.results.tables import Given, features_of, moved_by, rows_of

INTERCEPT = "intercept"  # its name in tables
PENALTIES = ("ridge", "l1")  # settings that pull coefficients towards zero


@final
@dataclass(frozen=True, eq=False)
class Model:
    """A trained linear model, made by `Run.trained` and `load_model`.

    `coef_` and `intercept_` are in the units of the data; `w` is in the model's own: of scaled columns, the intercept
    last, with several classes one such row per class.
    """

    task: str
    loss: str
    columns: int | tuple[str, ...]  # how many, or their names
    labels: tuple[Any, ...]  # the classes, in the order of the model's numbers; none: a regression
    intercept: bool
    w: Array
    scaling: Scaling
    target: str | int | None = None  # the column that is predicted
    penalty: Mapping[str, float] = field(default_factory=dict)  # what it was trained with, such as ridge
    sums: Sums | None = None  # over the rows of all agents, at w: what statistics are made of
    about: Mapping[str, Any] = field(default_factory=dict)  # where it comes from: run, data, agents, method, versions

    def __post_init__(self) -> None:
        unknowns = LOSSES[self.loss].unknowns(self.width + self.intercept, len(self.labels))
        if np.shape(self.w) != (unknowns,):
            raise AmbleError(f"w has shape {np.shape(self.w)}; a model of these columns has {unknowns} numbers.")

    def __repr__(self) -> str:
        rows = "" if self.sums is None else f", {self.sums.train.rows:,.0f} rows of {self.sums.agents:,.0f} agents"
        return f"Model({self.loss}: {self.width} columns{rows})"

    @property
    def width(self) -> int:
        """How many columns rows have."""
        return self.columns if isinstance(self.columns, int) else len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names; x1, x2, ... where they have none."""
        return tuple(f"x{k + 1}" for k in range(self.columns)) if isinstance(self.columns, int) else self.columns

    @property
    def coef_(self) -> Array:
        """In the units of the data: (columns,) or, of labels, (1, columns) for two and (labels, columns) for more."""
        coefficients, _ = self._original()
        return coefficients if self.labels else coefficients[0]

    @property
    def intercept_(self) -> Any:
        """In the units of the data: a number or, of labels, one for each row of `coef_`."""
        _, intercepts = self._original()
        return intercepts if self.labels else float(intercepts[0])

    @property
    def params(self) -> dict[str, Any]:
        """The intercept and the coefficients by their names; with more than two labels, for each label such a dict."""
        coefficients, intercepts = self._original()
        named = self._has_constant()
        each = [
            {**({INTERCEPT: constant} if named else {}), **dict(zip(self.names, row, strict=True))}
            for row, constant in zip(coefficients.tolist(), intercepts.tolist(), strict=True)
        ]
        return each[0] if len(each) == 1 else dict(zip(self.labels, each, strict=True))

    def _has_constant(self) -> bool:
        """Cox's model has none: it would cancel. One that was trained without may still have one, from the scaling."""
        return self.loss not in TIES and (self.intercept or bool(np.any(self._original()[1])))

    def _matrix(self) -> Array:
        """One row per linear predictor, in the model's own units: of two labels, the second against the first."""
        W = self.w.reshape(-1, self.width + self.intercept)
        return W[1:] - W[:1] if len(W) == 2 else W

    def _original(self) -> tuple[Array, Array]:
        W, scaling = self._matrix(), self.scaling
        slopes = W[:, : self.width] / scaling.X_std
        constants = (W[:, -1] if self.intercept else np.zeros(len(W))) - slopes @ scaling.X_mean
        return scaling.y_std * slopes, scaling.y_mean + scaling.y_std * constants

    def decision_function(self, X: Given, offset: ArrayLike | None = None, exposure: ArrayLike | None = None) -> Array:
        """The linear predictor: of labels the log odds, of poisson and gamma the logarithm of the mean, of cox that of
        the hazard relative to the mean row's.

        Parameters
        ----------
        X : a table as in training, a DataFrame or a mapping from names to values: columns are taken by name, others are
            ignored, and text and missing cells are treated as in training; or an array (d, p) in the model's columns
        offset, exposure : as of `predict`

        Returns
        -------
        array (d,); with more than two labels (d, labels), up to a number that is the same for all labels

        Example
        -------
        >>> import amble
        >>> data = amble.load("breast_cancer")
        >>> model = amble.simulate(amble.Relay(form="full"), amble.split(data, agents=5), hops=20).trained()
        >>> model.decision_function(data.X[:3]).shape
        (3,)
        """
        moved = moved_by(X, self.about, offset, exposure)
        X = check_width(rows_of(X, self.columns, self.about), self.width, "the rows")
        rows, added = prepare(X, self.scaling, self.intercept), extras(len(X), "the rows", **moved).offset
        if added is not None:
            refuse_offset(self.loss)
        eta = rows @ self._matrix().T
        if eta.shape[1] > 1:
            return eta
        return np.asarray(eta[:, 0] * self.scaling.y_std + self.scaling.y_mean + (0.0 if added is None else added))

    def predict(self, X: Given, offset: ArrayLike | None = None, exposure: ArrayLike | None = None) -> Targets:
        """Targets in their own units, or labels.

        Parameters
        ----------
        X : a table as in training, a DataFrame or a mapping from names to values: columns are taken by name, others are
            ignored, and text and missing cells are treated as in training; or an array (d, p) in the model's columns
        offset : of poisson and gamma: what is added to the logarithm of the mean
        exposure : of poisson and gamma: what the mean is in proportion to, such as years. If neither is given, a table
            must have those that the table of training had

        Returns
        -------
        array of d targets; of cox, the logarithm of the hazard relative to the mean row's

        Example
        -------
        >>> import amble
        >>> data = amble.load("diabetes")
        >>> model = amble.simulate(amble.Relay(), amble.split(data), hops=20).trained()
        >>> model.predict(data.X[:3]).round()
        array([208.,  68., 180.])
        """
        known = self.scaling, self.intercept, self.labels or None, None, self.loss
        moved = moved_by(X, self.about, offset, exposure)
        return predict(self.w, rows_of(X, self.columns, self.about), *known, **moved)

    def predict_proba(self, X: Given) -> Array:
        """The probability of each label.

        Parameters
        ----------
        X : rows, as of `predict`

        Returns
        -------
        array (d, labels), in the order of `labels`

        Example
        -------
        >>> import amble
        >>> data = amble.load("breast_cancer")
        >>> model = amble.simulate(amble.Relay(form="full"), amble.split(data, agents=5), hops=20).trained()
        >>> model.predict_proba(data.X[:3]).sum(axis=1).round(6)
        array([1., 1., 1.])
        """
        if not self.labels:
            raise AmbleError(f"the model's loss is {self.loss}, which has no labels; use predict.")
        eta = self.decision_function(X)
        if eta.ndim == 1:
            return np.column_stack([sigmoid(-eta), sigmoid(eta)])
        up = np.exp(eta - eta.max(axis=1, keepdims=True))
        return np.asarray(up / up.sum(axis=1, keepdims=True))

    def score(
        self,
        X: Given,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        offset: ArrayLike | None = None,
    ) -> float:
        """How good the model is on rows, as scikit-learn scores it; the larger, the better.

        Parameters
        ----------
        X, y : rows, as of `predict`, and targets
        sample_weight : of each row
        exposure, offset : as of `predict`

        Returns
        -------
        float : R2; of labels the accuracy; of poisson and gamma D2, the share of the deviance that is explained; of
            cox the concordance of pairs

        Example
        -------
        >>> import amble
        >>> data = amble.load("diabetes")
        >>> model = amble.simulate(amble.Relay(), amble.split(data, test=0), hops=40).trained()
        >>> round(model.score(data.X, data.y), 3)
        0.518
        """
        s = np.ones(np.shape(y)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        return score(self.loss, self.predict(X, offset, exposure), np.asarray(y), s)

    def measures(self, test: bool = False, agent: str | None = None) -> Measures:
        """How good the model is on the agents' rows, from their sums.

        Parameters
        ----------
        test : on the rows that were held out, not on those of training
        agent : on the rows of this agent alone, for the model of a live run with a survey; by default on those of all

        Returns
        -------
        dict : rows, and by the task R2, RMSE and NMSE, or accuracy, log loss and AUC, or deviance, or concordance

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"))
        >>> model = amble.simulate(amble.Relay(), problem, hops=40).trained(problem)
        >>> round(model.measures()["R2"], 3)
        0.516
        """
        sums, y_std = self._known_sums(), self.scaling.y_std
        if agent is None:
            return measures(self.loss, sums, test, y_std, self.intercept)
        return measures_at(agent, self.loss, sums, self.about.get("judged", {}), test, y_std)

    def _known_sums(self) -> Sums:
        if self.sums is None:
            raise AmbleError(
                "this model has no sums over its agents' rows, which statistics are made of; use run.trained(problem), "
                "or train again with this version of amble."
            )
        return self.sums

    def summary(self, cov: str = "model", level: float = 0.95) -> Summary:
        """Coefficients with standard errors, tests and confidence intervals, in the units of the data.

        They are those of one table of all agents' rows. With a penalty there are none: use cov="none" for the
        coefficients and the goodness of fit alone.

        Parameters
        ----------
        cov : model (the loss is the likelihood of the data), robust (sandwich by row, HC0), cluster (sandwich by agent,
            with G/(G-1) (n-1)/(n-k) for G agents and k coefficients) or none
        level : of the confidence intervals

        Returns
        -------
        Summary : prints as a table; has to_pandas() and to_latex()

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), ridge=0.0, weights="rows")
        >>> model = amble.simulate(amble.Relay(form="full"), problem, hops=60).trained(problem)
        >>> round(float(model.summary().std_err[0]), 3)
        2.899
        """
        return summarise(self._fit(), self._known_sums(), cov, level)

    def _fit(self) -> Fit:
        """The parameters that a table shows: each a linear function of the model's own numbers."""
        scaling, p = self.scaling, self.width
        slopes = np.hstack([np.diag(scaling.y_std / scaling.X_std), np.zeros((p, int(self.intercept)))])
        names = self.names
        if self.intercept:
            first = scaling.y_std * np.append(-scaling.X_mean / scaling.X_std, 1.0)
            slopes, names = np.vstack([first, slopes]), (INTERCEPT, *names)
        W = self.w.reshape(-1, p + self.intercept)
        contrasts = W[1:] - W[:1] if self.labels and len(W) > 1 else W  # with several classes: against the first
        shift = np.zeros(len(names))
        if self.intercept:
            shift[0] = scaling.y_mean
        groups = tuple(map(str, self.labels[1:])) if len(contrasts) > 1 else ()
        return Fit(
            loss=self.loss,
            names=names,
            groups=groups,
            values=np.concatenate([slopes @ row + shift for row in contrasts]),
            transform=np.asarray(np.kron(np.eye(len(contrasts)), slopes), np.float64),
            own_names=(*self.names, *([INTERCEPT] if self.intercept else [])),
            classes=len(W) if self.labels else 0,
            y_std=scaling.y_std,
            y_mean=scaling.y_mean,
            intercept=self.intercept,
            penalty={key: value for key, value in self.penalty.items() if value},
            target=None if self.target is None else str(self.target),
            labels=tuple(map(str, self.labels)),
            about=self.about,
        )

    def to_sklearn(self) -> Any:
        """As a fitted pipeline of scikit-learn: the scaling, and the estimator that has this loss. It takes a DataFrame
        with the columns of the table of training: text is one-hot encoded in it, and missing cells (nan) are filled if
        they were in training. Offsets and exposures are left out.

        Returns
        -------
        sklearn.pipeline.Pipeline, for predictions, and for joblib or skops to save

        Example
        -------
        >>> import amble
        >>> data = amble.load("diabetes")
        >>> model = amble.simulate(amble.Relay(), amble.split(data), hops=20).trained()
        >>> import pandas as pd
        >>> model.to_sklearn().predict(pd.DataFrame(data.X[:3], columns=data.columns)).round()
        array([208.,  68., 180.])
        """
        how = self.intercept, self.labels, self.columns, self.penalty, self.about
        return pipeline(self.loss, self._matrix(), self.scaling, *how)

    def to_onnx(self, path: str | Path) -> Path:
        """As a file that other languages predict with, in 64-bit floats. Offsets and exposures are left out.

        Parameters
        ----------
        path : of the .onnx file. Its input is "X", rows (d, p). If the table of training had text or filled cells, each
            column is an input (d, 1); nan and "" are missing. Its outputs are "prediction" and "probabilities"

        Returns
        -------
        Path : that of the file

        Example
        -------
        >>> import amble
        >>> model = amble.simulate(amble.Relay(), amble.split(amble.load("diabetes")), hops=20).trained()
        >>> print(model.to_onnx("model.onnx"))
        model.onnx
        """
        if self.loss in TIES:
            raise AmbleError("the cox model has no ONNX form here: it predicts a relative hazard; use coef_.")
        how = self.intercept, self.labels, self.names, features_of(self.columns, self.about)
        return write_onnx(as_path(path, "the file"), self.loss, self._matrix(), self.scaling, *how)

    def save(self, path: str | Path) -> Path:
        """Keep the model in one file, from which `amble.load_model` reads it.

        Parameters
        ----------
        path : of the file, such as model.npz; one that is there is replaced

        Returns
        -------
        Path : that of the file

        Example
        -------
        >>> import amble
        >>> model = amble.simulate(amble.Relay(), amble.split(amble.load("diabetes")), hops=20).trained()
        >>> print(model.save("model.npz"))
        model.npz
        """
        path = as_path(path, "the model's file")
        about = {
            "task": self.task,
            "loss": self.loss,
            "columns": self.columns,
            "target": self.target,
            "labels": self.labels,
            "intercept": bool(self.intercept),
            "penalty": dict(self.penalty),
            "y_mean": float(self.scaling.y_mean),
            "y_std": float(self.scaling.y_std),
            "about": dict(self.about),
        }
        arrays = {"w": self.w, "X_mean": self.scaling.X_mean, "X_std": self.scaling.X_std}
        if self.sums is not None:
            arrays["sums"] = self.sums.vector()
        model_file.write(path, about, arrays)
        return path
