"""The paper's numerical section (figures 3 to 6) as a plan: which runs there are, with which settings."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from amble import __version__, methods, networks
from amble.networks.network import Network
from amble.results.reaching import LOCAL
from amble.schedule.timing import Timing
from amble.simulation.tuning import CLOSE, FINE

TOKENS = 5  # the captions' K
DENSITY = 0.7  # the captions' zeta
SEEDS = (0, 1, 2)
INEXACT = ("usps",)  # where Relay's inexact form, which is for many unknowns, is tried too
QUICK_SHARE = 4  # --quick has a quarter of the budgets
PILOT_POWERS = (-2.0, 2.0, 7)  # the search: seven values over four decades, then four between
PILOTS = PILOT_POWERS[2] + len(FINE)
FULL_STEP = 10 ** (4 / 6)  # between the values that are tried in full runs: as between the seven
ARITHMETIC = 4  # saved runs of another version are not used; raise it when the same settings give other results


@dataclass(frozen=True)
class Figure:
    """One figure of the paper: the data, and the settings that its caption gives."""

    number: int
    data: str
    agents: int
    alpha: float  # WPG's step
    tau_is: float  # I-BCD's penalty
    tau_api: float  # API-BCD's penalty
    ridge: float  # ours: the paper has none
    time_s: float  # ours: the virtual time and the communication that every method has;
    comm_units: int  # a run goes on until both are spent
    pilot_laps: int  # ours: the length of each pilot run of the tuning,
    full_tries: int  # and how many runs with the whole budgets choose between its best value and those around it


# I-BCD, the slowest method per unit, spends about both budgets at once: in 250, 200, 20 and 15 laps
FIGURES = (
    Figure(3, "cpusmall", 20, 0.5, 1.0, 0.1, ridge=1e-4, time_s=0.3, comm_units=5_000, pilot_laps=20, full_tries=9),
    Figure(4, "cadata", 50, 0.2, 2.8, 0.1, ridge=1e-4, time_s=0.6, comm_units=10_000, pilot_laps=20, full_tries=9),
    Figure(5, "ijcnn1", 50, 0.5, 2.8, 0.1, ridge=1e-4, time_s=0.8, comm_units=1_000, pilot_laps=20, full_tries=1),
    Figure(6, "usps", 10, 0.1, 5.0, 1.0, ridge=1e-2, time_s=2.0, comm_units=150, pilot_laps=5, full_tries=1),
)

ASSUMPTIONS = (
    "Splits: where no test part is published (cpusmall, cadata), a fifth of the rows is kept for testing; ijcnn1 and "
    "USPS have theirs. Training rows are dealt out evenly, in random order. Seeds change networks, splits, walks and "
    "link times.",
    "Scaling: columns, and the targets of a regression, are standardised by the training rows' means and deviations.",
    "Intercept: there is one, without a ridge. Ridge: 1e-4 per weight (1e-2 on USPS, whose 2,570 unknowns are hardly "
    "determined without one), on mean losses; all agents have equal weight.",
    "NMSE is |Xw - y|^2 / |y - mean of the training targets|^2 on the test rows: 1 is what guessing the mean gives.",
    "Classification: logistic loss for two classes, softmax for ten; the paper names no loss.",
    "The captions' K = 5 is taken as the number of walks M, and tau_IS as I-BCD's tau. alpha is WPG's step.",
    "Walks: each token goes round a Hamiltonian cycle, as the paper's do; the five tokens start apart. Relay's five "
    "tokens, which share one account, each have a stretch of it and meet once in a lap.",
    "gAPI-BCD: the paper gives no rho; ours is the smoothness of each agent's own loss, and tau that of API-BCD.",
    "The paper does not say which model it plots: the tokens' mean and the mean of the agents' x are both shown.",
    "Time: a hop takes U(1e-5, 1e-4) s, as in the paper. A visit takes what it took on this machine, in NumPy on one "
    "core, measured once for each method, with its settings, and data set (median) and stored in calibration.json. On "
    "small problems most of it is the interpreter's own time, as it would be in a live agent.",
    "Budgets: every run goes on until it has spent both the virtual time and the communication units of its figure; "
    "time is judged within the one and communication within the other, the same for every method. They were chosen so "
    "that I-BCD makes 250 laps on cpusmall, 200 on cadata, 20 on ijcnn1 and 15 on USPS, whose visits are expensive.",
    f"Tuned methods: step or penalty by the same search on the first seed, kept for the others: {PILOTS} pilot runs of "
    "20 laps (5 on USPS), and up to four more where the best lies at an end. Tuning is for speed: the value wins that "
    f"is the first to come within {CLOSE:g} of the fall from the start to the lowest training loss that any value has "
    "at the end, and to stay there. This is another level than those of the tables, so another value can be faster to "
    "them, the caption's too. On ijcnn1 and USPS, whose runs are expensive, pilot runs make the choice. On cpusmall "
    "and cadata, whose budgets are ten times longer than pilot runs, up to nine runs with the whole budgets make it "
    f"by the same rule: of the pilot runs' best value, of the values a step of the search ({FULL_STEP:.2f} times) "
    "lower and higher, further outwards while the best is at an end, and of half and quarter steps around it. "
    "A value whose loss rises in the full run of any seed is refused, and the next best is taken. "
    "API-BCD and gAPI-BCD as published are tuned twice, for the tokens' mean and for the mean of x, and each is judged "
    "by its own reading.",
    "One exchange with a server, in methods that have one, counts as one unit each way.",
)


@dataclass(frozen=True)
class Job:
    """One line of one figure: a method, and the seeds that it runs with."""

    figure: Figure
    method: Any
    tuned: bool
    seeds: tuple[int, ...]
    reading: str | None = None  # what it is tuned for, where the readings differ: "" the tokens' mean, or LOCAL
    network: str = "random"
    density: float = DENSITY  # of a random network
    walk: str = "auto"
    tolerance: float | None = None  # a run whose model moves by less in a lap ends before its budgets do

    def stem(self, what: str, *more: Any) -> str:
        """A name for a file of this job; it changes with everything that the job depends on, and with `what`."""
        plan = [PILOT_POWERS, FULL_STEP, asdict(Timing()), __version__, ARITHMETIC]
        about = [asdict(self), self.method.label, *plan, *more]
        digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.figure.data}-{self.method.label.lower()}-{what}-{digest}"

    def network_with(self, seed: int) -> Network:
        return networks.named(self.network, self.figure.agents, self.density, seed)


def paper_methods(figure: Figure) -> list[Any]:
    """The paper's own, at the caption's settings, the token rule that corrects API-BCD, and Relay with nothing set."""
    api = {"tau": figure.tau_api, "tokens": TOKENS}
    return [
        methods.from_settings("I-BCD", {"tau": figure.tau_is}),
        methods.from_settings("API-BCD", api),
        methods.from_settings("API-BCD", {**api, "token_rule": "tracked"}),
        methods.from_settings("gAPI-BCD", api),
        methods.from_settings("WPG", {"alpha": figure.alpha}),
        methods.from_settings("Relay", {}),
    ]


def tuned_methods() -> list[tuple[Any, str | None]]:
    """The baselines, and the paper's own once more: their step or penalty is to be chosen by pilot runs. Methods whose
    readings differ are there once for each, with its name. A method that the registry gets later is not among them: the
    results that are kept are of these."""
    many = {"tokens": TOKENS}
    each: list[tuple[str, dict[str, Any], str | None]] = [
        ("I-BCD", {}, None),
        ("API-BCD", many, ""),
        ("API-BCD", many, LOCAL),
        ("API-BCD", {**many, "token_rule": "tracked"}, None),
        ("gAPI-BCD", many, ""),
        ("gAPI-BCD", many, LOCAL),
        ("WPG", {}, None),
        ("WADMM", {}, None),
        ("PW-ADMM", many, None),
        ("SyncWalks", many, None),
        ("DGD", {}, None),
        ("EXTRA", {}, None),
        ("D-ADMM", {}, None),
        ("Central", {}, None),
        ("FedAvg", {}, None),
    ]
    return [(methods.from_settings(name, settings), reading) for name, settings, reading in each]


def jobs(figures: Sequence[Figure] = FIGURES, seeds: Sequence[int] = SEEDS, quick: bool = False) -> list[Job]:
    """All jobs. Quick: one seed, one token of Relay, and no tuned methods."""
    planned = []
    for figure in figures:
        chosen = tuple(seeds[:1]) if quick else tuple(seeds)
        planned += [Job(figure, method, False, chosen) for method in paper_methods(figure)]
        if not quick:
            planned.append(Job(figure, methods.from_settings("Relay", {"tokens": TOKENS}), False, chosen))
            if figure.data in INEXACT:
                inexact = [methods.from_settings("Relay", {"form": "inexact", "tokens": M}) for M in (1, TOKENS)]
                planned += [Job(figure, method, False, chosen) for method in inexact]
            planned += [Job(figure, method, True, chosen, reading) for method, reading in tuned_methods()]
    return planned


def quickly(figure: Figure) -> Figure:
    """The figure with a quarter of both its budgets."""
    return replace(figure, time_s=figure.time_s / QUICK_SHARE, comm_units=figure.comm_units // QUICK_SHARE)
