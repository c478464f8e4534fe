"""Random convex problems that are hard for a method without steps to choose, and what full Relay needs for each.

python benchmarks/convex.py                    # 1,000 problems, small ridges, many unknowns: about a minute
python benchmarks/convex.py --problems 5000    # more of them

Laps are counted until the model is within 1e-6 of the optimum.
"""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from measure import parser
from rich.console import Console
from rich.table import Table

import amble
from amble.methods.gifts import GiftRules

LOSSES = ("logistic", "softmax", "poisson", "gamma", "huber")
LAPS_MAX = 300
GOAL = 1e-6
UNSEEN = 10_000  # first seed here: the rule was chosen on other seeds, and on another generator
SPLITS = 10


def random_problem(loss: str, seed: int) -> amble.Problem:
    """Two to eight agents and two to six columns, with some of: correlated columns, far rows, separable classes, rows
    sorted by target, agents of unlike size, and a ridge from 1e-6 to 0.1."""
    rng = np.random.default_rng([seed, *loss.encode()])
    agents, p = int(rng.integers(2, 9)), int(rng.integers(2, 7))
    n = agents * int(rng.integers(4, 40))
    X = rng.normal(size=(n, p)) * np.geomspace(1, 10 ** rng.uniform(-1.5, 0), p)
    X = X @ np.linalg.qr(rng.normal(size=(p, p)))[0]
    X /= X.std(axis=0)
    if rng.random() < 0.2:
        X[rng.random(n) < 0.05] *= 10
    y = targets(loss, X, rng)
    noise = 0.0 if rng.random() < 0.7 else y.std() * rng.normal(size=n)
    order = np.argsort(y + noise, kind="stable") if rng.random() < 0.5 else rng.permutation(n)
    even = np.arange(1, agents) * (n // agents)
    cuts = np.sort(rng.choice(np.arange(1, n), agents - 1, replace=False)) if rng.random() < 0.4 else even
    groups = np.empty(n, int)
    groups[order] = np.searchsorted(cuts, np.arange(n), side="right")
    task = "classification" if loss in ("logistic", "softmax") else "regression"
    ridge = 10 ** rng.uniform(-6, -1)
    return amble.Problem.from_arrays(X, y, task=task, groups=groups, ridge=ridge, loss=loss, scale=False)


def targets(loss: str, X: Any, rng: np.random.Generator) -> Any:
    n, p = X.shape
    size = 10 ** rng.uniform(-1, 1)
    t = X @ rng.normal(size=p) * size
    separable = rng.random() < 0.3
    if loss == "logistic":
        y = (t + (0.0 if separable else rng.logistic(size=n)) > 0) * 1
        y[:2] = (0, 1)
        return y
    if loss == "softmax":
        classes = int(rng.integers(3, 6))
        scores = X @ rng.normal(size=(p, classes)) * size
        y = np.argmax(scores + (0.0 if separable else rng.gumbel(size=scores.shape)), axis=1)
        y[:classes] = np.arange(classes)
        return y
    if loss == "huber":
        return t + rng.standard_t(1.5, size=n) * 10 ** rng.uniform(-1, 1)
    mean = np.exp(t / max(1.0, np.abs(t).max() / rng.uniform(1, 6)))
    if loss == "poisson":
        y = rng.poisson(mean) * 1.0
        y[0] += 1
        return y
    shape = 10 ** rng.uniform(-0.5, 1)
    return rng.gamma(shape, mean / shape) + 1e-6 * mean


def laps(problem: amble.Problem, most: int = LAPS_MAX, goal: float = GOAL) -> int | None:
    """Laps of full Relay round all agents, in their order, until the model is near the optimum; None: not within
    `most`. One lap after the other in NumPy: to compile each small problem would take longer."""
    rules = GiftRules(amble.Relay(form="full"), None, problem.penalty)
    start, best = np.zeros(problem.dimension), problem.optimum().w
    losses = [problem.objective(i) for i in range(problem.agents)]
    agents, slots = [rules.agent(f, start) for f in losses], [rules.slot(start) for _ in losses]
    token = rules.token(start, problem.agents, 0)
    for lap in range(1, most + 1):
        for i, f in enumerate(losses):
            agents[i], slots[i], token = rules.visit(f, agents[i], slots[i], token)
        if np.linalg.norm(rules.estimate(token) - best) <= goal * np.linalg.norm(best):
            return lap
    return None


def small_ridges() -> Iterator[tuple[str, list[int | None]]]:
    """Sets of scikit-learn with a ridge of 1e-6 and 1e-4, ten random splits and ten by label."""
    from sklearn import datasets

    for name in ("breast_cancer", "wine", "iris"):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        for ridge in (1e-6, 1e-4):
            for how in ("even", "label"):
                yield f"{name}, ridge {ridge:g}, {how}", [laps(dealt(X, y, how, ridge, s)) for s in range(SPLITS)]


def many_unknowns() -> Iterator[tuple[str, list[int | None]]]:
    """Digits after PCA: 170, 330 and 490 unknowns, ten agents."""
    from sklearn import datasets, decomposition

    X, y = datasets.load_digits(return_X_y=True)
    for columns in (16, 32, 48):
        Z = decomposition.PCA(columns, random_state=0).fit_transform(X)
        for how in ("even", "label"):
            counts = [laps(dealt(Z, y, how, 1e-4, seed), most=40) for seed in range(2)]
            yield f"digits, {10 * (columns + 1)} unknowns, {how}", counts


def dealt(X: Any, y: Any, how: str, ridge: float, seed: int) -> amble.Problem:
    """Ten agents: rows in random order, or sorted by label from a random row on."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    if how == "label":
        order = np.roll(order[np.argsort(y[order], kind="stable")], rng.integers(len(y)))
    groups = np.empty(len(y), int)
    groups[order] = np.arange(len(y)) * 10 // len(y)
    return amble.Problem.from_arrays(X, y, task="classification", groups=groups, ridge=ridge)


def row(name: str, counts: Iterable[int | None]) -> list[str]:
    counts = list(counts)
    reached = [count for count in counts if count is not None]
    numbers = [f"{value:g}" for value in np.percentile(reached, [50, 25, 75, 99, 100])] if reached else [""] * 5
    return [name, str(len(counts)), *numbers, str(len(counts) - len(reached))]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--problems", type=int, default=1000)
    arguments = options.parse_args()
    warnings.simplefilter("ignore")
    table = Table(title=f"laps of full Relay to {GOAL:g}")
    for heading in ("problems", "number", "median", "25 %", "75 %", "99 %", "most", f"not in {LAPS_MAX}"):
        table.add_column(heading, justify="right")
    console = Console()
    each = arguments.problems // len(LOSSES)
    for loss in LOSSES:
        console.print(f"{loss} ...", style="dim")
        table.add_row(*row(loss, (laps(random_problem(loss, UNSEEN + k)) for k in range(each))))
    for rows in (small_ridges(), many_unknowns()):
        for name, counts in rows:
            console.print(f"{name} ...", style="dim")
            table.add_row(*row(name, counts))
    console.print(table)


if __name__ == "__main__":
    main()
