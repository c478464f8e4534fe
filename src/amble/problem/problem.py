"""Problem: all agents' objectives, the task, held-out data, and the centralised optimum for reference."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from amble.arrays import Tree, tree_map
from amble.data.datasets import Dataset
from amble.data.partition import Parts, by_group, partition, settle
from amble.errors import AmbleError, expect, is_whole, shown
from amble.losses import LOSSES, own
from amble.problem.assemble import Heldout, Scaling, assemble, check_rows
from amble.problem.optimum import UNASKED_GRADIENTS, UNASKED_UP_TO, UNASKED_UP_TO_OWN, NoOptimum, Optimum, Watch, find
from amble.problem.prediction import check_model, guess, predict, score
from amble.problem.rows import check_pairs, heldout_rows, hold_out, in_order, infer_task, names_of

SCORES_AT_ONCE = 2**22
AGENTS = 20  # where no number is given


@dataclass(frozen=True, eq=False)
class Problem:
    """min_w sum_i f_i(w), f_i known to agent i alone. Made by `split`, `from_arrays`, `from_agents`, `from_objectives`.

    `stacked` holds built-in objectives as one NamedTuple of arrays whose first axis is the agent; objectives of your
    own are in `own`, one object per agent.
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
    columns: tuple[str, ...] | None = None  # the names of the rows' columns
    target: str | None = None  # the name of what is predicted
    names: tuple[str, ...] | None = None  # of the agents, where each is a group of rows
    holdings: dict[str, Any] | None = None  # which agent holds which rows: rows per label, or the spread of the targets
    _given_up: list[tuple[int, NoOptimum]] = field(
        default_factory=list, init=False
    )  # automatic searches that ended early

    def __repr__(self) -> str:
        return f"Problem({self.name}: {self.task}, {self.agents} agents, {self.dimension} unknowns)"

    def objective(self, i: int) -> Any:
        """The loss of one agent.

        Parameters
        ----------
        i : the agent's number

        Returns
        -------
        its objective: an object with value(w), grad(w) and prox(center, weight, start)

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> type(problem.objective(3)).__name__
        'LeastSquares'
        """
        return self.own[i] if self.own is not None else tree_map(lambda a: a[i], self.stacked)

    @cached_property
    def _optimum(self) -> Optimum | NoOptimum:
        return find(self)

    def optimum(self) -> Optimum:
        """The centralised optimum, for reference. It is computed when it is first asked for, and verified.

        Returns
        -------
        Optimum : `w`, the minimiser of sum_i f_i (the shortest, if there are several), and `value`, its loss

        Raises
        ------
        AmbleError : where there is no optimum, or none that can be verified; it says why

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> round(problem.optimum().value, 3)
        4.853
        """
        best = self._optimum
        if isinstance(best, NoOptimum):
            raise AmbleError(best.why)
        return best

    def known_optimum(self, watch: Watch | None = None) -> Optimum | NoOptimum:
        """The optimum that runs are compared with: with many unknowns it is not looked for, and with an expensive
        search not found, unless `optimum()` has been called.

        Parameters
        ----------
        watch : counts the gradients of the search and ends it where they are too many

        Returns
        -------
        Optimum, or NoOptimum with the reason as its `why`

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> round(problem.known_optimum().value, 3)
        4.853
        """
        if "_optimum" in self.__dict__:
            return self._optimum
        most = UNASKED_UP_TO if self.own is None else UNASKED_UP_TO_OWN
        if self.dimension > most:
            return NoOptimum(
                f"the optimum of {self.dimension:,} unknowns is computed only on request (above {most:,}); "
                "call problem.optimum() before the run to have it."
            )
        watch = watch or Watch(UNASKED_GRADIENTS)
        if self._given_up and watch.gradients_max <= self._given_up[-1][0]:
            return self._given_up[-1][1]
        result = find(self, watch)
        if isinstance(result, Optimum) or result.settled:
            self.__dict__["_optimum"] = result
            return result
        advice = "call problem.optimum() before the run for a longer search"
        given_up = NoOptimum(f"{result.why.rstrip('.')}; {advice}.", settled=False)
        self._given_up.append((watch.gradients_max, given_up))
        return given_up

    def value(self, w: Any) -> Any:
        """The loss of all agents together, sum_i f_i(w).

        Parameters
        ----------
        w : a model

        Returns
        -------
        float

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> round(float(problem.value(problem.optimum().w)), 3)
        4.853
        """
        return self.total.value(w) if self.own is None else sum(f.value(w) for f in self.own)

    def grad(self, w: Any) -> Any:
        """The gradient of sum_i f_i.

        Parameters
        ----------
        w : a model

        Returns
        -------
        array of the model's shape

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> bool(abs(problem.grad(problem.optimum().w)).max() < 1e-9)
        True
        """
        return self.total.grad(w) if self.own is None else sum(f.grad(w) for f in self.own)

    def predict(self, w: Any, X: Any) -> Any:
        """Predictions of a model.

        Parameters
        ----------
        w : the model, such as run.model
        X : rows (d, p) in their own units, not scaled; a DataFrame's columns are taken by name

        Returns
        -------
        array of d targets in their own units, or labels

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> problem.predict(problem.optimum().w, amble.load("diabetes").X[:3]).round()
        array([208.,  69., 179.])
        """
        if self.scaling is None:
            raise AmbleError("this problem was made from objectives, not from rows; it has nothing to predict with.")
        return predict(w, X, self.scaling, self.settings.get("intercept", True), self.labels, self.columns)

    def metric(self, w: Any) -> float:
        """How good a model is on the held-out rows.

        Parameters
        ----------
        w : the model, such as run.model

        Returns
        -------
        float : the NMSE |Xw - y|^2 / |y - mean(y_train)|^2, or the accuracy; nan without held-out rows

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> round(problem.metric(problem.optimum().w), 3)
        0.476
        """
        return float(self.metrics(check_model(w)[None])[0])

    def metrics(self, W: Any) -> Any:
        """The metric of several models, computed in blocks, so that memory stays bounded.

        Parameters
        ----------
        W : one model per row

        Returns
        -------
        array with the metric of each

        Example
        -------
        >>> import numpy as np
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> w = problem.optimum().w
        >>> problem.metrics(np.array([w, 0 * w])).round(2)
        array([0.48, 1.  ])
        """
        metrics = np.full(len(W), np.nan)
        finite = np.flatnonzero(np.isfinite(W).all(axis=1))
        if self.heldout is None or not len(finite):
            return metrics
        X, y, mean = self.heldout
        at_once = max(1, SCORES_AT_ONCE * X.shape[1] // (X.shape[0] * self.dimension))
        for some in np.split(finite, range(at_once, len(finite), at_once)):
            predicted = guess(W[some], X, 0 if self.labels is None else len(self.labels))
            metrics[some] = score(predicted, y, mean, self.task == "regression")
        return metrics

    def plot_partition(self, path: str | Path) -> Path:
        """A picture of which agent holds which rows: its labels, or its rows and the spread of their targets.

        Parameters
        ----------
        path : of the picture, whose ending (.png, .svg, .pdf) says its format

        Returns
        -------
        Path : that of the picture

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> print(problem.plot_partition("partition.png"))
        partition.png
        """
        from amble.problem.picture import partition_picture

        return partition_picture(Path(path), self.name, self.holdings, self.settings)

    @cached_property
    def digest(self) -> str:
        """Names the problem by its numbers, so that a saved run is never continued on another one."""
        sha = hashlib.sha256(f"{self.task} {self.agents} {self.dimension}".encode())
        for leaf in self.stacked or ():
            sha.update(np.ascontiguousarray(leaf).data)
        for answer in own.answers(
            self.own or (), self.dimension
        ):  # your own objectives are identified by their values at one point
            sha.update(answer.tobytes())
        return sha.hexdigest()[:16]

    @staticmethod
    def from_arrays(
        X: Any,
        y: Any,
        *,
        task: str | None = None,
        agents: int | None = None,
        X_test: Any = None,
        y_test: Any = None,
        how: str = "even",
        groups: Any = None,
        seed: int = 0,
        ridge: float = 1e-4,
        intercept: bool = True,
        scale: bool = True,
        weights: str = "agents",
        loss: str | None = None,
        name: str = "data",
        alpha: float | None = None,
        sizes: Any = None,
    ) -> "Problem":
        """Rows in one place, divided among agents.

        Parameters
        ----------
        X, y : rows (d, p) and targets (d): arrays, lists or a DataFrame, whose column names are kept
        task : regression or classification; without it, targets that are text or whole numbers of at most 20 values are
            labels, as in `read_file`
        agents : how many, by default 20
        X_test, y_test : rows to judge models by, which no agent has
        how : even, sorted, by-label, dirichlet, by-sizes
        groups : instead of it, a label per row: each label's rows are one agent's, and the labels its names
        alpha : of dirichlet, by default 0.5: the smaller it is, the more agents differ
        sizes : of by-sizes: rows per agent or, as numbers with a point, proportions
        seed : of the dealing
        ridge : the penalty ridge/2 |w|^2, not on the intercept
        intercept : whether the model has one
        scale : whether columns (and the target of a regression) are brought to mean 0 and standard deviation 1
        weights : agents (all have equal weight, as in the paper) or rows (all rows have equal weight, as if pooled)
        loss : the name of one that fits the task, such as softmax; without it, the first that does. The help of
            amble compare lists all
        name : of the data, for tables and pages

        Returns
        -------
        Problem

        Example
        -------
        >>> import amble
        >>> X = [[0.0], [1.0], [2.0], [3.0]]
        >>> amble.Problem.from_arrays(X, [0.1, 0.9, 2.1, 2.9], agents=2)
        Problem(data: regression, 2 agents, 2 unknowns)
        >>> amble.Problem.from_arrays(X, ["low", "low", "high", "high"], agents=2)
        Problem(data: classification, 2 agents, 2 unknowns)
        """
        columns = names_of(X)
        y, task = infer_task(y, task)
        X, y = check_rows(in_order(X, None, "the data"), y, task, "the data")
        if agents is not None and (not is_whole(agents) or agents < 1):
            raise AmbleError(f"agents={agents} was given; it must be a whole number, one or more.")
        dealing = settle(how, alpha, sizes, groups is not None)
        names = None
        if groups is not None:
            names, parts = by_group(groups, len(y))
            if agents not in (None, len(names)):
                raise AmbleError(
                    f"agents={agents} was given with {len(names)} groups, one agent each; leave agents out."
                )
        else:
            parts = partition(how, y, AGENTS if agents is None else agents, seed, task=task, alpha=alpha, sizes=sizes)
        test = heldout_rows(X_test, y_test, task, columns)
        options: dict[str, Any] = {"ridge": ridge, "intercept": intercept, "scale": scale, "weights": weights}
        if loss is not None:
            options["loss"] = loss
        settings = {**dealing, "seed": int(seed), **options}
        fields = assemble(X, y, parts, test, task=task, **options)
        if names is not None and fields["holdings"] is not None:
            fields["holdings"]["agents"] = list(names)
        return Problem(name, task, **fields, settings=settings, columns=columns, names=names)

    @staticmethod
    def from_agents(
        rows: Sequence[tuple[Any, Any]],
        *,
        task: str | None = None,
        X_test: Any = None,
        y_test: Any = None,
        ridge: float = 1e-4,
        intercept: bool = True,
        scale: bool = True,
        weights: str = "agents",
        loss: str | None = None,
        name: str = "data",
    ) -> "Problem":
        """Rows that agents already hold.

        Parameters
        ----------
        rows : one pair (X, y) per agent
        task, X_test, y_test, ridge, intercept, scale, weights, loss, name : as of `from_arrays`

        Returns
        -------
        Problem

        Example
        -------
        >>> import amble
        >>> north, south = ([[0.0], [1.0]], [0.1, 0.9]), ([[2.0], [3.0], [4.0]], [2.1, 2.9, 4.2])
        >>> amble.Problem.from_agents([north, south])
        Problem(data: regression, 2 agents, 2 unknowns)
        """
        pairs = check_pairs(rows)
        columns = names_of(pairs[0][0])
        if task is None:
            _, task = infer_task(np.concatenate([np.asarray(y).ravel() for _, y in pairs]), None)
        checked = []
        for i, (X, y) in enumerate(pairs):
            checked.append(check_rows(in_order(X, columns, f"agent {i}'s rows"), y, task, f"agent {i}"))
        widths = {X.shape[1] for X, _ in checked}
        if len(widths) != 1:
            raise AmbleError(f"agents disagree on the number of columns: {sorted(widths)}; give all the same columns.")
        ends = np.cumsum([len(y) for _, y in checked])
        parts = np.split(np.arange(ends[-1]), ends[:-1])
        X, y = (np.concatenate(side) for side in zip(*checked, strict=True))
        options: dict[str, Any] = {"ridge": ridge, "intercept": intercept, "scale": scale, "weights": weights}
        if loss is not None:
            options["loss"] = loss
        fields = assemble(X, y, parts, heldout_rows(X_test, y_test, task, columns), task=task, **options)
        return Problem(name, task, **fields, settings={"how": "given", **options}, columns=columns)

    @staticmethod
    def from_objectives(objectives: Sequence[Any], dimension: int, name: str = "own") -> "Problem":
        """Losses of your own.

        Parameters
        ----------
        objectives : one object per agent, with value(w), grad(w) and, for methods that use it, prox(center, weight,
            start), the argmin of f(x) + weight/2 |x - center|^2. `amble.testing.check_objective` tests one
        dimension : the number of unknowns
        name : for tables and pages

        Returns
        -------
        Problem

        Example
        -------
        >>> import amble
        >>> class Bowl:
        ...     def __init__(self, center):
        ...         self.center = center
        ...
        ...     def value(self, w):
        ...         return ((w - self.center) ** 2).sum() / 2
        ...
        ...     def grad(self, w):
        ...         return w - self.center
        >>> problem = amble.Problem.from_objectives([Bowl(0.0), Bowl(1.0)], dimension=3)
        >>> amble.simulate(amble.WPG(alpha=0.5), problem, hops=200).model.round(6)
        array([0.5, 0.5, 0.5])
        """
        if not isinstance(objectives, Sequence):
            raise AmbleError(f"{shown(objectives)} was given as the objectives; give a list, one per agent.")
        if not objectives:
            raise AmbleError("no objectives were given; at least one agent is needed.")
        if not isinstance(dimension, int | np.integer) or dimension < 1:
            raise AmbleError(f"dimension={dimension!r} was given; give the number of unknowns, a whole number.")
        kinds = {type(f) for f in objectives}
        shapes = {tuple(np.shape(leaf) for leaf in f) for f in objectives if isinstance(f, tuple)}
        if len(kinds) == 1 and kinds <= set(LOSSES.values()) and len(shapes) == 1:
            stacked = tree_map(lambda *leaves: np.stack(leaves), *objectives)
            return Problem(name, "custom", len(objectives), dimension, stacked=stacked, total=stacked.pooled())
        return Problem(name, "custom", len(objectives), dimension, own=list(objectives))


def split(
    data: Dataset,
    agents: int | None = None,
    how: str = "even",
    seed: int = 0,
    test: float = 0.2,
    *,
    groups: Any = None,
    ridge: float = 1e-4,
    intercept: bool = True,
    scale: bool = True,
    weights: str = "agents",
    loss: str | None = None,
    alpha: float | None = None,
    sizes: Any = None,
) -> Problem:
    """A data set divided among agents.

    Parameters
    ----------
    data : from amble.load or amble.read_file, or an amble.Dataset of your own
    test : the share of rows held out first, where the data set has no published test part; every group keeps a row
    groups : a label per row of the data, as of `from_arrays`; by default those that `read_file(by=...)` has read
    agents, how, seed, ridge, intercept, scale, weights, loss, alpha, sizes : as of `Problem.from_arrays`

    Returns
    -------
    Problem

    Example
    -------
    >>> import amble
    >>> amble.split(amble.load("digits"), agents=10, how="dirichlet", alpha=0.1)
    Problem(digits: classification, 10 agents, 650 unknowns)
    """
    advice = "give an amble.Dataset, such as amble.load('diabetes') or amble.read_file('rows.csv')"
    expect(data, Dataset, "the data", advice)
    X, y = check_rows(in_order(data.X, data.columns, data.name), data.y, data.task, data.name)
    groups = data.groups if groups is None else groups
    if groups is not None:
        by_group(groups, len(y))  # one label per row, before any is held out
        groups = np.asarray(groups)
    rows = hold_out(replace(data, X=X, y=y, groups=groups), test, seed)
    problem = Problem.from_arrays(
        rows.X,
        rows.y,
        task=data.task,
        agents=agents,
        X_test=rows.X_test,
        y_test=rows.y_test,
        how=how,
        groups=rows.groups,
        seed=seed,
        ridge=ridge,
        intercept=intercept,
        scale=scale,
        weights=weights,
        loss=loss,
        name=data.name,
        alpha=alpha,
        sizes=sizes,
    )
    return replace(problem, settings={**problem.settings, "test": test}, columns=data.columns, target=data.target)
