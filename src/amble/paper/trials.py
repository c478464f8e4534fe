"""Runs for the claims that the paper's figures do not test: networks of many sizes and of many kinds, two walks.

They are short runs on cadata, in the fixed cost model, so that they are the same on every machine.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from amble import methods
from amble.paper.plan import DENSITY, FIGURES, SEEDS, TOKENS, Figure, Job
from amble.paper.runs import make_all
from amble.results.reaching import LOCAL
from amble.results.run import Run

FIGURE = FIGURES[1]  # cadata: it has rows for a thousand agents
SIZES = (10, 30, 100, 300, 1000)
QUICK_SIZES = (10, 30, 100)
USUAL = ("random", DENSITY)  # the name of a network, and its density where it is random
OTHERS = (("ring", DENSITY), ("grid", DENSITY), ("geometric", DENSITY))
KINDS = (("random", 0.2), ("random", 0.5), USUAL, ("random", 1.0), *OTHERS)
QUICK_KINDS = (USUAL, *OTHERS[:2])
CYCLE, RANDOM_WALK = "auto", "metropolis"
UNITS_PER_AGENT = 60  # the budgets of every method:
TIME_S_PER_AGENT = 7.2e-4  # what five tokens need for these units
FOLDER = "claims"  # beside the figures' runs
SETTLED = 1e-6  # a model that moves by less in a lap has converged, and its run may end before the budgets do


def trials(quick: bool, seeds: Sequence[int] = SEEDS) -> list[Job]:
    """All jobs. Quick: one seed, up to a hundred agents, three kinds of network, and nothing tuned."""
    own_seeds = tuple(seeds[:1]) if quick else tuple(seeds)
    kinds = QUICK_KINDS if quick else KINDS
    places = [(agents, *USUAL, CYCLE) for agents in reversed(QUICK_SIZES if quick else SIZES)]  # the longest first
    places += [(FIGURE.agents, *kind, walk) for walk in (CYCLE, RANDOM_WALK) for kind in kinds]
    each: list[tuple[Any, bool, str | None]] = [(method, False, None) for method in caption_methods()]
    each += [] if quick else [(method, True, reading) for method, reading in tuned_methods()]
    return [
        trial(agents, method, tuned, own_seeds, reading, network=network, density=density, walk=walk)
        for agents, network, density, walk in places
        for method, tuned, reading in each
        if walk == CYCLE or not methods.is_round(method)  # rounds have no walk
    ]


def trial(agents: int, method: Any, tuned: bool, seeds: tuple[int, ...], reading: str | None, **setting: Any) -> Job:
    return Job(figure_of(agents), method, tuned, seeds, reading, tolerance=SETTLED, **setting)


def figure_of(agents: int) -> Figure:
    budgets: dict[str, Any] = {"time_s": TIME_S_PER_AGENT * agents, "comm_units": UNITS_PER_AGENT * agents}
    return replace(FIGURE, agents=agents, full_tries=1, **budgets)  # many runs: pilot runs alone tune them


def caption_methods() -> list[Any]:
    """The paper's methods at the settings of its caption, and Relay, which has none."""
    return [
        methods.from_settings("I-BCD", {"tau": FIGURE.tau_is}),
        methods.from_settings("API-BCD", {"tau": FIGURE.tau_api, "tokens": TOKENS}),
        methods.from_settings("WPG", {"alpha": FIGURE.alpha}),
        methods.from_settings("Relay", {}),
    ]


def tuned_methods() -> list[tuple[Any, str | None]]:
    """The paper's methods and one of gossip, tuned for each size; API-BCD for the mean of x, which is the faster."""
    return [
        (methods.from_settings("I-BCD", {}), None),
        (methods.from_settings("API-BCD", {"tokens": TOKENS}), LOCAL),
        (methods.from_settings("WPG", {}), None),
        (methods.from_settings("D-ADMM", {}), None),
    ]


def tuned_on(job: Job) -> Job:
    """The job that a trial's setting is tuned with: all kinds of network and both walks have the same setting, so that
    they differ in nothing else."""
    network, density = USUAL
    return replace(job, network=network, density=density, walk=CYCLE)


def make_trials(planned: Sequence[Job], folder: Path, workers: int | None) -> dict[Job, list[Run]] | None:
    """Every trial's runs, one per seed; None after Ctrl-C. Runs that are in the folder are not repeated."""
    first = dict.fromkeys(tuned_on(job) if job.tuned else job for job in planned)
    made = make_all(list(first), folder, "model", workers) if first else {}
    if made is None:
        return None
    settled = {
        job: job if job in made else replace(job, method=made[tuned_on(job)][0].method, tuned=False) for job in planned
    }
    left = dict.fromkeys(own for own in settled.values() if own not in made)
    more = make_all(list(left), folder, "model", workers) if left else {}
    return None if more is None else {job: (made | more)[own] for job, own in settled.items()}
