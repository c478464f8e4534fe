"""Problem: all agents' objectives, the task, held-out data, and the centralised optimum for reference."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast, final

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array, Number, Tree, tree_map
from amble.data.partition import Parts
from amble.data.targets import Targets
from amble.errors import AmbleError, shown
from amble.losses import LOSSES, Loss, NamedLoss, Objective, named, own
from amble.losses.objective import ModelLoss, knows, number_of
from amble.losses.penalty import Penalty
from amble.problem.assemble import Heldout, Scaling, assemble
from amble.problem.dealing import Rows, deal, gather
from amble.problem.extras import NO_EXTRAS, Extras, extras, of_agents
from amble.problem.optimum import Optimum
from amble.problem.penalising import penalty_settings
from amble.problem.prediction import check_model, metrics, predict
from amble.problem.reference import Searched, verified
from amble.problem.rows import heldout_rows, task_of


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """min_w sum_i f_i(w), f_i known to agent i alone. Made by `split`, `from_arrays`, `from_agents`, `from_objectives`.

    With an l1 penalty, or coefficients that may not be negative, sum_i f_i(w) + N l1 |w|_1: see `penalty`.

    `stacked` holds built-in objectives as one NamedTuple of arrays whose first axis is the agent; objectives of your
    own are in `own`, one object per agent.
    """

    name: str
    task: str  # regression, classification or custom
    agents: int
    dimension: int
    stacked: Tree = None
    own: Sequence[Objective] | None = None
    total: NamedLoss | None = None  # sum_i f_i as one objective, for evaluation only: no agent could compute it
    penalty: Penalty | None = None  # beside the mean loss and the ridge that the losses hold: for each share in the sum
    heldout: Heldout | None = None
    labels: Targets | None = None  # the classes in the order of the model's columns
    settings: dict[str, Any] = field(default_factory=dict)
    scaling: Scaling | None = None
    parts: Parts | None = None
    # for statistics: X as given, targets in the model's units, each agent's rows, their weights and offsets
    rows: tuple[Array, Targets, Parts, Extras] | None = None
    columns: tuple[str, ...] | None = None  # the names of the rows' columns
    target: str | None = None  # the name of what is predicted
    table: Mapping[str, Any] = field(default_factory=dict)  # of a file: as of Dataset
    names: tuple[str, ...] | None = None  # of the agents, where each is a group of rows
    holdings: dict[str, Any] | None = None  # who holds what: rows of each label, or the spread of the targets
    loss: str | None = None  # its name, where it has one
    searched: Searched = field(default_factory=Searched, init=False)  # for the optimum

    def __repr__(self) -> str:
        return f"Problem({self.name}: {self.task}, {self.agents} agents, {self.dimension} unknowns)"

    def objective(self, i: int) -> Objective:
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
        if self.own is not None:
            return self.own[i]
        one: Objective = tree_map(lambda a: a[i], self.stacked)
        return one

    @property
    def compilable(self) -> Any:
        """The objectives as the compiled engine takes them; None: only the plain engine runs them."""
        if self.own is None:
            return self.stacked
        return None if self.trains is None else self.trains.stacked

    @property
    def trains(self) -> ModelLoss | None:
        """The losses of all agents, if they are those of a model of your own, such as `amble.losses.JaxLoss`."""
        return cast(ModelLoss, self.own) if knows(self.own, "params") else None

    def as_params(self, w: ArrayLike) -> Any:
        """The weights of a model of your own.

        Parameters
        ----------
        w : the model's numbers, such as run.model, or one of run.models

        Returns
        -------
        of `amble.losses.JaxLoss` a pytree like its params, of `amble.losses.TorchLoss` a state_dict

        Example
        -------
        >>> import jax.numpy as jnp
        >>> import numpy as np
        >>> import amble
        >>> from amble.losses import JaxLoss
        >>> def loss(params, batch):
        ...     return jnp.mean((batch - params["center"]) ** 2)
        >>> data = [np.array([[1.0, 2.0]]), np.array([[3.0, 6.0]])]
        >>> problem = amble.Problem.from_objectives(JaxLoss(loss, {"center": np.zeros(2)}, data))
        >>> run = amble.simulate(amble.WPG(alpha=0.5), problem, "complete", hops=100)
        >>> problem.as_params(run.model)["center"].round(3)
        array([2., 4.])
        """
        if self.trains is None:
            raise AmbleError("this problem was not made from a model of your own; run.model has its numbers.")
        if np.shape(w) != (self.dimension,):
            raise AmbleError(f"a model of shape {np.shape(w)} was given; {self!r} has models of ({self.dimension},).")
        return self.trains.params(np.asarray(w, np.float64))

    def optimum(self) -> Optimum:
        """The centralised optimum, for reference. It is computed when it is first asked for, and verified.

        Returns
        -------
        Optimum : `w`, the minimiser of sum_i f_i and the penalty (the shortest, if there are several), and `value`

        Raises
        ------
        AmbleError : where there is no optimum, or none that can be verified; it says why

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> round(problem.optimum().value, 3)
        4.842
        """
        return verified(self)

    @property
    def whole_penalty(self) -> Penalty | None:
        """That of the whole sum, whose shares are as many as agents or, of objectives, what they say."""
        if self.penalty is None:
            return None
        shares = [number_of(f, "share", 1.0) for f in self.own or ()]
        return self.penalty.times(float(sum(shares)) if self.own else float(self.agents))

    def value(self, w: Array) -> Number:
        """The loss of all agents together, sum_i f_i(w), and the penalty, if there is one.

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
        4.842
        """
        loss = self.total.value(w) if self.total is not None else sum(f.value(w) for f in self.own or ())
        return loss if self.whole_penalty is None else loss + self.whole_penalty.value(w)

    def grad(self, w: Array) -> Array:
        """The gradient of sum_i f_i, without the penalty, which may have corners.

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
        return self.total.grad(w) if self.total is not None else np.asarray(sum(f.grad(w) for f in self.own or ()))

    def predict(
        self, w: ArrayLike, X: ArrayLike, *, offset: ArrayLike | None = None, exposure: ArrayLike | None = None
    ) -> Targets:
        """Predictions of a model.

        Parameters
        ----------
        w : the model, such as run.model
        X : rows (d, p) in their own units, not scaled; a DataFrame's columns are taken by name
        offset, exposure : of these rows, for poisson and gamma

        Returns
        -------
        array of d targets in their own units, or labels; of cox, logarithms of the hazard relative to that of a row at
        the columns' means

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> problem.predict(problem.optimum().w, amble.load("diabetes").X[:3]).round()
        array([208.,  68., 180.])
        """
        if self.scaling is None:
            raise AmbleError("this problem was made from objectives, not from rows; it has nothing to predict with.")
        about = self.settings.get("intercept", True), self.labels, self.columns, self.loss
        return predict(w, X, self.scaling, *about, offset, exposure)

    def metric(self, w: ArrayLike) -> float:
        """How good a model is on the held-out rows.

        Parameters
        ----------
        w : the model, such as run.model

        Returns
        -------
        float : the NMSE |Xw - y|^2 / |y - mean(y_train)|^2, or the accuracy; nan without held-out rows, and for cox

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), agents=20)
        >>> round(problem.metric(problem.optimum().w), 3)
        0.476
        """
        return float(self.metrics(check_model(w)[None])[0])

    def metrics(self, W: Array) -> Array:
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
        if self.trains is not None:
            return self.trains.metrics(W)
        return metrics(W, self.heldout, 0 if self.labels is None else len(self.labels), self.loss)

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
        for leaf in self.penalty or ():
            sha.update(np.ascontiguousarray(leaf).data)
        if self.trains is not None:
            sha.update(self.trains.digest.encode())
            return sha.hexdigest()[:16]
        # objectives of your own are known by what they answer at one point each
        for answer in own.answers(self.own or (), self.dimension):
            sha.update(answer.tobytes())
        return sha.hexdigest()[:16]

    @staticmethod
    def from_arrays(
        X: ArrayLike,
        y: ArrayLike,
        *,
        task: str | None = None,
        agents: int | None = None,
        X_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        how: str = "even",
        groups: ArrayLike | None = None,
        seed: int = 0,
        ridge: float = 1e-4,
        l1: float = 0.0,
        positive: bool | Sequence[int | str] = False,
        unpenalised: Sequence[int | str] = (),
        intercept: bool = True,
        scale: bool | str = True,
        weights: str = "rows",
        loss: str | None = None,
        name: str = "data",
        alpha: float | None = None,
        sizes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        sample_weight_test: ArrayLike | None = None,
        offset_test: ArrayLike | None = None,
    ) -> "Problem":
        """Rows in one place, divided among agents.

        Parameters
        ----------
        X, y : rows (d, p) and targets (d): arrays, lists or a DataFrame, whose column names are kept. A target of cox
            is the time of an event, or minus the time at which the row was censored
        task : regression or classification; without it, that of the loss or, without one, targets that are text or
            whole numbers of at most 20 values are labels, as in `read_file`
        agents : how many, by default 20
        X_test, y_test : rows to judge models by, which no agent has
        how : even, sorted, by-label, dirichlet, by-sizes
        groups : instead of it, a label per row: each label's rows are one agent's, and the labels its names
        alpha : of dirichlet, by default 0.5: the smaller it is, the more agents differ
        sizes : of by-sizes: rows per agent or, as numbers with a point, proportions
        seed : of the dealing
        ridge : the penalty ridge/2 |w|^2 beside the mean loss, not on the intercept
        l1 : the penalty l1 |w|_1 beside the mean loss, not on the intercept: some coefficients are then exactly zero.
            scikit-learn's ElasticNet(alpha, l1_ratio) has l1 = alpha l1_ratio and ridge = alpha (1 - l1_ratio). Of the
            methods the full form of Relay takes it
        positive : columns whose coefficients may not be below zero: True for all, or a list of names or numbers
        unpenalised : columns without ridge and l1: a list of names or numbers
        intercept : whether the model has one; that of cox never has
        scale : whether columns (and the target of a regression) are brought to mean 0 and standard deviation 1. Targets
            of poisson, gamma and cox stay as they are. "inside" scales for the arithmetic alone: penalties are on the
            coefficients in the units of the data, as in scikit-learn, and the model is that of scale=False (huber still
            measures residuals in standard deviations of the target)
        weights : rows (all rows count alike, as if pooled) or agents (all agents count alike, as in the paper)
        loss : the name of one that fits the task, such as poisson; without it, the first that does. docs/losses.md and
            the help of amble compare list all
        name : of the data, for tables and pages
        sample_weight : how much each row counts, zero or more; by default 1
        offset : of poisson and gamma: what is added to each row's linear predictor
        exposure : of the same: what the mean is proportional to, such as years or area; its logarithm is added
        sample_weight_test, offset_test : those of the test rows; the offset with the logarithm of the exposure

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
        rows = deal(X, y, task_of(task, loss), agents, how, groups, seed, alpha, sizes)
        extra, tested = (
            extras(len(rows.y), "the data", sample_weight, offset, exposure),
            (sample_weight_test, offset_test),
        )
        options = {"ridge": ridge, "intercept": intercept, "scale": scale, "weights": weights, "loss": loss}
        options |= penalty_settings(l1, positive, unpenalised, rows.X.shape[1], rows.columns)
        return from_rows(rows, name, X_test, y_test, options, extra, tested)

    @staticmethod
    def from_agents(
        rows: Sequence[tuple[ArrayLike, ArrayLike]],
        *,
        task: str | None = None,
        X_test: ArrayLike | None = None,
        y_test: ArrayLike | None = None,
        ridge: float = 1e-4,
        l1: float = 0.0,
        positive: bool | Sequence[int | str] = False,
        unpenalised: Sequence[int | str] = (),
        intercept: bool = True,
        scale: bool | str = True,
        weights: str = "rows",
        loss: str | None = None,
        name: str = "data",
        sample_weight: Sequence[ArrayLike] | None = None,
        offset: Sequence[ArrayLike] | None = None,
        exposure: Sequence[ArrayLike] | None = None,
        sample_weight_test: ArrayLike | None = None,
        offset_test: ArrayLike | None = None,
    ) -> "Problem":
        """Rows that agents already hold.

        Parameters
        ----------
        rows : one pair (X, y) per agent
        task, X_test, y_test, ridge, l1, positive, unpenalised, intercept, scale, weights, loss, name : as of
            `from_arrays`
        sample_weight, offset, exposure : as of `from_arrays`, but a list with an array per agent
        sample_weight_test, offset_test : as of `from_arrays`

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
        options = {"ridge": ridge, "intercept": intercept, "scale": scale, "weights": weights, "loss": loss}
        held = gather(rows, task_of(task, loss))
        options |= penalty_settings(l1, positive, unpenalised, held.X.shape[1], held.columns)
        extra = of_agents([len(part) for part in held.parts], sample_weight, offset, exposure)
        return from_rows(held, name, X_test, y_test, options, extra, (sample_weight_test, offset_test))

    @staticmethod
    def from_objectives(objectives: Sequence[Loss], dimension: int | None = None, name: str = "own") -> "Problem":
        """Losses of your own.

        Parameters
        ----------
        objectives : one object per agent, with value(w), grad(w) and, for methods that use it, prox(center, weight,
            start), the argmin of f(x) + weight/2 |x - center|^2. `amble.testing.check_objective` tests one. Or an
            `amble.losses.JaxLoss` or `TorchLoss`, which has those of all agents
        dimension : the number of unknowns, which a JaxLoss or TorchLoss knows
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
        if knows(objectives, "params"):
            model = cast(ModelLoss, objectives)
            own_losses = cast(Sequence[Objective], objectives)
            return Problem(name, model.task, len(model), model.dimension, own=own_losses)
        if not isinstance(dimension, int | np.integer) or dimension < 1:
            raise AmbleError(f"dimension={dimension!r} was given; give the number of unknowns, a whole number.")
        kinds = {type(f) for f in objectives}
        shapes = {tuple(np.shape(leaf) for leaf in f) for f in objectives if isinstance(f, tuple)}
        if len(kinds) == 1 and kinds <= set(LOSSES.values()) and len(shapes) == 1:
            stacked = tree_map(lambda *leaves: np.stack(leaves), *objectives)
            return Problem(name, "custom", len(objectives), dimension, stacked=stacked, total=stacked.pooled())
        # a run checks that they have what its method asks for
        own_losses = [cast(Objective, f) for f in objectives]
        return Problem(name, "custom", len(objectives), dimension, own=own_losses)


def from_rows(
    rows: Rows,
    name: str,
    X_test: ArrayLike | None,
    y_test: ArrayLike | None,
    options: dict[str, Any],
    extra: Extras,
    tested: tuple[ArrayLike | None, ArrayLike | None],
) -> Problem:
    """The problem of all agents' rows. The options are those of `assemble`; a loss that is None is left out.
    `tested`: the test rows' sample weights and offset."""
    chosen = {option: value for option, value in options.items() if option != "loss" or value is not None}
    if "loss" in chosen:
        chosen["loss"] = named(chosen["loss"])
        if LOSSES[chosen["loss"]].link() == "hazard":
            chosen["intercept"] = False
    test = heldout_rows(X_test, y_test, rows.task, rows.columns)
    of_test = NO_EXTRAS if test is None else extras(len(test[1]), "the test data", *tested)
    fields = assemble(rows.X, rows.y, rows.parts, test, task=rows.task, **chosen, extra=extra, of_test=of_test)
    if rows.names is not None and fields["holdings"] is not None:
        fields["holdings"]["agents"] = list(rows.names)
    settings = {**rows.settings, **chosen}
    return Problem(name, rows.task, **fields, settings=settings, columns=rows.columns, names=rows.names)
