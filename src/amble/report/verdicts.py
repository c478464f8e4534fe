"""The paper's claims, each put to the runs: what was claimed, whether it held, and the numbers that say so."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from amble.report.results import quantity
from amble.report.sections import TIME, UNITS, Claim
from amble.run import Run

LEVELS = (0.5, 0.9, 0.99)  # shares of the gap between where a run begins and the optimum's metric
COMPARABLE = 2.0  # "comparable" communication: at most twice as much
RIVALS_NAMED = 3
WORDS = {TIME: "time", UNITS: "communication"}


class Side(NamedTuple):
    """One party of a claim: runs of a method, one a seed, and which of its models is read."""

    name: str
    runs: Sequence[Run]
    suffix: str = ""


def cost_to_close(side: Side, cost: str, share: float) -> float:
    """What it took to close this share of the gap for good, median over the seeds; infinite where it never did."""
    found = []
    for run in side.runs:
        values, best = run.history[f"metric{side.suffix}"], run.problem["optimum_metric"]
        up = 1.0 if run.problem["task"] == "classification" else -1.0  # accuracy rises, NMSE falls
        gap = up * (best - values[0])
        if gap <= 0:  # it begins better than the optimum: there is nothing to close
            found.append(np.inf)
            continue
        with np.errstate(invalid="ignore"):  # a diverged run
            short = ~(up * (values - values[0]) >= share * gap)
        first = int(np.flatnonzero(short)[-1]) + 1 if short.any() else 0
        found.append(float(run.history[cost][first]) if first < len(values) else np.inf)
    return float(np.median(found))


def judge(text: str, cost: str, contests: Sequence[tuple[Side, Sequence[Side]]], at_most: float | None = None) -> Claim:
    """Each side is to need less than the best of its rivals, or at most so many times as much, at every level."""
    outcomes: list[bool] = []
    said = []
    for share in LEVELS:
        shown: dict[str, float] = {}
        for side, rivals in contests:
            own, others = cost_to_close(side, cost, share), [cost_to_close(rival, cost, share) for rival in rivals]
            shown |= {side.name: own, **{rival.name: value for rival, value in zip(rivals, others, strict=True)}}
            if np.isfinite([own, *others]).any():
                outcomes.append(own < min(others) if at_most is None else own <= at_most * min(others) < np.inf)
        said.append(
            f"to close {100 * share:g} % of the gap: {_listed(shown, [side.name for side, _ in contests], cost)}"
        )
    verdict = "undecided"
    if outcomes:
        verdict = "held" if all(outcomes) else "held in part" if any(outcomes) else "did not hold"
    words = "; ".join(said)
    return Claim(text, verdict, f"{WORDS[cost].capitalize()} {words}.")


def _listed(shown: Mapping[str, float], sides: Sequence[str], cost: str) -> str:
    """Best first: whom the claim is about, and the best of the others."""
    ranked = sorted(shown.items(), key=lambda item: item[1])
    rivals = [name for name, _ in ranked if name not in sides]
    named = {*sides, *rivals[:RIVALS_NAMED]}
    words = [
        f"{name} {quantity(value, cost) if np.isfinite(value) else 'never'}" for name, value in ranked if name in named
    ]
    left = len(rivals) - RIVALS_NAMED
    return ", ".join(words) + (f" ({left} others are no better than those)" if left > 0 else "")


def paper_claims(find: Callable[..., Sequence[Run]]) -> tuple[Claim, ...]:
    """All claims for one figure. `find(label, tuned=False, **settings)` gives a method's runs, none if not run."""
    one, wpg = Side("I-BCD", find("I-BCD")), Side("WPG", find("WPG"))
    published, tracked = find("API-BCD", token_rule="published"), find("API-BCD", token_rule="tracked")
    readings = (Side("API-BCD (tokens' mean)", published), Side("API-BCD (mean of x)", published, "_local"))
    mended = Side("API-BCD tracked", tracked)
    claims = [
        judge("API-BCD is the most efficient in running time.", TIME, [(api, (one, wpg)) for api in readings]),
        judge("I-BCD and API-BCD consume less communication than WPG.", UNITS, [(a, (wpg,)) for a in (one, *readings)]),
        judge(
            "API-BCD reaches its target with a communication cost comparable to the best of I-BCD and WPG.",
            UNITS,
            [(api, (one, wpg)) for api in readings],
            COMPARABLE,
        ),
        judge(
            "Ours: with the tracked token rule, API-BCD is the most efficient in running time.",
            TIME,
            [(mended, (one, wpg))],
        ),
    ]
    rounds = [Side(name, find(name, tuned=True)) for name in ("SyncWalks", "Central", "FedAvg")]
    gossip = [Side(name, find(name, tuned=True)) for name in ("DGD", "EXTRA", "D-ADMM")]
    if all(side.runs for side in (*rounds, *gossip)):
        claims += [
            judge(
                "The asynchronous API-BCD outperforms synchronous approaches in running time.",
                TIME,
                [(api, (*rounds, *gossip)) for api in readings],
            ),
            judge("I-BCD needs less communication than gossip.", UNITS, [(one, gossip)]),
        ]
    relay = Side("Relay", find("Relay", tokens=1))
    given = find("gAPI-BCD")
    gradient = (Side("gAPI-BCD (tokens' mean)", given), Side("gAPI-BCD (mean of x)", given, "_local"))
    tuned = [side for side in (*rounds, *gossip) if side.runs]
    rivals = [side for side in (one, *readings, mended, *gradient, wpg, *tuned) if side.runs]
    rivals += [Side(f"{name} tuned", runs) for name in ("I-BCD", "WPG", "WADMM", "PW-ADMM", "API-BCD")
               if (runs := find(name, tuned=True))]  # fmt: skip
    for cost in (TIME, UNITS):
        others = "every other method" if tuned else "the paper's methods at its settings"
        words = f"Ours: Relay, with nothing to set, needs less {WORDS[cost]} than {others}."
        claims.append(judge(words, cost, [(relay, rivals)]))
    return tuple(claims)
