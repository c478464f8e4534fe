"""The table of a model: coefficients with their errors, and how well it fits. SciPy is for Student's t alone."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from amble.arrays import Array
from amble.data.datasets import count
from amble.errors import AmbleError, is_number, need
from amble.results import inference
from amble.results.judging import measures, null_deviance
from amble.results.partial import TIES
from amble.results.sums import Sums

WIDTH = 80
NEAR = 1e-4  # standard errors from the optimum, up to where nothing is said about it
JUDGED = ("RMSE", "accuracy", "AUC", "concordance")  # what the table has of the held-out rows
ERRORS = {
    "model": "Standard errors: of the likelihood.",
    "robust": "Standard errors: robust, by row (HC0).",
    "cluster": "Standard errors: robust, by agent, times G/(G-1) (n-1)/(n-k).",
    "none": "",
}


SEPARATED = 1e-3  # of the log loss per row: below it labels are told apart almost for certain


class Fit(NamedTuple):
    """What is shown: each parameter is a linear function of the model's own numbers."""

    loss: str
    names: tuple[str, ...]
    groups: tuple[str, ...]  # with more than two labels: all but the first, which the others are compared with
    values: Array
    transform: Array
    own_names: tuple[str, ...]  # of the model's own numbers
    classes: int  # as many as the model has numbers for; 1 and 0: one set
    y_std: float
    y_mean: float
    intercept: bool
    penalty: Mapping[str, float]
    target: str | None
    labels: tuple[str, ...]
    about: Mapping[str, Any]


@final
@dataclass(frozen=True, eq=False)
class Summary:
    """The table of a model, made by `Model.summary`. `measures` has the numbers above it by their names."""

    title: str
    names: tuple[str, ...]
    groups: tuple[str, ...]
    coef: Array
    std_err: Array  # this and the next four are nan with cov="none"
    statistic: Array  # z or t
    p_value: Array
    low: Array
    high: Array
    kind: str  # z or t
    level: float
    cov: str
    covariance: Array  # of the coefficients, in the order of the table
    measures: dict[str, float]
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        rule, blank = "=" * WIDTH, "-" * WIDTH
        return "\n".join([self.title, rule, *self._head(), blank, *self._body(), rule, *self.notes])

    def _head(self) -> list[str]:
        cells = [f"{name:<20}{_short(value):>17}" for name, value in self.measures.items()]
        half = -(-len(cells) // 2)
        right = [*cells[half:], *[""] * (2 * half - len(cells))]
        return [f"{a}      {b}".rstrip() for a, b in zip(cells[:half], right, strict=True)]

    def _body(self) -> list[str]:
        tested = self.cov != "none"
        width = WIDTH - (61 if tested else 13)
        heads = [f"{'':{width}}", f"{'coef':>12}"]
        if tested:
            limits = (f"{(1 - self.level) / 2:.3f}", f"{(1 + self.level) / 2:.3f}")
            heads += [f"{'std err':>11}", f"{self.kind:>9}", f"{f'P>|{self.kind}|':>7}", *(f"{x:>11}" for x in limits)]
        lines = ["".join(heads)]
        columns = (self.coef, self.std_err, self.statistic, self.p_value, self.low, self.high)
        for k, row in enumerate(zip(*columns, strict=True)):
            if self.groups and k % len(self.names) == 0:
                lines.append(f"{self.groups[k // len(self.names)]}:")
            name = self.names[k % len(self.names)]
            short = name if len(name) < width else f"{name[: width - 4]}..."
            cells = f"{short:{width}}{digits(row[0]):>12}"
            if tested:
                cells += f"{digits(row[1]):>11}{row[2]:>9.3f}{row[3]:>7.3f}{digits(row[4]):>11}{digits(row[5]):>11}"
            lines.append(cells)
        return lines

    def to_pandas(self) -> Any:
        """The table, one row per coefficient.

        Returns
        -------
        pandas.DataFrame : columns coef, std_err, z or t, p_value, low, high

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), ridge=0.0, weights="rows")
        >>> model = amble.simulate(amble.Relay(form="full"), problem, hops=60).trained(problem)
        >>> model.summary().to_pandas().shape
        (11, 6)
        """
        pandas = need("pandas", "all")
        names = list(self.names)
        index = pandas.MultiIndex.from_product([self.groups, names]) if self.groups else pandas.Index(names)
        columns = {"coef": self.coef, "std_err": self.std_err, self.kind: self.statistic, "p_value": self.p_value}
        return pandas.DataFrame({**columns, "low": self.low, "high": self.high}, index=index)

    def to_latex(self) -> str:
        """The table of coefficients as a LaTeX tabular.

        Returns
        -------
        str

        Example
        -------
        >>> import amble
        >>> problem = amble.split(amble.load("diabetes"), ridge=0.0, weights="rows")
        >>> model = amble.simulate(amble.Relay(form="full"), problem, hops=60).trained(problem)
        >>> print(model.summary().to_latex().splitlines()[0])
        \\begin{tabular}{lrrrrrr}
        """
        tested = self.cov != "none"
        heads = ["", "coef", *(["std err", self.kind, "$p$", "low", "high"] if tested else [])]
        lines = [f"\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", "\\hline", f"{' & '.join(heads)} \\\\", "\\hline"]
        columns = (self.coef, self.std_err, self.statistic, self.p_value, self.low, self.high)
        for k, row in enumerate(zip(*columns, strict=True)):
            group = f"{self.groups[k // len(self.names)]}: " if self.groups else ""
            cells = [_escaped(group + self.names[k % len(self.names)]), digits(row[0])]
            if tested:
                cells += [
                    digits(row[1]),
                    f"{row[2]:.3f}",
                    f"{row[3]:.3f}",
                    digits(row[4]),
                    digits(row[5]),
                ]
            lines.append(f"{' & '.join(cells)} \\\\")
        return "\n".join([*lines, "\\hline", "\\end{tabular}"])


def summarise(fit: Fit, sums: Sums, cov: str, level: float) -> Summary:
    """The table of a fit; refused in a sentence where it would have no meaning."""
    inference.check_cov(cov)
    if not (is_number(level) and 0 < level < 1):
        raise AmbleError(f"level={level} was given; it is the chance of a confidence interval, such as 0.95.")
    k, notes, unknown = len(fit.values), [], np.full(len(fit.values), np.nan)
    std_err, matrix, freedom = unknown, np.full((k, k), np.nan), float(sums.train.weight) - k
    if cov != "none":
        _refuse_penalty(fit)
        if others := other_rows(fit.about):
            raise inference.NoErrors(f"{others}, so these errors would not be its own; train it again")
        matrix = inference.covariance(fit.loss, sums, cov, fit.classes, fit.own_names)
        matrix = fit.transform @ matrix @ fit.transform.T
        std_err = np.sqrt(np.diagonal(matrix))
        notes += [ERRORS[cov], *_optimality(fit, sums)]
    kind = "t" if fit.loss == "least-squares" and cov in ("model", "none") else "z"
    statistic = np.divide(fit.values, std_err, out=unknown.copy(), where=std_err > 0)
    p_value, quantile = (
        _student(statistic, freedom, level) if kind == "t" and cov != "none" else _normal(statistic, level)
    )
    if cov == "cluster" and sums.agents <= k:
        notes.append(
            f"{float(sums.agents):.0f} agents are too few for errors by agent of {k} coefficients: do not rely on them."
        )
    if fit.labels and float(sums.train.deviance) < SEPARATED * float(sums.train.weight):
        notes.append("The columns tell all labels apart, so coefficients have no bound; leave one out, or add a ridge.")
    filled = json.loads(fit.about["survey"]).get("filled", 0) if fit.about.get("survey") else 0
    if filled and cov != "none":
        cells = count(filled, "missing cell")
        notes.append(f"{cells} {'was' if filled == 1 else 'were'} filled with the mean; the errors do not count that.")
    if fit.groups:
        notes.append(f"Each label against {fit.labels[0]}.")
    if cov == "none" and fit.penalty:
        notes.append(f"Trained with a penalty ({_penalty(fit)}): no standard errors.")
    if others := other_rows(fit.about):
        notes.append(f"No standard errors: {others}.")
    if not fit.intercept and fit.loss not in TIES:
        notes.append("Without an intercept.")
    return Summary(
        title=_title(fit),
        names=fit.names,
        groups=fit.groups,
        coef=fit.values,
        std_err=std_err,
        statistic=statistic,
        p_value=p_value,
        low=fit.values - quantile * std_err,
        high=fit.values + quantile * std_err,
        kind=kind,
        level=level,
        cov=cov,
        covariance=matrix,
        measures=_measures(fit, sums, k),
        notes=tuple(notes),
    )


def other_rows(about: Mapping[str, Any]) -> str:
    """Where the sums are of other rows than the model, as an agent of a live run has noticed: how they differ."""
    if about.get("recounting"):
        return "the run ended in a recount: the model may have rows of agents that died, which are not in the sums"
    if silent := about.get("silent", 0):
        more = f"{silent} more agent{'s' * (silent > 1)}"
        return f"the model has the rows of {more} than the sums, which died or left before"
    return ""


def _title(fit: Fit) -> str:
    target = "" if fit.target is None else f" of {fit.target}"
    return f"{fit.loss}{target}"


def _penalty(fit: Fit) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in fit.penalty.items())


def _refuse_penalty(fit: Fit) -> None:
    if fit.penalty:
        zeros = ", ".join(f"{name}=0" for name in fit.penalty)
        raise inference.NoErrors(
            f"this model was trained with a penalty ({_penalty(fit)}), which pulls its coefficients towards zero by an "
            f"amount that no standard error knows; train it with {zeros}"
        )


def _optimality(fit: Fit, sums: Sums) -> list[str]:
    """Whether the model is the maximum of the likelihood of all rows: its gradient says how far it is from there."""
    far = inference.distance(fit.loss, sums, fit.classes, fit.own_names)
    if far > inference.FAR:
        raise inference.NoErrors(
            f"the model is {far:.2g} standard errors from the optimum of all rows, so these errors are not its own; "
            "train it longer, with weights='rows'"
        )
    return [f"The model is {far:.1g} standard errors from the optimum."] if far > NEAR else []


def _normal(z: Array, level: float) -> tuple[Array, float]:
    from statistics import NormalDist  # which takes long to import, and an agent needs it at its end at most

    tails = np.array([math.erfc(abs(each) / math.sqrt(2)) for each in z.tolist()])
    return tails, NormalDist().inv_cdf((1 + level) / 2)


def _student(t: Array, freedom: float, level: float) -> tuple[Array, float]:
    special = need("scipy.special", "sim")
    return 2 * special.stdtr(freedom, -np.abs(t)), float(special.stdtrit(freedom, (1 + level) / 2))


def _measures(fit: Fit, sums: Sums, k: int) -> dict[str, float]:
    """The numbers above the table."""
    if "l1" in fit.penalty and not fit.groups:  # a lasso has as many degrees of freedom as coefficients that are not 0
        k = int((fit.values != 0).sum())
    train, loss = sums.train, fit.loss
    n = float(train.weight)
    found = {"agents": float(sums.agents), "rows": float(train.rows)}
    if n != found["rows"]:
        found["sum of weights"] = n
    if loss in TIES:
        found["events"] = float(train.y)
    found["df model"] = float(k - fit.intercept * max(len(fit.groups), 1))
    if loss not in TIES:
        found["df residuals"] = n - k
    null = null_deviance(loss, sums, fit.y_std, fit.intercept, fit.y_mean)
    fitted = inference.likelihood(loss, sums, k, fit.y_std) if n > k else None
    if fitted is not None:
        ours, baseline = fitted
        found |= {"log-likelihood": ours, "null log-likelihood": baseline}
        found |= {"AIC": 2 * k - 2 * ours, "BIC": math.log(n) * k - 2 * ours}
    if loss not in TIES and loss != "huber":
        scale = fit.y_std**2 if loss == "least-squares" else 1.0
        found |= {"deviance": 2 * float(train.deviance) * scale, "null deviance": null}
        if loss in inference.DISPERSED and n > k:
            found["dispersion"] = inference.dispersion(loss, sums, k) * scale
        elif loss == "poisson":
            found["Pearson chi2"] = float(sums.pearson)
    if loss == "least-squares":
        found["R2"] = 1 - found["deviance"] / null
        if n > k:
            found["adjusted R2"] = 1 - (n - fit.intercept) / (n - k) * (1 - found["R2"])
    elif fitted is not None and loss not in TIES:
        found["pseudo R2"] = 1 - fitted[0] / fitted[1]
    shown = measures(loss, sums, bool(sums.test.rows), fit.y_std, fit.intercept)
    label = "test" if sums.test.rows else "training"
    return found | {f"{label} {name}": value for name, value in shown.items() if name in JUDGED}


def _short(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e12 else f"{value:,.6g}"


def digits(value: float) -> str:
    """A coefficient or an error, in at most 11 characters where it is not negative."""
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.3e}"


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "&%$#_{}" else letter for letter in text)
