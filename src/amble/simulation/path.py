"""path: models under ever smaller penalties, by one token that keeps walking; held-out rows choose among them.

The token of full Relay holds the quadratic model of all losses, so another penalty is only another reading of it. For
least squares one lap is enough for the whole path. For other losses the token walks on after each penalty until the
model converges: it starts from the last model and its curvature, so a few laps do.

The strongest penalty is the smallest that leaves no coefficient: the largest slope that the losses have at the model of
the unpenalised unknowns alone, which the token knows too: slope = weight z - total.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from amble import engines, methods, networks
from amble.arrays import Array, Indices
from amble.data.datasets import Dataset
from amble.errors import AmbleError, check_flags, is_number, is_whole
from amble.losses import LOSSES
from amble.losses.penalty import Penalty
from amble.methods.relay import Relay
from amble.networks.cycles import closed_walk
from amble.networks.network import Network
from amble.problem.assemble import INSIDE
from amble.problem.penalising import spread, without_pins
from amble.problem.problem import Problem
from amble.problem.split import split
from amble.progress import Meter
from amble.randomness import check_seed
from amble.results.penalty_path import PenaltyPath
from amble.schedule.schedule import Schedule
from amble.simulation.folds import Scores, check_folds, deal_folds, judges_of, score, shares_out

LAMBDAS = 100
SMALLEST = 1e-3  # of the largest lambda
LAPS_MAX = 100  # under one penalty
UNNOTICED = 1e-13  # a step of the linear predictor, in the units of the loss
HELD_OUT = 0.2
NO_COEFFICIENT = 1e100  # an l1 that no slope is as large as


def path(
    data: Dataset | Problem,
    agents: int | None = None,
    how: str = "even",
    seed: int = 0,
    *,
    l1_ratio: float = 1.0,
    lambdas: int | ArrayLike = LAMBDAS,
    smallest: float = SMALLEST,
    held_out: float = HELD_OUT,
    folds: int | None = None,
    network: Any = None,
    tolerance: float = 1e-8,
    engine: str = "auto",
    progress: bool = True,
    groups: ArrayLike | None = None,
    positive: bool | Sequence[int | str] = False,
    unpenalised: Sequence[int | str] = (),
    intercept: bool = True,
    scale: bool = True,
    weights: str = "rows",
    loss: str | None = None,
    alpha: float | None = None,
    sizes: ArrayLike | None = None,
) -> PenaltyPath:
    """Models under ever smaller l1 or elastic net penalties, and which of them is best on rows held out.

    Model k minimises  mean loss + lambda_k (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2),  as in glmnet and scikit-learn's
    ElasticNet. A token of full Relay trains all of them on its walk, each from the last. Each agent holds some of its
    rows out. A path is trained on the others, and every agent scores it on those held out. The path that is trained on
    all rows has the models. With folds, every agent deals its rows into so many parts, and each part is held out once.

    Parameters
    ----------
    data : an amble.Dataset; or an amble.Problem, whose own test rows score unless there are folds, and whose ridge is
        added to the path's
    agents, how, groups, positive, unpenalised, intercept, scale, weights, loss, alpha, sizes : as of `split`; not with
        a Problem, of which they are a part
    seed : of the split, the network and the rows held out
    l1_ratio : 1 is the lasso; above 0
    lambdas : how many, log-spaced from the smallest that leaves no coefficient; or the values themselves
    smallest : the last of them, as a share of the first
    held_out : the share of each agent's rows that choose the penalty; 0: none
    folds : instead of it, how many parts of each agent's rows take turns, as in cv.glmnet; the loss is the mean over
        them, and its standard error that of the folds
    network : as of `simulate`
    tolerance : the token goes on to the next penalty when a lap moves its model less than this, relative to its length
    engine, progress : as of `simulate`

    Returns
    -------
    PenaltyPath

    Example
    -------
    >>> import amble
    >>> path = amble.path(amble.load("diabetes"), agents=10)
    >>> path.nonzero[[0, 30, 60, 99]].tolist()
    [0, 5, 8, 10]
    >>> path.coef[path.simplest].round().tolist()
    [0.0, 0.0, 500.0, 183.0, 0.0, 0.0, -105.0, 0.0, 435.0, 0.0]
    """
    check_flags(progress=progress)
    check_numbers(l1_ratio=l1_ratio, smallest=smallest, held_out=held_out, tolerance=tolerance)
    if folds is not None:
        check_folds(folds)
        if held_out != HELD_OUT:
            raise AmbleError(
                f"folds={folds} and held_out={held_out} were given; each holds rows out: give one of them."
            )
    seed = check_seed(seed)
    same: dict[str, Any] = {"intercept": intercept, "scale": scale, "weights": weights, "loss": loss}
    dealt: dict[str, Any] = {"groups": groups, "alpha": alpha, "sizes": sizes}
    if isinstance(data, Problem):
        usual = {
            "intercept": True,
            "scale": True,
            "weights": "rows",
            "how": "even",
            "positive": False,
            "unpenalised": (),
        }
        given = {**same, **dealt, "agents": agents, "how": how, "positive": positive, "unpenalised": unpenalised}
        for name, value in given.items():
            if str(value) != str(usual.get(name)):
                raise AmbleError(f"{name} was given with a Problem, of which it is a part; leave it out.")
        if data.scaling is None:
            raise AmbleError("this problem was made from objectives; a path needs one that was made from rows.")
        problem = data
    else:
        columns: dict[str, Any] = {"positive": positive, "unpenalised": unpenalised}
        problem = split(data, agents, how, seed, test=0.0, ridge=0.0, **same, **dealt, **columns)
    judges = choose_judges(problem, None if problem is data else held_out, folds, seed)
    walk = Walk(networks.as_network(network, problem.agents, seed=seed), tolerance, engine, seed)
    token = Trained(problem, walk)
    with Meter("path", None, show=progress, unit="penalties") as meter:
        if isinstance(lambdas, Sequence | np.ndarray):
            chosen = check_lambdas(lambdas)
        else:
            none = unit(problem)._replace(l1=NO_COEFFICIENT * unit(problem).l1)
            chosen = spaced(lambdas, smallest, largest(token.under(none), problem) / l1_ratio)
        penalties = [penalty(problem, l1_ratio, each) for each in chosen]
        tokens = [token, *(Trained(judge, walk) for judge in judges if judge is not problem)]
        meter.total = len(tokens) * len(chosen)
        paths = [all_under(each, penalties, meter, k * len(chosen)) for k, each in enumerate(tokens)]
    models, hops = paths[0]
    scores = Scores(*np.full((3, len(chosen)), np.nan))
    if judges:
        scores = score(judges, [trial for trial, _ in paths[1:]] or [models])
    size = 8 * methods.message_numbers(Relay(form="full"), problem.dimension, penalties[0])
    return PenaltyPath(problem, chosen, float(l1_ratio), models, hops, *scores, size)


def choose_judges(problem: Problem, held_out: float | None, folds: int | None, seed: int) -> list[Problem]:
    """What scores the path; without a share or folds, the problem's own test rows, if it has some."""
    if folds is None and held_out is None:
        return [] if problem.heldout is None else [problem]
    if folds is None and not held_out:
        return []
    assert problem.loss is not None
    assert problem.rows is not None
    if LOSSES[problem.loss].link() == "hazard":
        raise AmbleError(
            f"rows held out have no loss of their own under loss={problem.loss!r}; give held_out=0 "
            "(--held-out 0), and no folds."
        )
    parts = problem.rows[2]
    return judges_of(
        problem, shares_out(parts, held_out or 0.0, seed) if folds is None else deal_folds(parts, folds, seed)
    )


def check_numbers(**given: Any) -> None:
    for name, value in given.items():
        zero, one = name == "held_out", name == "l1_ratio"
        if not (is_number(value) and 0 <= value <= 1 and (value or zero) and (value < 1 or one)):
            bounds = f"{'from' if zero else 'above'} 0 {'up to' if one else 'to below'} 1"
            raise AmbleError(f"{name}={value!r} was given; it must be a number {bounds}.")


def check_lambdas(given: Any) -> Array:
    """Values from a user, the largest first."""
    try:
        values = np.sort(np.array(given, np.float64))[::-1]
    except (TypeError, ValueError) as error:
        raise AmbleError(f"lambdas={given!r} was given; give how many, or a list of numbers.") from error
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all() or values[-1] < 0:
        raise AmbleError("lambdas must be a list of finite numbers, zero or more.")
    return values


def spaced(count: Any, smallest: float, first: float) -> Array:
    if not is_whole(count) or count < 1:
        raise AmbleError(f"lambdas={count!r} was given; give how many, a whole number, or a list of numbers.")
    if not first > 0:
        raise AmbleError("no column has a slope at the model without coefficients: there is nothing to be trained.")
    return np.asarray(np.geomspace(first, smallest * first, count) if count > 1 else np.array([first]))


def unit(problem: Problem) -> Penalty:
    """An l1 of 1 beside the mean loss, on all unknowns that are penalised, with the problem's signs."""
    assert problem.scaling is not None
    if problem.settings.get("scale") == INSIDE:
        raise AmbleError(f"scale={INSIDE!r} was given; the penalties of a path are all on scaled columns, or on none.")
    shape = len(problem.scaling.X_mean), bool(problem.settings.get("intercept", True)), problem.dimension
    made = spread({**problem.settings, "l1": 1.0}, *shape)
    assert made is not None
    return made


def penalty(problem: Problem, l1_ratio: float, strength: float) -> Penalty:
    each = unit(problem)
    scale = strength * each.l1
    return each._replace(l1=l1_ratio * scale, ridge=(1 - l1_ratio) * scale)


class Walk(NamedTuple):
    network: Network
    tolerance: float
    engine: str
    seed: int

    def lap(self) -> Schedule:
        agent = np.asarray(closed_walk(self.network, np.random.default_rng([self.seed, 2])), np.int32)
        none = np.zeros(len(agent), np.int32)
        return Schedule(np.zeros(len(agent)), none, agent, none == 0)


class Trained:
    """A token on its walk through one problem, which is told another penalty now and then."""

    def __init__(self, problem: Problem, walk: Walk) -> None:
        methods.check(Relay(), replace(problem, penalty=unit(problem)))  # for many unknowns Relay refuses a penalty
        self.problem = replace(problem, stacked=without_pins(problem.stacked, unit(problem)))
        self.walk, self.lap = walk, walk.lap()
        self.state: engines.State | None = None
        self.model = np.zeros(problem.dimension)
        self.hops = 0

    def under(self, penalty: Penalty) -> "Trained":
        """Walk until the model converges under this penalty; the gifts of quadratic losses never change."""
        method: Relay = Relay(form="full")
        machine = engines.engine_for(
            self.walk.engine, method, replace(self.problem, penalty=penalty), self.walk.network
        )
        state = machine.start() if self.state is None else self.state
        quadratic = self.problem.total is not None and self.problem.total.quadratic
        laps, moved = 0, np.inf
        self.model = machine.read(state)[0]
        while moved > self.walk.tolerance and not (quadratic and self.hops):
            if laps == LAPS_MAX:
                warnings.warn(
                    f"the path did not converge within {LAPS_MAX} laps at one of its penalties.", stacklevel=4
                )
                break
            state = machine.advance(state, self.lap, 0, self.lap.hops)
            before, self.model = self.model, machine.read(state)[0]
            moved = self.moved(before, np.diagonal(np.asarray(state.tokens.weight)[0]))
            self.hops += self.lap.hops
            laps += 1
        self.state = state
        return self

    def moved(self, before: Array, curvatures: Array) -> float:
        """How far the model has come, relative to its length. Zero where no row's linear predictor noticed: a model of
        rounding errors alone, around zero, moves by its own length for ever."""
        step = self.model - before
        noticed = np.max(np.sqrt(np.maximum(curvatures, 0.0) / self.problem.agents) * np.abs(step)) > UNNOTICED
        return float(np.linalg.norm(step) / np.linalg.norm(self.model)) if noticed and self.model.any() else 0.0


def all_under(token: Trained, penalties: Sequence[Penalty], meter: Meter, done: int) -> tuple[Array, Indices]:
    """The model under each penalty, and the hops made for it."""
    models: list[Array] = []
    hops: list[int] = []
    for k, each in enumerate(penalties, 1):
        before = token.hops if models else 0  # the first one counts what came before it
        models.append(token.under(each).model)
        hops.append(token.hops - before)
        meter.update(done + k)
    return np.array(models), np.array(hops)


def largest(null: Trained, problem: Problem) -> float:
    """The smallest l1 that leaves no coefficient."""
    assert null.state is not None
    total, weight = (np.asarray(part)[0] for part in null.state.tokens)
    slope = weight @ null.model - total[:-1]
    signed = np.where(unit(problem).positive, -slope, np.abs(slope))
    found = float(np.max(signed, where=unit(problem).l1 > 0, initial=0.0)) / problem.agents
    return found * (1 + null.walk.tolerance)  # as far as the model without coefficients is known
