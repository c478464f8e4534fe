"""Problem: all agents' objectives, the task, held-out data, and the centralised optimum for reference."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Tree, norm, tree_map
from amble.data.datasets import Dataset
from amble.data.partition import Parts, partition
from amble.errors import AmbleError, need, unknown
from amble.objectives import LeastSquares, Logistic, Softmax
from amble.objectives.newton import minimise

TASKS = ("regression", "classification")
WEIGHTS = ("agents", "rows")


class Scaling(NamedTuple):
    """What was subtracted and divided by, fitted on training rows."""

    X_mean: Any
    X_std: Any
    y_mean: float
    y_std: float


class Optimum(NamedTuple):
    w: Any
    value: float  # sum_i f_i(w)


class Heldout(NamedTuple):
    """Test rows in the units of the model: scaled, with the intercept's column of ones."""

    X: Any
    y: Any
    y_mean_train: float


@dataclass(frozen=True)
class Problem:
    """min_w sum_i f_i(w), f_i known to agent i alone. Made by `split`, `from_arrays`, `from_agents`, `from_objectives`.

    `stacked` holds built-in objectives as one NamedTuple of arrays whose first axis is the agent; objectives of your
    own are in `own`, one object an agent.
    """

    name: str
    task: str  # regression, classification or custom
    agents: int
    dimension: int
    stacked: Tree = None
    own: Sequence[Any] | None = None
    total: Any = None  # sum_i f_i as one objective, for evaluation only: no agent could compute it
    heldout: Heldout | None = None
    labels: Any = None  # the classes in the order of the model's columns
    settings: dict[str, Any] = field(default_factory=dict)
    scaling: Scaling | None = None
    parts: Parts | None = None

    def objective(self, i: int) -> Any:
        """Agent i's own f."""
        return self.own[i] if self.own is not None else tree_map(lambda a: a[i], self.stacked)

    @cached_property
    def _optimum(self) -> Optimum:
        start = np.zeros(self.dimension)
        if isinstance(self.total, LeastSquares):
            f = self.total
            solid = f.values > 1e-13 * f.values[-1]
            w = f.vectors[:, solid] @ ((f.vectors[:, solid].T @ f.b) / f.values[solid])
        elif self.total is not None:
            w = minimise(self.total, start, 0.0, start)
        else:
            optimize = need("scipy.optimize", "sim")
            found = optimize.minimize(self.value, start, jac=self.grad, method="BFGS", options={"gtol": 1e-10})
            w = found.x
        if self.total is not None and norm(self.total.grad(w)) > 1e-6 * norm(self.total.grad(start)) + 1e-12:
            raise AmbleError(
                "the centralised optimum was not found: without a ridge, separable classes have none. "
                "Give ridge= a value above zero, such as 1e-4."
            )
        return Optimum(w, float(self.value(w)))

    def optimum(self) -> Optimum:
        """The minimiser of sum_i f_i (the shortest, if there are several) and its value, found centrally."""
        return self._optimum

    def value(self, w: Any) -> Any:
        """sum_i f_i(w)."""
        return self.total.value(w) if self.own is None else sum(f.value(w) for f in self.own)

    def grad(self, w: Any) -> Any:
        return self.total.grad(w) if self.own is None else sum(f.grad(w) for f in self.own)

    def predict(self, w: Any, X: Any) -> Any:
        """Predictions on rows in the model's units: numbers in regression, labels in classification."""
        if self.task == "regression":
            return X @ w
        scores = X @ w.reshape(-1, X.shape[1]).T
        chosen = (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
        return self.labels[chosen]

    def metric(self, w: Any) -> float:
        """On the held-out rows: NMSE |Xw - y|^2 / |y - mean(y_train)|^2, or accuracy; nan with no held-out rows."""
        if self.heldout is None:
            return float("nan")
        X, y, mean = self.heldout
        with np.errstate(over="ignore", invalid="ignore"):  # a diverged model has an infinite error, and says so
            if self.task == "regression":
                return float(np.sum((X @ w - y) ** 2) / np.sum((y - mean) ** 2))
            return float(np.mean(self.predict(w, X) == y))

    @cached_property
    def digest(self) -> str:
        """Names the problem by its numbers, so that a saved run is never continued on another one."""
        sha = hashlib.sha256(f"{self.task} {self.agents} {self.dimension}".encode())
        for leaf in self.stacked or ():
            sha.update(np.ascontiguousarray(leaf).data)
        return sha.hexdigest()[:16]

    @staticmethod
    def from_arrays(
        X: Any,
        y: Any,
        *,
        task: str = "regression",
        agents: int = 20,
        X_test: Any = None,
        y_test: Any = None,
        how: str = "even",
        seed: int = 0,
        ridge: float = 1e-4,
        intercept: bool = True,
        scale: bool = True,
        weights: str = "agents",
        name: str = "data",
    ) -> "Problem":
        """Rows in one place, dealt out to `agents` agents by `how` (even, sorted, by-label, dirichlet)."""
        X, y = check_rows(X, y, task, "the data")
        if agents < 1:
            raise AmbleError(f"agents={agents} was given; at least one agent is needed.")
        parts = partition(how, y, agents, seed, task=task)
        test = None if X_test is None else check_rows(X_test, y_test, task, "the test data")
        settings = {"how": how, "seed": seed}
        return _build(name, X, y, parts, test, task, ridge, intercept, scale, weights, settings)

    @staticmethod
    def from_agents(
        rows: Sequence[tuple[Any, Any]],
        *,
        task: str = "regression",
        X_test: Any = None,
        y_test: Any = None,
        ridge: float = 1e-4,
        intercept: bool = True,
        scale: bool = True,
        weights: str = "agents",
        name: str = "data",
    ) -> "Problem":
        """Rows already apart: one (X, y) an agent."""
        checked = [check_rows(X, y, task, f"agent {i}") for i, (X, y) in enumerate(rows)]
        widths = {X.shape[1] for X, _ in checked}
        if len(widths) != 1:
            raise AmbleError(f"agents disagree on the number of columns: {sorted(widths)}; give all the same columns.")
        ends = np.cumsum([len(y) for _, y in checked])
        parts = np.split(np.arange(ends[-1]), ends[:-1])
        X, y = (np.concatenate(side) for side in zip(*checked, strict=True))
        test = None if X_test is None else check_rows(X_test, y_test, task, "the test data")
        return _build(name, X, y, parts, test, task, ridge, intercept, scale, weights, {"how": "given"})

    @staticmethod
    def from_objectives(objectives: Sequence[Any], dimension: int, name: str = "own") -> "Problem":
        """Any losses: one object an agent with `value`, `grad` and, for methods that use it, `prox`."""
        if not objectives:
            raise AmbleError("no objectives were given; at least one agent is needed.")
        kinds = {type(f) for f in objectives}
        if len(kinds) == 1 and kinds <= {LeastSquares, Logistic, Softmax}:
            stacked = tree_map(lambda *leaves: np.stack(leaves), *objectives)
            return Problem(name, "custom", len(objectives), dimension, stacked=stacked, total=_pool(stacked))
        return Problem(name, "custom", len(objectives), dimension, own=list(objectives))


def split(
    data: Dataset, agents: int = 20, how: str = "even", seed: int = 0, test: float = 0.2, **options: Any
) -> Problem:
    """A data set dealt out to agents; where it has no published test part, `test` of its rows are held out first.

    Takes the options of Problem.from_arrays: ridge, intercept, scale, weights.
    """
    X, y, X_test, y_test = data.X, data.y, data.X_test, data.y_test
    if X_test is None and test > 0:
        order = np.random.default_rng([seed, 0]).permutation(len(y))
        out = order[: max(1, round(test * len(y)))]
        kept = np.sort(order[len(out) :])
        X, y, X_test, y_test = X[kept], y[kept], X[out], y[out]
    given = {"agents": agents, "how": how, "seed": seed, "name": data.name, **options}
    return Problem.from_arrays(X, y, task=data.task, X_test=X_test, y_test=y_test, **given)


def check_rows(X: Any, y: Any, task: str, whose: str) -> tuple[Any, Any]:
    """X as float64 (d, p) and y (d), or one sentence on what is wrong with them."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    X = np.asarray(X, np.float64)
    y = np.asarray(y, np.float64) if task == "regression" else np.asarray(y)
    if X.ndim != 2 or y.ndim != 1 or len(X) != len(y):
        raise AmbleError(f"{whose}: X has shape {X.shape} and y {y.shape}; give X as (rows, columns) and y as (rows,).")
    if len(y) == 0:
        raise AmbleError(f"{whose} has no rows; leave it out, or give it at least one.")
    bad = np.argwhere(~np.isfinite(X))
    if len(bad):
        row, column = bad[0]
        raise AmbleError(
            f"{whose}: X has {len(bad)} values that are not finite (the first is {X[row, column]} in row {row}, "
            f"column {column}); fill or drop them first."
        )
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise AmbleError(
            f"{whose}: y has values that are not finite (the first in row {row}); fill or drop them first."
        )
    return X, y


def _build(
    name: str,
    X: Any,
    y: Any,
    parts: Parts,
    test: tuple[Any, Any] | None,
    task: str,
    ridge: float,
    intercept: bool,
    scale: bool,
    weights: str,
    settings: dict[str, Any],
) -> Problem:
    """Scale, add the intercept, weigh, and stack what each agent holds."""
    if weights not in WEIGHTS:
        raise unknown("weighting", weights, WEIGHTS)
    if not ridge >= 0:
        raise AmbleError(f"ridge={ridge} was given; it must be zero or more.")
    N, D = len(parts), sum(map(len, parts))
    regression = task == "regression"
    labels = None if regression else np.unique(y)
    if labels is not None and len(labels) < 2:
        raise AmbleError(f"all labels are {labels[0]!r}; classification needs at least two classes.")

    def spread(v: Any) -> Any:
        std = v.std(axis=0)
        return np.where(std > 1e-12 * (1 + np.abs(v).max(axis=0)), std, 1.0)

    none = Scaling(np.zeros(X.shape[1]), np.ones(X.shape[1]), 0.0, 1.0)
    scaling = none if not scale else Scaling(X.mean(axis=0), spread(X), 0.0, 1.0)
    if scale and regression:
        scaling = scaling._replace(y_mean=float(y.mean()), y_std=float(spread(y)))

    def columns(X: Any) -> Any:
        X = (X - scaling.X_mean) / scaling.X_std
        return np.column_stack([X, np.ones(len(X))]) if intercept else X

    def targets(y: Any) -> Any:
        return (y - scaling.y_mean) / scaling.y_std if regression else y

    Xs = columns(X)
    ys = targets(y) if labels is None else np.searchsorted(labels, y).astype(np.float64)
    sizes = np.array([len(part) for part in parts])
    shares = np.ones(N) if weights == "agents" else N * sizes / D
    penalty = np.full(Xs.shape[1], ridge)
    if intercept:
        penalty[-1] = 0.0

    def objectives(chosen: Any) -> Tree:
        """The stacked objectives of some agents, padded to the largest of them with rows of weight zero."""
        d = sizes[chosen].max()
        block, target, rows = (
            np.zeros((len(chosen), d, Xs.shape[1])),
            np.zeros((len(chosen), d)),
            np.zeros((len(chosen), d)),
        )
        for k, i in enumerate(chosen):
            block[k, : sizes[i]], target[k, : sizes[i]] = Xs[parts[i]], ys[parts[i]]
            rows[k, : sizes[i]] = shares[i] / sizes[i]
        lam = shares[chosen, None] * penalty
        if regression:
            return LeastSquares.build(block, target, rows, lam)
        if labels is not None and len(labels) == 2:
            return Logistic.build(block, target, rows, lam)
        return Softmax.build(block, target, rows, lam, len(labels if labels is not None else ()))

    if regression:  # rows are not kept, so agents of unlike sizes need not be padded to the largest of all
        order = np.argsort(sizes, kind="stable")
        blocks = [objectives(chosen) for chosen in np.array_split(order, -(-N // 512))]
        back = np.argsort(order, kind="stable")
        stacked = tree_map(lambda *leaves: np.concatenate(leaves)[back], *blocks)
    else:
        stacked = objectives(np.arange(N))

    heldout = None
    if test is not None:
        X_test, y_test = test
        if X_test.shape[1] != X.shape[1]:
            raise AmbleError(f"the test data have {X_test.shape[1]} columns and the training data {X.shape[1]}.")
        heldout = Heldout(columns(X_test), targets(y_test), float(np.mean(ys)) if regression else 0.0)
    settings = {**settings, "ridge": ridge, "intercept": intercept, "scale": scale, "weights": weights}
    return Problem(
        name=name,
        task=task,
        agents=N,
        dimension=Xs.shape[1] if labels is None or len(labels) == 2 else Xs.shape[1] * len(labels),
        stacked=stacked,
        total=_pool(stacked),
        heldout=heldout,
        labels=labels,
        settings=settings,
        scaling=scaling,
        parts=parts,
    )


def _pool(stacked: Tree) -> Any:
    """sum_i f_i as one objective of the same kind."""
    if isinstance(stacked, LeastSquares):
        A = stacked.A.sum(axis=0)
        values, vectors = np.linalg.eigh(A)
        return LeastSquares(A, stacked.b.sum(axis=0), stacked.c.sum(), np.maximum(values, 0.0), vectors)
    used = stacked.rows.reshape(-1) > 0
    flat = {
        name: leaf.reshape(-1, *leaf.shape[2:])[used]
        for name, leaf in stacked._asdict().items()
        if name in ("X", "s", "Y", "rows")
    }
    return stacked._replace(**flat, ridge=stacked.ridge.sum(axis=0), L=stacked.L.sum())
