"""How good a model is on rows that nobody has together: R2, accuracy, AUC and others, from sums over agents."""

import math
from collections.abc import Mapping

import numpy as np

from amble.arrays import Array
from amble.data.targets import Targets
from amble.errors import AmbleError, unknown
from amble.losses import LOSSES
from amble.results.likelihood import rows_of
from amble.results.partial import TIES, concordance
from amble.results.sums import Judged, Sums, ordered

Measures = dict[str, float]
ByAgent = Mapping[str, Mapping[str, Mapping[str, float]]]  # agent, train or test, the numbers of `Judged` but scores


def measures(loss: str, sums: Sums, test: bool, y_std: float, intercept: bool) -> Measures:
    """On the held-out rows, or on those of training; in the units of the target. nan where rows do not tell."""
    judged = sums.test if test else sums.train
    found: Measures = {"rows": float(judged.rows)}
    if not judged.rows:
        return found
    weight = float(judged.weight)
    if loss in TIES:
        return {**found, "events": float(judged.y), "concordance": ratio(judged.concordant, judged.pairs)}
    if len(sums.labels):
        found |= {"accuracy": ratio(judged.correct, weight), "log_loss": ratio(judged.deviance, weight)}
        return {**found, "AUC": ratio(*ordered(judged.scores))} if judged.scores.size else found
    if loss in ("poisson", "gamma"):
        found["mean_deviance"] = ratio(2 * judged.deviance, weight)
        if not test:  # the null model of rows with offsets is fitted on the training rows
            found["D2"] = 1 - ratio(judged.deviance, null_deviance(loss, sums, y_std, intercept) / 2)
    else:
        found["R2"] = 1 - ratio(judged.squared, centred(judged, float(judged.y) / weight))
        found["NMSE"] = ratio(judged.squared, centred(judged, ratio(sums.train.y, sums.train.weight)))
    return {**found, "RMSE": y_std * math.sqrt(ratio(judged.squared, weight))}


def measures_at(agent: str, loss: str, sums: Sums, by_agent: ByAgent, test: bool, y_std: float) -> Measures:
    """The same at one agent; the sums tell which labels and which mean of the target all rows have."""
    if not by_agent:
        raise AmbleError("this model has no measures of single agents; those of live runs with a survey have them.")
    if agent not in by_agent:
        raise unknown("agent in this model", agent, by_agent)
    numbers = by_agent[agent]["test" if test else "train"]
    judged = Judged(**{name: np.asarray(number) for name, number in numbers.items()}, scores=np.zeros((2, 0)))
    found = measures(loss, sums._replace(test=judged), True, y_std, True)
    two = len(sums.labels) == 2 and judged.rows
    return {**found, "AUC": ratio(judged.concordant, judged.pairs)} if two else found


def score(loss: str, predicted: Targets, y: Targets, s: Array) -> float:
    """Of predictions in the units of the data, with row weights s: accuracy, concordance, R2, or D2 with a log link."""
    if LOSSES[loss].fits(2):
        return float(np.average(predicted == y, weights=s))
    if loss in TIES:
        return ratio(*concordance(predicted, y))
    mean = np.average(y, weights=s)
    if LOSSES[loss].link() == "identity":
        return 1 - ratio(s @ (y - predicted) ** 2, s @ (y - mean) ** 2)
    etas = np.log(predicted), np.full(len(y), np.log(mean))
    ours, null = (s @ rows_of(loss, eta[:, None], y).deviance for eta in etas)
    return 1 - ratio(ours, null)


def centred(judged: Judged, mean: float) -> float:
    """sum s (y - mean)^2."""
    return float(judged.yy - 2 * mean * judged.y + mean**2 * judged.weight)


def ratio(a: float | Array, b: float | Array) -> float:
    return float(a) / float(b) if float(b) > 0 else math.nan


def null_deviance(loss: str, sums: Sums, y_std: float, intercept: bool, y_mean: float = 0.0) -> float:
    """The deviance of the best model with nothing but an intercept; of least squares without one, that of zeros."""
    train, S = sums.train, float(sums.train.weight)
    if loss in TIES:
        return 2 * float(sums.null)
    if len(sums.labels):
        seen = sums.labels[sums.labels > 0]
        return -2 * float(seen @ np.log(seen / S))
    if loss == "poisson":
        total = float(train.y)
        fitted = total * math.log(total / float(sums.base)) if total > 0 else 0.0
        return 2 * (float(sums.entropy - sums.crossed) - fitted)
    if loss == "gamma":
        return 2 * (float(sums.entropy + sums.crossed) + S * math.log(float(sums.base) / S))
    return y_std**2 * centred(train, float(train.y) / S if intercept else -y_mean / y_std)
