"""A small convolutional network, trained by each method on digits or USPS: accuracy against messages and virtual time.

Ten agents hold the rows evenly, by Dirichlet(0.1), or one label each. Every method has one number tuned, from a grid of
five, on rows kept back from the training rows, with a seed of its own. Then it trains with three other seeds (split,
initial weights, batches, walk), and is measured on test rows that nothing was chosen on. All have the same budget of
messages and the same batches. `python benchmarks/networks.py --data usps` needs AMBLE_DATA.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import amble
from amble.losses import JaxLoss

AGENTS, BATCH, EVERY = 10, 32, 100
SEEDS, TUNING_SEED = (1, 2, 3), 0
SPLITS = {"even": {"how": "even"}, "dirichlet": {"how": "dirichlet", "alpha": 0.1}, "by-label": {"how": "by-label"}}
ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0)
# of each method: its maker from the number that is tuned, and the five that are tried
METHODS: dict[str, tuple[Any, tuple[float, ...]]] = {
    "WPG": (lambda a: amble.WPG(alpha=a), (0.1, 0.3, 1.0, 3.0, 10.0)),
    "gAPI-BCD": (lambda a: amble.GAPIBCD(tau=1 / a, rho=0.1, tokens=1), (0.03, 0.1, 0.3, 1.0, 3.0)),
    "Relay, gradient": (lambda _: amble.Relay(form="gradient"), (0.1, 0.3, 1.0, 3.0, 10.0)),  # 1 / smoothness
    "FedAvg, 5 steps": (lambda a: amble.FedAvg(alpha=a, local_steps=5), ALPHAS),
    "DGD": (lambda a: amble.DGD(alpha=a), ALPHAS),
    "FedAvg, 5 steps, 10 times the messages": (lambda a: amble.FedAvg(alpha=a, local_steps=5), ALPHAS),
    "DGD, 10 times the messages": (lambda a: amble.DGD(alpha=a), ALPHAS),
    "TokenSGD": (lambda a: amble.TokenSGD(alpha=a), ALPHAS),
    "TokenSGD, 5 steps": (lambda a: amble.TokenSGD(alpha=a, local_steps=5), ALPHAS),
    "TokenSGD, 5 steps, mix 0.5": (lambda a: amble.TokenSGD(alpha=a, local_steps=5, mix=0.5), ALPHAS),
    "TokenSGD, 5 steps, mu 1": (lambda a: amble.TokenSGD(alpha=a, local_steps=5, mu=1.0), ALPHAS),
    "TokenSGD, momentum": (lambda a: amble.TokenSGD(alpha=a / 10, step="momentum"), ALPHAS),
    "TokenSGD, 5 tokens": (lambda a: amble.TokenSGD(alpha=a, tokens=5), ALPHAS),
}  # fmt: skip


def layer(x, weight, bias):
    """A convolution of 3 x 3 with zeros around, as one matrix product; then the mean of each 2 x 2."""
    side = x.shape[1]
    around = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    near = jnp.concatenate([around[:, i : i + side, j : j + side] for i in range(3) for j in range(3)], axis=-1)
    y = jax.nn.relu(near @ weight + bias)
    return y.reshape(len(y), side // 2, 2, side // 2, 2, -1).mean(axis=(2, 4))


def scores(params, x):
    side = round(x.shape[1] ** 0.5)
    hidden = layer(x.reshape(-1, side, side, 1), params["A"], params["a"])
    hidden = layer(hidden, params["B"], params["b"])
    return hidden.reshape(len(x), -1) @ params["C"] + params["c"]


def loss(params, batch):
    x, y = batch
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores(params, x)), y[:, None], axis=1))


def accuracy(params, test):
    return jnp.mean(scores(params, test[0]).argmax(axis=1) == test[1])


def first_weights(side: int, seed: int) -> dict[str, Any]:
    rng, last = np.random.default_rng(seed), 16 * (side // 4) ** 2
    sizes = {"A": (9, 8), "B": (72, 16), "C": (last, 10)}
    weights = {name: np.float32(rng.normal(size=size) * np.sqrt(2 / size[0])) for name, size in sizes.items()}
    return weights | {name.lower(): np.zeros(size[1], np.float32) for name, size in sizes.items()}


def rows_of(name: str) -> tuple[Any, ...]:
    """Training, validation and test rows, between 0 and 1."""
    data = amble.load(name)
    X, y = np.asarray(data.X, float), np.asarray(data.y).astype(int)
    low, high = X.min(), X.max()
    order = np.random.default_rng(0).permutation(len(y))
    if data.X_test is None:
        kept, test = order[len(y) // 5 :], order[: len(y) // 5]
        X_test, y_test = X[test], y[test]
    else:
        kept, X_test, y_test = order, np.asarray(data.X_test, float), np.asarray(data.y_test).astype(int)
    labels = {label: k for k, label in enumerate(np.unique(y))}  # USPS counts from 1
    number = np.vectorize(labels.get)
    validation, train = kept[: len(kept) // 6], kept[len(kept) // 6 :]
    scale = lambda X: ((X - low) / (high - low)).astype(np.float32)  # noqa: E731
    return ((scale(X[train]), number(y[train])), (scale(X[validation]), number(y[validation])),
            (scale(X_test), number(y_test)))  # fmt: skip


def problem_of(train, test, split: dict[str, Any], seed: int, agents: int = AGENTS, smoothness: float | None = None):
    (X, y), side = train, round(train[0].shape[1] ** 0.5)
    parts = amble.Problem.from_arrays(X, y, agents=agents, seed=seed, **split).parts if agents > 1 else [slice(None)]
    losses = JaxLoss(
        loss, first_weights(side, seed), [(X[part], y[part]) for part in parts], batch_size=BATCH, seed=seed,
        weights="rows", smoothness=smoothness, metric=accuracy, test=test, task="classification",
    )  # fmt: skip
    return amble.Problem.from_objectives(losses, name="network")


def trained(name: str, number: float, problem: amble.Problem, seed: int, units: int) -> amble.Run:
    method = METHODS[name][0](number)
    units = 10 * units if name.endswith("10 times the messages") else units
    network = amble.networks.random(AGENTS, 0.5, seed=seed)
    each = max(1, units // 40)
    if isinstance(method, amble.FedAvg | amble.DGD):
        per_round = 2 * AGENTS if isinstance(method, amble.FedAvg) else 2 * len(network.edges)
        each = max(1, each // per_round)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a step that is too large diverges, which is what tuning is for
        return amble.simulate(method, problem, network, comm_units=units, every=each, seed=seed, optimum=False,
                              progress=False)  # fmt: skip


def centralised(train, test, number: float, seed: int, steps: int) -> float:
    """All rows at one place, with momentum: the line to reach."""
    problem = problem_of(train, test, {}, seed, agents=1)
    method = amble.TokenSGD(alpha=number, step="momentum", schedule="cosine", span=steps)
    run = amble.simulate(method, problem, "complete", hops=steps, every=steps, optimum=False, progress=False, seed=seed)
    return float(run.history["metric"][-1])


def score(run: amble.Run) -> float:
    last = run.history["metric"][-3:]  # the last records together: with label skew accuracies jump
    return float(np.mean(last)) if run.stopped != "diverged" else 0.0


class Problems:
    """Made once each, so that a method is compiled once for all five numbers."""

    def __init__(self, data: tuple[Any, ...], split: dict[str, Any]) -> None:
        self.train, self.validation, self.test = data
        self.split, self.made = split, dict[Any, amble.Problem]()

    def __call__(self, name: str, number: float, seed: int) -> amble.Problem:
        smoothness = 1 / number if name.startswith("Relay") else None
        if (seed, smoothness) not in self.made:
            test = self.validation if seed == TUNING_SEED else self.test
            self.made[seed, smoothness] = problem_of(self.train, test, self.split, seed, smoothness=smoothness)
        return self.made[seed, smoothness]


def row(name: str, problems: Problems, units: int, goal: float) -> dict[str, Any]:
    tried = {a: score(trained(name, a, problems(name, a, TUNING_SEED), TUNING_SEED, units)) for a in METHODS[name][1]}
    number = max(tried, key=lambda a: tried[a])
    runs = [trained(name, number, problems(name, number, seed), seed, units) for seed in SEEDS]
    curves = np.array([run.history["metric"][-10:] for run in runs])
    firsts = [first_record(run, goal) for run in runs]
    return {
        "method": name,
        "number": number,
        "tried": tried,
        "accuracy": [score(run) for run in runs],
        "swing": float(np.ptp(curves, axis=1).mean()),
        "units_to": [
            None if k is None else int(run.history["comm_units"][k]) for run, k in zip(runs, firsts, strict=True)
        ],
        "time_to": [
            None if k is None else float(run.history["time_s"][k]) for run, k in zip(runs, firsts, strict=True)
        ],
        "bytes": [int(run.history["bytes"][-1]) for run in runs],
        "time_s": [float(run.history["time_s"][-1]) for run in runs],
    }


def first_record(run: amble.Run, goal: float) -> int | None:
    """At which the accuracy is reached."""
    reached = np.flatnonzero(run.history["metric"] >= goal)
    return int(reached[0]) if len(reached) else None


def tables(folder: Path) -> None:
    """Rewrites the tables of docs/networks.md from the figures that were kept."""
    page = folder / "networks.md"
    text = page.read_text()
    for name in ("digits", "usps"):
        begin, end = f"<!-- networks: {name} -->\n", f"<!-- end: {name} -->"
        before, _, rest = text.partition(begin)
        made = table(json.loads((folder / f"networks-{name}.json").read_text()))
        text = before + begin + made + end + rest.partition(end)[2]
    page.write_text(text)


def table(result: dict[str, Any]) -> str:
    splits = {name: result["splits"][name] for name in SPLITS if name in result["splits"]}
    measured = {row["method"] for rows in splits.values() for row in rows}
    names = [name for name in METHODS if name in measured]
    lines = [f"| method | {' | '.join(splits)} |", "|---" * (1 + len(splits)) + "|"]
    for name in names:
        cells = [next((cell(row) for row in rows if row["method"] == name), "-") for rows in splits.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    line = result["centralised"]
    lines.append(
        f"| *centralised* | {np.mean(line):.3f} ({min(line):.3f} to {max(line):.3f}) |" + " |" * (len(splits) - 1)
    )
    return "\n".join(lines) + "\n"


def cell(row: dict[str, Any]) -> str:
    accuracy, reached = row["accuracy"], [units for units in row["units_to"] if units is not None]
    cost = (
        f"{int(np.median(reached)):,}" if len(reached) == len(accuracy) else f"{len(reached)} of {len(accuracy)} seeds"
    )
    return f"{np.mean(accuracy):.3f} ({min(accuracy):.3f} to {max(accuracy):.3f}); {cost}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="digits", choices=("digits", "usps"))
    parser.add_argument("--units", type=int, default=2000, help="messages of each run")
    parser.add_argument("--goal", type=float, default=0.9, help="the accuracy whose cost is measured")
    parser.add_argument("--splits", nargs="+", default=list(SPLITS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--json", type=Path, help="keeps the figures there")
    parser.add_argument("--tables", action="store_true", help="only rewrite the tables of docs/networks.md")
    chosen = parser.parse_args()
    if chosen.tables:
        tables(Path(__file__).resolve().parents[1] / "docs")
        return
    data = rows_of(chosen.data)
    train, validation, test = data
    number = max(ALPHAS, key=lambda a: centralised(train, validation, a, TUNING_SEED, chosen.units))
    line = [centralised(train, test, number, seed, chosen.units) for seed in SEEDS]
    print(f"{chosen.data}: {len(train[1])} training rows, {len(test[1])} test rows; centralised {np.mean(line):.4f}")
    about = {"data": chosen.data, "units": chosen.units, "goal": chosen.goal, "centralised": line}
    result: dict[str, Any] = {**about, "splits": {}}
    if chosen.json and chosen.json.is_file():  # rows that are not measured now stay
        result = {**json.loads(chosen.json.read_text()), **about}
    for split in chosen.splits:
        rows = result["splits"].setdefault(split, [])
        problems = Problems(data, SPLITS[split])
        for name in chosen.methods:
            begun = time.process_time()
            each = row(name, problems, chosen.units, chosen.goal)
            rows[:] = [*(old for old in rows if old["method"] != name), each]
            print(f"{split:10} {name:28} number {each['number']:<5g} accuracy {np.mean(each['accuracy']):.4f} "
                  f"({min(each['accuracy']):.4f} to {max(each['accuracy']):.4f}), swing {each['swing']:.3f}, "
                  f"messages to {chosen.goal}: {each['units_to']}, time {each['time_to']}; "
                  f"{time.process_time() - begun:.0f} s", flush=True)  # fmt: skip
            if chosen.json:
                chosen.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
