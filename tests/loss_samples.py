"""Rows of sites that differ in size, columns and rates, for the losses of counts, amounts and times."""

import numpy as np

import amble

SIZES = (4, 9, 40, 15, 3, 60, 25, 7)
NEW = ("poisson", "gamma", "huber", "cox", "cox-breslow")
LOG_LINK = ("poisson", "gamma")
COX = ("cox", "cox-breslow")


def targets(loss, rng, eta, exposure):
    if loss == "poisson":
        return rng.poisson(np.exp(eta) * exposure).astype(float)
    if loss == "gamma":
        return rng.gamma(2, np.exp(eta) * exposure / 2) + 1e-9
    if loss == "huber":
        return eta + rng.standard_t(1.5, len(eta))
    times = np.ceil(5 * rng.exponential(np.exp(-eta)) / np.exp(-eta).mean())  # whole, so that there are ties
    return np.maximum(times, 1.0) * np.where(rng.random(len(eta)) < 0.7, 1, -1)


class Sites:
    """Eight sites; from the first to the last the rate grows a hundredfold."""

    def __init__(self, loss, seed=0, sizes=SIZES):
        rng = np.random.default_rng(seed)
        self.loss, self.sizes, beta = loss, sizes, 0.5 * rng.normal(size=3)
        self.rows, self.weight, self.exposure = [], [], []
        for i, d in enumerate(sizes):
            X = rng.normal(size=(d, 3)) * [1.0, 5.0, 0.1] + 3 + rng.normal(size=3)
            eta = ((X - 3) / [1.0, 5.0, 0.1]) @ beta + np.log(10.0) * (2 * i / (len(sizes) - 1) - 1)
            self.weight.append(rng.integers(1, 4, d).astype(float))
            self.exposure.append(rng.uniform(0.5, 20, d))
            self.rows.append((X, targets(loss, rng, eta, self.exposure[-1])))

    def problem(self, weighted=True, **options):
        if weighted:
            options["sample_weight"] = self.weight
        if self.loss in LOG_LINK:
            options["exposure"] = self.exposure
        return amble.Problem.from_agents(self.rows, **{"loss": self.loss, "ridge": 0.0, **options})

    def pooled(self):
        """X, y, weight, exposure and the site of all rows."""
        X, y = (np.concatenate(side) for side in zip(*self.rows, strict=True))
        site = np.repeat(np.arange(len(self.rows)), [len(part) for _, part in self.rows])
        return X, y, np.concatenate(self.weight), np.concatenate(self.exposure), site


def in_own_units(problem, w):
    """Coefficients for the columns as they are and, where there is one, the intercept."""
    s = problem.scaling
    if not problem.settings["intercept"]:
        return w / s.X_std
    scale = s.y_std if problem.loss == "huber" else 1.0
    coefficients = scale * w[:-1] / s.X_std
    return np.append(coefficients, scale * w[-1] + s.y_mean - coefficients @ s.X_mean)
