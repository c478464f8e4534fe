"""Models of agents' rows, fitted by Newton's method on the agents' own sums; others judge them by the pooled rows."""

import numpy as np

from amble.problem.assemble import Scaling, prepare, targets_in_units
from amble.results.model import Model
from amble.results.partial import TIES
from amble.results.sums import Sums, sums_of, unpacked

LOG_LINK = ("poisson", "gamma")
NAMES = ("dose", "age", "town=Ulm")
LABELS = {"logistic": ("no", "yes"), "softmax": ("bad", "fair", "good")}


class Sample:
    """Rows of several agents, of different sizes and scales: X, y, group, exposure, and the model fitted to them."""

    def __init__(self, loss, sizes=(60, 100, 140), seed=1, weighted=False, intercept=True, labels=()):
        rng = np.random.default_rng(seed)
        self.loss, d = loss, sum(sizes)
        self.group = np.repeat(np.arange(len(sizes)), sizes)
        town = rng.integers(0, 2, d).astype(np.float64)
        self.X = np.column_stack([rng.normal(3.0, 0.5, d), 40 + 12 * rng.normal(size=d) + 3 * self.group, town])
        eta = 0.8 * (self.X[:, 0] - 3) + 0.03 * (self.X[:, 1] - 42) - 0.5 * town
        self.exposure = rng.uniform(0.5, 3.0, d) if loss in LOG_LINK else np.ones(d)
        self.labels = labels or LABELS.get(loss, ())
        self.y = self._targets(rng, eta)
        self.weight = rng.integers(1, 4, d).astype(np.float64) if weighted else np.ones(d)
        intercept = intercept and loss not in TIES
        self.sums, self.model = None, None
        self._fit(intercept)

    def _targets(self, rng, eta):
        d = len(eta)
        if self.loss == "logistic":
            return np.where(rng.uniform(size=d) < 1 / (1 + np.exp(-eta)), *self.labels[::-1])
        if self.loss == "softmax":
            return np.array(self.labels)[np.argmax(np.outer(eta, [-1, 0, 1]) + rng.gumbel(size=(d, 3)), axis=1)]
        if self.loss == "poisson":
            return rng.poisson(self.exposure * np.exp(0.5 + eta)).astype(np.float64)
        if self.loss == "gamma":
            return self.exposure * rng.gamma(2.0, np.exp(0.5 + eta) / 2)
        if self.loss in TIES:
            time = rng.exponential(np.exp(-eta)) + 1e-3
            time = time if self.loss == "cox" else np.ceil(4 * time)  # with ties
            return np.where(rng.uniform(size=d) < 0.7, time, -time)
        return 100 + 15 * (eta + rng.standard_t(4, size=d))

    def _fit(self, intercept):
        mean, std = self.X.mean(axis=0), self.X.std(axis=0)
        y_mean, y_std = 0.0, 1.0
        if self.loss in LOG_LINK:
            y_mean = float(np.log(self.y.mean() / self.exposure.mean())) if intercept else 0.0
        elif not self.labels and self.loss not in TIES:
            y_mean, y_std = float(self.y.mean()), float(self.y.std())
        if not intercept:
            mean, y_mean = np.zeros(3), 0.0
        self.scaling = Scaling(mean, std, y_mean, y_std)
        rows = prepare(self.X, self.scaling, intercept)
        wanted = self.y
        offset = None
        if self.loss in LOG_LINK:
            offset = y_mean + np.log(self.exposure)
        elif self.loss not in TIES:
            wanted = np.asarray(targets_in_units(self.y, self.scaling, self.labels or None), np.float64)
        self.offset = offset
        classes = len(self.labels)

        def total(w):
            each = []
            for i in np.unique(self.group):
                mine = self.group == i
                o = None if offset is None else offset[mine]
                each.append(sums_of(self.loss, w, rows[mine], wanted[mine], self.weight[mine], o, classes=classes))
            self.each = each
            return Sums.of_vector(sum(s.vector() for s in each), self.loss, rows.shape[1], classes)

        w = np.zeros(rows.shape[1] * (classes if self.loss == "softmax" else 1))
        for _ in range(60):
            self.sums = total(w)
            step = np.linalg.lstsq(unpacked(self.sums.hessian), self.sums.gradient, rcond=1e-10)[0]
            w = w - step
        assert np.abs(step).max() < 1e-10
        self.sums = total(w)
        self.model = Model(
            "classification" if self.labels else "regression",
            self.loss,
            NAMES,
            self.labels,
            intercept,
            w,
            self.scaling,
            target="outcome",
            sums=self.sums,
        )
