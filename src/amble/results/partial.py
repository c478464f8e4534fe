"""Cox's partial likelihood of one agent's rows: its value, slope and bend, and what each row adds to the slope.

Targets are times, negative where the row is censored. Of d deaths at one time, with the weights e_l = s_l exp(x_l.w) of
all rows that are still at risk and D0 their sum over the deaths, the k-th term (k = 0 to d - 1) is

    S0_k = sum of e over the risk set - (k/d) D0

under Efron's rule for ties; Breslow's has no second term. The log-likelihood is sum_deaths s x.w - sum_k s' log S0_k,
with s' the mean weight of the deaths. Every agent is a stratum of its own: nobody compares times across agents.
"""

from bisect import bisect_left, bisect_right, insort
from typing import NamedTuple

import numpy as np

from amble.arrays import Array

TIES = {"cox": "efron", "cox-breslow": "breslow"}  # of the losses that have a partial likelihood


class Partial(NamedTuple):
    loss: float  # minus the partial log-likelihood
    gradient: Array  # of the loss
    hessian: Array
    scores: Array  # one row per row: what it adds to the gradient, for a weight of one
    events: float


def partial(w: Array, X: Array, y: Array, weight: Array, ties: str = "efron") -> Partial:
    """At the model w."""
    order = np.argsort(-np.abs(y), kind="stable")  # the last time first: a risk set is a beginning
    X, t, died, s = X[order], np.abs(y)[order], y[order] > 0, weight[order]
    eta = X @ w
    top = eta.max(initial=-np.inf) if len(eta) else 0.0
    e = s * np.exp(eta - top)

    begin = np.flatnonzero(np.r_[True, t[1:] != t[:-1]]) if len(t) else np.zeros(0, np.intp)
    group = np.cumsum(np.r_[True, t[1:] != t[:-1]]) - 1 if len(t) else np.zeros(0, np.intp)
    ends = np.r_[begin[1:], len(t)] - 1  # the last row of each time: all up to it are at risk

    def at_times(values: Array) -> Array:
        """Sums over the deaths of each time."""
        return np.add.reduceat(np.where(died.reshape(-1, *[1] * (values.ndim - 1)), values, 0.0), begin, axis=0)

    deaths = at_times(np.ones(len(t)))
    hit = np.flatnonzero(deaths > 0)  # the times at which somebody died
    d = deaths[hit].astype(np.intp)
    which = np.repeat(hit, d)  # one entry per term (time, k)
    k = np.arange(len(which)) - np.repeat(np.cumsum(d) - d, d)
    share = k / deaths[which] if ties == "efron" else np.zeros(len(which))
    mean_weight = (at_times(s) / np.maximum(deaths, 1))[which]

    S0 = np.cumsum(e)[ends][which] - share * at_times(e)[which]
    S1 = np.cumsum(e[:, None] * X, axis=0)[ends][which] - share[:, None] * at_times(e[:, None] * X)[which]
    x_bar = S1 / S0[:, None]

    def per_row(term: Array) -> Array:
        """The sum over all terms in which a row is at risk; a row that died then is less so in the later ones."""
        shape = (len(begin), *term.shape[1:])
        whole, less = np.zeros(shape), np.zeros(shape)
        np.add.at(whole, which, term)
        np.add.at(less, which, share.reshape(-1, *[1] * (term.ndim - 1)) * term)
        since = np.cumsum(whole[::-1], axis=0)[::-1]  # times run backwards: those up to the row's come after it
        gone = died.reshape(-1, *[1] * (term.ndim - 1))
        return np.asarray(since[group] - np.where(gone, less[group], 0.0))

    rate = mean_weight / S0
    hazard, pull = per_row(rate), per_row(rate[:, None] * x_bar)
    relative = np.exp(eta - top)
    mean_bar = np.zeros((len(begin), X.shape[1]))  # the mean of x_bar over the terms of a time
    np.add.at(mean_bar, which, x_bar / deaths[which][:, None])
    scores = np.where(died[:, None], mean_bar[group] - X, 0.0) + relative[:, None] * (hazard[:, None] * X - pull)

    loss = mean_weight @ (np.log(S0) + top) - (s * died) @ eta
    gradient = mean_weight @ x_bar - (s * died) @ X
    hessian = X.T @ ((e * hazard)[:, None] * X) - x_bar.T @ (mean_weight[:, None] * x_bar)
    back = np.argsort(order, kind="stable")
    return Partial(float(loss), gradient, hessian, scores[back], float((s * died).sum()))


def concordance(eta: Array, y: Array) -> tuple[float, float]:
    """Of pairs of which one is known to have died first: how many have the larger eta there (ties count half), and how
    many there are."""
    risks: list[float] = []  # of all who lived longer, sorted
    right, pairs = 0.0, 0.0
    for time in np.unique(np.abs(y))[::-1]:
        for value in eta[y == -time].tolist():  # censored then: they lived longer than who died then
            insort(risks, value)
        died = eta[y == time].tolist()
        for value in died:
            below, up_to = bisect_left(risks, value), bisect_right(risks, value)
            right += (below + up_to) / 2
        pairs += len(died) * len(risks)
        for value in died:
            insort(risks, value)
    return right, pairs
