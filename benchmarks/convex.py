"""Random convex problems that are hard for a method without steps to choose, and what full Relay needs for each.

python benchmarks/convex.py                    # all that is missing in docs/convex.json: a few minutes
python benchmarks/convex.py random --again     # one part of it: random, several, gifts, ridges, unknowns

Laps are counted until the model is within 1e-6 of the optimum, for each problem on its own. `python docs/convex.py`
writes the tables of docs/theory.md.
"""

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import amble
from amble.files import write_whole
from amble.methods import relay_full
from amble.methods.boards import NoSlot
from amble.methods.gifts import GiftRules
from amble.methods.meetings import MeetingRules

KEPT = Path(__file__).parent.parent / "docs" / "convex.json"
LOSSES = ("logistic", "softmax", "poisson", "gamma", "huber")
LAPS_MAX = 300
GOAL = 1e-6
UNSEEN = 10_000  # first seed here: the rule was chosen on other seeds, and on another generator
SPLITS = 10
EACH = 200  # problems of each loss
UNSEEN_SEVERAL = 30_000
DECIDING = 50_000  # first seed of the problems that decided how often an agent gives in a visit
GIFTS = ((1, 0.1), (2, 0.1), (3, 0.1), (5, 0.1), (3, 0.03), (3, 0.3))  # most in a visit, and what a parabola may miss
PCA_COLUMNS = (16, 32, 48)  # of digits: 170, 330 and 490 unknowns
Counts = list[int | None]


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


def laps(
    problem: amble.Problem, most: int = LAPS_MAX, goal: float = GOAL, tokens: int = 1, kind: Any = amble.Relay
) -> int | None:
    """Laps of full Relay round all agents, in their order, until the model is near the optimum; None: not within
    `most`. One lap after the other in NumPy: to compile each small problem would take longer."""
    if tokens > 1:
        return laps_of_several(problem, most, goal, tokens)
    rules = GiftRules(kind(form="full"), None, problem.penalty)
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


def laps_of_several(problem: amble.Problem, most: int, goal: float, tokens: int) -> int | None:
    """The same with tokens that each visit a part of the agents, and then meet."""
    rules = MeetingRules(amble.Relay(tokens=tokens, form="full"), None, problem.penalty)
    start, best = np.zeros(problem.dimension), problem.optimum().w
    losses = [problem.objective(i) for i in range(problem.agents)]
    agents = [rules.agent(f, start) for f in losses]
    walking = [rules.token(start, problem.agents, m) for m in range(tokens)]
    parts = np.array_split(np.arange(problem.agents), tokens)
    for lap in range(1, most + 1):
        for m, part in enumerate(parts):
            for i in part.tolist():
                agents[i], _, walking[m] = rules.visit(losses[i], agents[i], NoSlot(), walking[m])
        for m in range(tokens):
            agents[0], walking[m] = rules.deliver(agents[0], walking[m])
        walking = [rules.take(agents[0])] * tokens
        if np.linalg.norm(rules.estimate(walking[0]) - best) <= goal * np.linalg.norm(best):
            return lap
    return None


def of_set(name: str, ridge: float, how: str) -> Counts:
    """A set of scikit-learn: ten splits."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return [laps(dealt(X, y, how, ridge, seed)) for seed in range(SPLITS)]


def of_digits(columns: int, how: str) -> Counts:
    """Digits after PCA: many unknowns, two splits."""
    from sklearn import datasets, decomposition

    X, y = datasets.load_digits(return_X_y=True)
    Z = decomposition.PCA(columns, random_state=0).fit_transform(X)
    return [laps(dealt(Z, y, how, 1e-4, seed), most=40) for seed in range(2)]


def dealt(X: Any, y: Any, how: str, ridge: float, seed: int) -> amble.Problem:
    """Ten agents: rows in random order, or sorted by label from a random row on."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    if how == "label":
        order = np.roll(order[np.argsort(y[order], kind="stable")], rng.integers(len(y)))
    groups = np.empty(len(y), int)
    groups[order] = np.arange(len(y)) * 10 // len(y)
    return amble.Problem.from_arrays(X, y, task="classification", groups=groups, ridge=ridge)


def of_random(loss: str, tokens: int | None = 1) -> Counts:
    """Random problems of one loss; with several tokens (None: as many as agents) of other seeds."""
    if tokens == 1:
        return [laps(random_problem(loss, UNSEEN + k)) for k in range(EACH)]
    problems = (random_problem(loss, UNSEEN_SEVERAL + k) for k in range(EACH))
    return [laps(problem, tokens=tokens or problem.agents) for problem in problems]


def of_gifts(most: int, miss: float) -> Counts:
    """Random problems of every loss, with another number of gifts in a visit, and its looks at the
    model that a gift led to."""
    done: Counter[str] = Counter()

    class Trial(amble.Relay):
        def gifts_in_visit(self, f: Any) -> Any:
            return super().gifts_in_visit(f)._replace(most=most)

        def gift(self, *about: Any) -> Any:
            done["visits"] += 1
            return super().gift(*about)

        def look(self, *about: Any) -> Any:
            done["looks"] += 1
            return relay_full.look(*about, miss)

    counts = [laps(random_problem(loss, DECIDING + k), kind=Trial) for loss in LOSSES for k in range(EACH)]
    print(f"  {done['looks'] / done['visits']:.2f} looks per visit")
    return counts


def jobs() -> dict[str, dict[str, Callable[[], Counts]]]:
    """All that docs/convex.json has, by part and row."""
    ridges = [(n, r, how) for n in ("breast_cancer", "wine", "iris") for r in (1e-6, 1e-4) for how in ("even", "label")]
    digits = [(columns, how) for columns in PCA_COLUMNS for how in ("even", "label")]
    return {
        "random": {loss: (lambda loss=loss: of_random(loss)) for loss in LOSSES},
        "several": {
            f"{loss}, {name}": (lambda loss=loss, tokens=tokens: of_random(loss, tokens))
            for loss in LOSSES
            for name, tokens in (("two tokens", 2), ("a token per agent", None))
        },
        "gifts": {
            f"at most {most}, off by {miss:g}": (lambda most=most, miss=miss: of_gifts(most, miss))
            for most, miss in GIFTS
        },
        "ridges": {
            f"{name}, ridge {ridge:g}, {how}": (lambda name=name, ridge=ridge, how=how: of_set(name, ridge, how))
            for name, ridge, how in ridges
        },
        "unknowns": {
            f"digits, {10 * (columns + 1)} unknowns, {how}": (lambda columns=columns, how=how: of_digits(columns, how))
            for columns, how in digits
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(jobs())}; all by default")
    parser.add_argument("--again", action="store_true", help="also what is there already")
    arguments = parser.parse_args()
    if strange := set(arguments.parts) - set(jobs()):
        parser.error(f"there is no part {', '.join(strange)}; choose of {', '.join(jobs())}")
    warnings.simplefilter("ignore")
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for part in arguments.parts or jobs():
        for row, job in jobs()[part].items():
            if row in kept.setdefault(part, {}) and not arguments.again:
                continue
            begun = time.process_time()
            kept[part][row] = job()
            reached = [count for count in kept[part][row] if count is not None]
            missed = len(kept[part][row]) - len(reached)
            took = time.process_time() - begun
            print(f"{part}, {row}: median {np.median(reached):g}, not there {missed} ({took:.1f} s of CPU)", flush=True)
            write_whole({KEPT: (json.dumps(kept) + "\n").encode()})


if __name__ == "__main__":
    main()
