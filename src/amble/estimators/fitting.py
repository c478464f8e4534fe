"""What both estimators do with rows: check them as scikit-learn does, deal them out, and train the model of all."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, validation

from amble import methods
from amble.arrays import Array
from amble.data.targets import Targets
from amble.errors import AmbleError, is_number, is_whole, shown
from amble.losses import LOSSES
from amble.losses import named as loss_named
from amble.methods import Method
from amble.methods.relay import PENALISED_UP_TO, Relay
from amble.problem.assemble import INSIDE
from amble.problem.problem import Problem
from amble.results.model import Model
from amble.results.run import Run
from amble.simulation.simulate import simulate

FULL_UP_TO = PENALISED_UP_TO  # unknowns: simulated messages may be large, and the full form converges in a few laps
PLAIN_UP_TO = 200  # agents: from about there on, compiling pays


class Linear(BaseEstimator):
    """A linear model with the penalty alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2) on the mean loss of the rows."""

    loss: str
    alpha: float
    l1_ratio: float
    method: Any
    agents: int
    network: Any
    tokens: int | str | None
    fit_intercept: bool
    positive: bool
    tol: float
    max_iter: int
    random_state: Any

    def _checked(self, X: Any, **options: Any) -> Any:
        """X, or X and y, as scikit-learn checks them; sparse rows become dense ones."""
        options = {"dtype": np.float64, "accept_sparse": "csr", **options}
        if hasattr(validation, "validate_data"):
            checked = validation.validate_data(self, X, **options)
        else:  # scikit-learn 1.5
            checked = self._validate_data(X, **options)
        X, *y = checked if isinstance(checked, tuple) else (checked,)
        X = X.toarray() if hasattr(X, "toarray") else X
        return (X, *y) if y else X

    def _train(
        self, X: Array, y: Targets, task: str, loss: str, sample_weight: Array | None, agents: ArrayLike | None
    ) -> None:
        """Set all attributes of a fitted estimator, but for those of labels."""
        problem = self._problem(X, y, task, loss, sample_weight, agents)
        method = methods.check(self._method(problem.dimension), problem)
        # to compile a loop takes seconds for each new number of rows, and few hops of the full form are enough
        plain = getattr(method, "form", None) == "full" and problem.agents <= PLAIN_UP_TO
        run = simulate(
            method,
            problem,
            self.network,
            hops=problem.agents * self._laps(),
            tolerance=self.tol,
            seed=problem.settings["seed"],
            every=1 if methods.is_round(method) else problem.agents,
            optimum=False,
            engine="plain" if plain else "auto",
            progress=False,
        )
        self._keep(run, problem)

    def _problem(
        self, X: Array, y: Targets, task: str, loss: str, sample_weight: Array | None, agents: ArrayLike | None
    ) -> Problem:
        for name, value in {"alpha": self.alpha, "l1_ratio": self.l1_ratio}.items():
            if not (is_number(value) and 0 <= value < np.inf):
                raise AmbleError(f"{name}={value!r} was given; it must be a number, zero or more.")
        if self.l1_ratio > 1:
            raise AmbleError(f"l1_ratio={self.l1_ratio!r} was given; it is the share of l1, from 0 to 1.")
        if agents is None and not (is_whole(self.agents) and self.agents >= 1):
            raise AmbleError(
                f"agents={shown(self.agents)} was given; it must be a whole number, one or more. "
                "Labels of rows are given to fit(X, y, agents=labels)."
            )
        whole = isinstance(self.random_state, int | np.integer)
        seed = int(self.random_state) if whole else int(check_random_state(self.random_state).randint(2**31 - 1))
        return Problem.from_arrays(
            X,
            y,
            task=task,
            agents=min(self.agents, len(y)) if agents is None else None,
            groups=agents,
            seed=seed,
            ridge=self.alpha * (1 - self.l1_ratio),
            l1=self.alpha * self.l1_ratio,
            positive=self.positive,
            intercept=self.fit_intercept,
            scale=INSIDE,
            loss=loss,
            sample_weight=sample_weight,
        )

    def _method(self, unknowns: int) -> Method:
        settings: dict[str, Any] = {} if self.tokens is None else {"tokens": self.tokens}
        if not isinstance(self.method, str):
            return methods.from_settings(type(self.method), {**methods.settings(self.method), **settings})
        kind = methods.find(self.method)
        if kind is Relay and unknowns <= FULL_UP_TO:
            settings["form"] = "full"
        return methods.from_settings(kind, settings)

    def _laps(self) -> int:
        if not (is_whole(self.max_iter) and self.max_iter >= 1):
            raise AmbleError(f"max_iter={self.max_iter!r} was given; it must be a whole number of laps, one or more.")
        return int(self.max_iter)

    def _keep(self, run: Run, problem: Problem) -> None:
        if run.stopped == "diverged":
            raise AmbleError(f"{run.label} diverged; give another method, or another setting of it.")
        value = run.history["objective"]
        if run.stopped != "tolerance" or value[-1] - value[0] > 1e-9 * abs(value[0]):  # or it moves little, far away
            warnings.warn(
                f"the model has not converged within max_iter={self.max_iter} laps; give more, or a larger tol.",
                ConvergenceWarning,
                stacklevel=4,
            )
        names = getattr(self, "feature_names_in_", None)
        columns = self.n_features_in_ if names is None else tuple(names)
        self.model_: Model = replace(run.trained(problem), columns=columns)
        self.coef_: Array = self.model_.coef_
        self.intercept_: Any = self.model_.intercept_
        rounds = methods.is_round(run.method)
        self.n_iter_ = run.schedule.hops if rounds else -(-run.schedule.hops // run.network.agents)
        measured = {name: curve for name, curve in run.history.items() if not name.startswith("metric")}  # no test rows
        self.history_: dict[str, Array] = measured

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def counted(
    X: Array, y: Any, sample_weight: ArrayLike | None, agents: ArrayLike | None
) -> tuple[Array, Targets, Array | None, Any]:
    """Those that count: a row of weight zero is as good as absent."""
    if agents is not None:
        agents = np.asarray(agents)
        validation.check_consistent_length(X, agents)
    if sample_weight is None:
        return X, y, None, agents
    weight: Array = validation._check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weight < 0).any():
        raise AmbleError(f"sample_weight has {weight.min():g}; a weight is zero or more.")
    used = weight > 0
    if not used.any():
        raise AmbleError("all weights in sample_weight are zero; at least one row has to count.")
    return X[used], y[used], weight[used], None if agents is None else agents[used]


def chosen_loss(loss: Any, known: tuple[str, ...]) -> str:
    """The loss by name, if it is one of those that the estimator has."""
    name = loss_named(loss) if isinstance(loss, str) else None
    if name not in known:
        raise AmbleError(f"loss={loss!r} was given; choose one of {', '.join(known)}.")
    return name


def has_log_link(loss: str) -> bool:
    return LOSSES[loss_named(loss)].link() == "log"
