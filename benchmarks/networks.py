"""A small convolutional network, trained by each method on digits or USPS: accuracy against messages and virtual time.

Ten agents hold the rows evenly, by Dirichlet(0.1), or one label each. All methods have the same budget of messages, the
same batches, and the same tuning: one number, seven trials on rows kept back from the training rows. Five of them are
a factor of sqrt(10) apart, around 0.1, or 1 where a step is divided by the ten agents, or 0.01 with momentum of 0.9.
Two more are each the next value beyond the end where the best one lies, or else half-way to its better neighbour.
Three other seeds (split, initial weights, walk, network) then train with the best, and are measured on test rows.

`python benchmarks/networks.py` makes all figures, keeps each run in docs/networks-*.json as soon as it is done, makes
only what is missing, and rewrites the tables of docs/networks.md. USPS needs AMBLE_DATA.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import amble
from amble.files import write_whole
from amble.losses import JaxLoss

DOCS = Path(__file__).resolve().parents[1] / "docs"
AGENTS, BATCH, UNITS, GOAL = 10, 32, 2000, 0.9
SEEDS, TUNING_SEED = (1, 2, 3), 0
SPLITS = {"even": {"how": "even"}, "dirichlet": {"how": "dirichlet", "alpha": 0.1}, "by-label": {"how": "by-label"}}
STEP, SHARED, CARRIED = 0.1, 1.0, 0.01  # the middle of the trials: a step; one that N divides; one with momentum
MORE = 10  # times the messages
# of each method: its maker from the number that is tuned, the middle of the trials, and its share of the messages
METHODS: dict[str, tuple[Callable[[float], Any], float, int]] = {
    "WPG": (lambda a: amble.WPG(alpha=a), SHARED, 1),
    "gAPI-BCD": (lambda a: amble.GAPIBCD(tau=1 / a, rho=1 / a, tokens=1), SHARED, 1),
    "gAPI-BCD, 5 tokens, tracked": (
        lambda a: amble.GAPIBCD(tau=1 / a, rho=1 / a, tokens=5, token_rule="tracked"), SHARED, 1),
    "Relay, gradient": (lambda _: amble.Relay(form="gradient"), SHARED, 1),  # the number is 1 / smoothness
    "FedAvg, 5 steps": (lambda a: amble.FedAvg(alpha=a, local_steps=5), STEP, 1),
    "D-PSGD": (lambda a: amble.DGD(alpha=a), STEP, 1),
    "AD-PSGD": (lambda a: amble.ADPSGD(alpha=a), STEP, 1),
    "TokenSGD": (lambda a: amble.TokenSGD(alpha=a), STEP, 1),
    "TokenSGD, float16 messages": (lambda a: amble.TokenSGD(alpha=a, message="float16"), STEP, 1),
    "TokenSGD, int8 messages": (lambda a: amble.TokenSGD(alpha=a, message="int8"), STEP, 1),
    "TokenSGD, 5 steps": (lambda a: amble.TokenSGD(alpha=a, local_steps=5), STEP, 1),
    "TokenSGD, 5 steps, mu 1": (lambda a: amble.TokenSGD(alpha=a, local_steps=5, mu=1.0), STEP, 1),
    "TokenSGD, 5 steps, mix 0.5": (lambda a: amble.TokenSGD(alpha=a, local_steps=5, mix=0.5), STEP, 1),
    "TokenSGD, momentum": (lambda a: amble.TokenSGD(alpha=a, step="momentum"), CARRIED, 1),
    "TokenSGD, 5 tokens": (lambda a: amble.TokenSGD(alpha=a, tokens=5), STEP, 1),
    "D-PSGD, 10 times the messages": (lambda a: amble.DGD(alpha=a), STEP, MORE),
    "AD-PSGD, 10 times the messages": (lambda a: amble.ADPSGD(alpha=a), STEP, MORE),
    "FedAvg, 5 steps, 10 times the messages": (lambda a: amble.FedAvg(alpha=a, local_steps=5), STEP, MORE),
}  # fmt: skip
CENTRALISED = "centralised"
# what is measured: of each data set its splits and the methods, in this order
SHORT = ("TokenSGD, float16 messages", "TokenSGD, int8 messages")
USPS = ("TokenSGD", SHORT[1], "WPG", "D-PSGD", SHORT[0], "FedAvg, 5 steps", "AD-PSGD")
RECORDS = {"digits": 40, "usps": 16}  # of each run: with more rows a record takes longer than the training
PLAN: dict[str, dict[str, tuple[str, ...]]] = {
    "digits": dict.fromkeys(SPLITS, tuple(METHODS)),
    "usps": dict.fromkeys(("even", "by-label"), USPS),
}


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
    losses = JaxLoss(  # one seed of batches, so that all problems share a compiled program; agents' rows differ by seed
        loss, first_weights(side, seed), [(X[part], y[part]) for part in parts], batch_size=BATCH,
        weights="rows", smoothness=smoothness, metric=accuracy, test=test, task="classification",
    )  # fmt: skip
    return amble.Problem.from_objectives(losses, name="network")


class Bench:
    """All runs of one data set: each is made once, and kept."""

    def __init__(self, data: str, only_kept: bool = False) -> None:
        self.data, self.path, self.only_kept = data, DOCS / f"networks-{data}.json", only_kept
        self.kept: dict[str, Any] = json.loads(self.path.read_text()) if self.path.is_file() else {}
        self.rows: tuple[Any, ...] | None = None
        self.problems = dict[Any, amble.Problem]()

    def run(self, name: str, split: str, number: float, seed: int) -> dict[str, Any]:
        """One run of a method, on the rows kept back with the tuning seed, else on the test rows."""
        key = f"{split} | {name} | {number:.4g} | seed {seed}"
        if key not in self.kept and not self.only_kept:
            begun = time.process_time()
            made = self.measured(name, split, number, seed)
            self.kept[key] = made
            write_whole({self.path: (json.dumps(self.kept, indent=0) + "\n").encode()})
            print(f"{self.data}: {key}: accuracy {made['accuracy']:.4f}; {time.process_time() - begun:.1f} s of CPU",
                  flush=True)  # fmt: skip
        found: dict[str, Any] = self.kept[key]
        return found

    def measured(self, name: str, split: str, number: float, seed: int) -> dict[str, Any]:
        train, validation, test = self.rows = self.rows or rows_of(self.data)
        judged = validation if seed == TUNING_SEED else test
        if name == CENTRALISED:
            problem = problem_of(train, judged, {}, seed, agents=1)
            method = amble.TokenSGD(alpha=number, step="momentum", schedule="cosine", span=UNITS)
            limit: dict[str, Any] = {"hops": UNITS, "every": UNITS // RECORDS[self.data]}
            return about(simulated(method, problem, "complete", seed, limit))
        method, network = METHODS[name][0](number), amble.networks.random(AGENTS, 0.5, seed=seed)
        units = UNITS * METHODS[name][2]
        each = units // RECORDS[self.data]
        if isinstance(method, amble.FedAvg | amble.DGD):
            each = max(1, each // (2 * AGENTS if isinstance(method, amble.FedAvg) else 2 * len(network.edges)))
        problem = self.problem(name, split, number, seed, judged)
        return about(simulated(method, problem, network, seed, {"comm_units": units, "every": each}))

    def problem(self, name: str, split: str, number: float, seed: int, judged: Any) -> amble.Problem:
        """Made once each, because making one takes a second."""
        smoothness = 1 / number if name.startswith("Relay") else None
        if (split, seed, smoothness) not in self.problems:
            assert self.rows is not None
            made = problem_of(self.rows[0], judged, SPLITS[split], seed, smoothness=smoothness)
            self.problems[split, seed, smoothness] = made
        return self.problems[split, seed, smoothness]

    def tuned(self, name: str, split: str) -> tuple[float, dict[float, float]]:
        """The number with the best accuracy on the rows kept back, and all that were tried."""
        middle = CARRIED if name == CENTRALISED else METHODS[name][1]
        tried: dict[float, float] = {}

        def attempt(power: float) -> None:
            number = middle * 10 ** (power / 2)
            tried[power] = self.run(name, split, number, TUNING_SEED)["accuracy"]

        for power in (0, -1, 1, -2, 2):
            attempt(power)
        for _ in range(2):
            attempt(next_power(tried))
        best = max(tried, key=lambda power: tried[power])
        return middle * 10 ** (best / 2), {middle * 10 ** (power / 2): tried[power] for power in sorted(tried)}

    def row(self, name: str, split: str) -> dict[str, Any]:
        number, tried = self.tuned(name, split)
        ends = number in (min(tried), max(tried))
        return {"number": number, "end": ends, "runs": [self.run(name, split, number, seed) for seed in SEEDS]}

    def kept_row(self, name: str, split: str) -> dict[str, Any] | None:
        """The row, if all its runs are kept."""
        try:
            return self.row(name, split)
        except KeyError:
            return None


def next_power(tried: dict[float, float]) -> float:
    """Beyond the end where the best is; else half-way to the better of its neighbours."""
    powers = sorted(tried)
    best = max(powers, key=lambda power: tried[power])
    k = powers.index(best)
    if k in (0, len(powers) - 1):
        return best + (1 if k else -1)
    near = max(powers[k - 1], powers[k + 1], key=lambda power: tried[power])
    return (best + near) / 2


def simulated(method: Any, problem: amble.Problem, network: Any, seed: int, limit: dict[str, Any]) -> amble.Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a step that is too large diverges, which is what tuning is for
        return amble.simulate(method, problem, network, seed=seed, optimum=False, progress=False, **limit)


def about(run: amble.Run) -> dict[str, Any]:
    """What is kept of a run. Its accuracy is the mean of the last three records: with label skew it jumps."""
    curve = run.history
    reached = np.flatnonzero(curve["metric"] >= GOAL)
    first = int(reached[0]) if len(reached) else None
    return {
        "accuracy": float(np.mean(curve["metric"][-3:])) if run.stopped != "diverged" else 0.0,
        "units_to": None if first is None else int(curve["comm_units"][first]),
        "bytes_to": None if first is None else int(curve["bytes"][first]),
        "time_s_to": None if first is None else float(curve["time_s"][first]),
        "bytes": int(curve["bytes"][-1]),
        "time_s": float(curve["time_s"][-1]),
    }


def tables() -> None:
    """Rewrites the tables of docs/networks.md from the runs that are kept."""
    page = DOCS / "networks.md"
    text = page.read_text()
    made = {data: table(Bench(data, only_kept=True)) for data in PLAN}
    made |= {"bytes": short_table(Bench("digits", only_kept=True)), "decent-bench": peer_table()}
    for name, lines in made.items():
        begin, end = f"<!-- networks: {name} -->\n", f"<!-- end: {name} -->"
        before, _, rest = text.partition(begin)
        text = before + begin + lines + end + rest.partition(end)[2]
    page.write_text(text)


def peer_table() -> str:
    """The figures that peers_torch.py keeps."""
    kept = json.loads((DOCS / "networks-decent-bench.json").read_text())
    lines = ["| split | package | step | accuracy | CPU seconds |", "|---|---|---|---|---|"]
    for split, found in kept["splits"].items():
        for name, best in found["best"].items():
            lines.append(f"| {split} | {name} | {best['alpha']:g} | {best['accuracy']:.3f} | {best['seconds']:.1f} |")
    return "\n".join(lines) + "\n"


def short_table(bench: Bench) -> str:
    """Accuracy and bytes of TokenSGD by the type of its messages."""
    splits = PLAN[bench.data]
    lines = [f"| messages | bytes each | {' | '.join(splits)} |", "|---" * (2 + len(splits)) + "|"]
    for name in ("TokenSGD", *SHORT):
        rows = [bench.kept_row(name, split) for split in splits]
        if all(rows):
            each = rows[0]["runs"][0]["bytes"] // UNITS if rows[0] else 0
            cells = [short_cell(found["runs"]) for found in rows if found]
            kind = name.partition(", ")[2].removesuffix(" messages") or "float64"
            lines.append(f"| {kind} | {each:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def short_cell(runs: list[dict[str, Any]]) -> str:
    accuracy, size = [run["accuracy"] for run in runs], [run["bytes_to"] for run in runs]
    cost = "-" if None in size else f"{np.median(size) / 1e6:.2f} MB"
    return f"{np.mean(accuracy):.3f} ({min(accuracy):.3f} to {max(accuracy):.3f}); {cost}"


def table(bench: Bench) -> str:
    """A row per method whose runs are all there."""
    splits = PLAN[bench.data]
    lines = [f"| method | {' | '.join(splits)} |", "|---" * (1 + len(splits)) + "|"]
    for name in (*METHODS, CENTRALISED):
        planned = ["even"] if name == CENTRALISED else [split for split in splits if name in splits[split]]
        rows = {split: bench.kept_row(name, split) for split in planned}
        if any(rows.values()):
            cells = [cell(found) if (found := rows.get(split)) else "-" for split in splits]
            lines.append(f"| {f'*{name}*' if name == CENTRALISED else name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else "(none yet)\n"


def cell(row: dict[str, Any]) -> str:
    runs = row["runs"]
    accuracy = [run["accuracy"] for run in runs]
    reached = [run for run in runs if run["units_to"] is not None]
    cost = f"{len(reached)} of {len(runs)} seeds"
    if len(reached) == len(runs):
        units, time_s = (np.median([run[key] for run in runs]) for key in ("units_to", "time_s_to"))
        cost = f"{int(units):,}, {1e3 * time_s:,.0f} ms"
    end = "; end" if row["end"] else ""
    return f"{np.mean(accuracy):.3f} ({min(accuracy):.3f} to {max(accuracy):.3f}); {cost}{end}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(PLAN), choices=list(PLAN))
    parser.add_argument("--tables", action="store_true", help="only rewrite the tables of docs/networks.md")
    chosen = parser.parse_args()
    for data in () if chosen.tables else chosen.data:
        bench = Bench(data)
        bench.row(CENTRALISED, "even")
        for name in dict.fromkeys(name for names in PLAN[data].values() for name in names):
            for split, names in PLAN[data].items():
                if name in names:
                    bench.row(name, split)
    tables()


if __name__ == "__main__":
    main()
