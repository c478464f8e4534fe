"""The paper's claims, each tested on the runs: at equal virtual time, or at equal communication."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from amble.report.claims import Cell, Claim, Row, Verdict, overall
from amble.report.sections import TIME, UNITS
from amble.results.reaching import LOCAL, records_within
from amble.results.run import Run

LEVELS = (0.5, 0.9, 0.99)  # shares of the gap between where a run begins and the optimum's metric
COMPARABLE = 2.0  # "comparable" communication: at most twice as much
BASELINES_SHOWN = 2  # of each level, the best
COST_NAMES = {TIME: "time", UNITS: "communication"}


class Side(NamedTuple):
    """One party of a claim: runs of a method, one per seed, and which of its models is read."""

    name: str
    runs: Sequence[Run]
    suffix: str = ""


def cost_to_close(side: Side, cost: str, share: float, budget: float = np.inf) -> Cell:
    """What it took to close this share of the gap and keep it closed up to the budget, median over the seeds."""
    needed, limits = [], []
    for run in side.runs:
        paid = run.history[cost]
        values = run.history[f"metric{side.suffix}"][: records_within(run, cost, budget)]
        best = run.problem["optimum_metric"]
        limits.append(horizon(run, cost, budget))
        up = 1.0 if run.problem["task"] == "classification" else -1.0  # accuracy rises, NMSE falls
        gap = up * (best - values[0])
        if gap <= 0:  # it begins better than the optimum: there is nothing to close
            needed.append(np.inf)
            continue
        with np.errstate(invalid="ignore"):  # a diverged run
            short = ~(up * (values - values[0]) >= share * gap)
        first = int(np.flatnonzero(short)[-1]) + 1 if short.any() else 0
        needed.append(float(paid[first]) if first < len(values) else np.inf)
    return Cell(float(np.median(needed)), min(limits))


def horizon(run: Run, cost: str, budget: float) -> float:
    """Up to which cost this run can be judged: the budget, or less if it ended before. A run that has diverged or
    converged stays so."""
    last = float(run.history[cost][-1])
    return budget if last >= budget or run.stopped in (cost, "diverged", "tolerance") else last


def outcome(own: Cell, baselines: Sequence[Cell], at_most: float | None = None) -> Verdict:
    """Whether `own` needs less than every baseline, or at most so many times as much, as far as the runs tell."""
    factor = 1.0 if at_most is None else at_most
    verdicts = []
    for baseline in baselines:
        if np.isfinite(own.value) and np.isfinite(baseline.value):
            less = own.value < baseline.value if at_most is None else own.value <= factor * baseline.value
            verdicts.append(Verdict.HELD if less else Verdict.FAILED)
        elif np.isfinite(own.value):  # the baseline needs more than its limit
            verdicts.append(Verdict.HELD if own.value <= factor * baseline.limit else Verdict.UNDECIDED)
        else:
            lost = np.isfinite(baseline.value) and own.limit >= factor * baseline.value
            verdicts.append(Verdict.FAILED if lost else Verdict.UNDECIDED)
    if Verdict.FAILED in verdicts:
        return Verdict.FAILED
    return Verdict.UNDECIDED if Verdict.UNDECIDED in verdicts else Verdict.HELD


def judge(
    text: str,
    cost: str,
    contests: Sequence[tuple[Side, Sequence[Side]]],
    at_most: float | None = None,
    budget: float = np.inf,
) -> Claim:
    """Judges whether each side needs less than its best baseline, or at most so many times as much, at every level."""
    sides = {side.name: side for own, baselines in contests for side in (own, *baselines)}
    cells = {name: tuple(cost_to_close(side, cost, share, budget) for share in LEVELS) for name, side in sides.items()}
    verdicts = []
    for level in range(len(LEVELS)):
        at_level = [
            outcome(cells[own.name][level], [cells[baseline.name][level] for baseline in baselines], at_most)
            for own, baselines in contests
        ]
        verdicts.append(overall(at_level))
    claimed = [own.name for own, _ in contests]
    others = [name for name in sides if name not in claimed]
    best = {
        name
        for level in range(len(LEVELS))
        for name in sorted(others, key=lambda other: cells[other][level].value)[:BASELINES_SHOWN]
    }
    rows = [
        Row(name, cells[name], claimed=name in claimed) for name in (*claimed, *others) if name in {*claimed, *best}
    ]
    columns = tuple(f"{100 * share:g} %" for share in LEVELS)
    return Claim(text, overall(verdicts), cost, columns, tuple(rows), tuple(verdicts), len(others) - len(best))


class Find(Protocol):
    """The runs of a method, one per seed; none if it was not run."""

    def __call__(self, label: str, reading: str | None = None, **settings: Any) -> Sequence[Run]: ...


def paper_claims(find: Find, budgets: Mapping[str, float], tuned: bool) -> tuple[Claim, ...]:
    """All claims for one figure, on runs at the captions' settings or on tuned ones, which `find` gives.

    Where a method's readings differ it was tuned once for each of them; at the captions' settings one run has both.
    """

    def readings(label: str, **settings: Any) -> tuple[Side, Side]:
        tokens, local = (find(label, reading if tuned else None, **settings) for reading in ("", LOCAL))
        return Side(f"{label} (tokens' mean)", tokens), Side(f"{label} (mean of x)", local, LOCAL)

    def claim(
        text: str, cost: str, contests: Sequence[tuple[Side, Sequence[Side]]], at_most: float | None = None
    ) -> Claim:
        return judge(text, cost, contests, at_most, budgets.get(cost, np.inf))

    one, wpg = Side("I-BCD", find("I-BCD")), Side("WPG", find("WPG"))
    published = readings("API-BCD", token_rule="published")
    tracked = Side("API-BCD tracked", find("API-BCD", token_rule="tracked"))
    claims = [
        claim("API-BCD is the most efficient in running time.", TIME, [(api, (one, wpg)) for api in published]),
        claim(
            "I-BCD and API-BCD consume less communication than WPG.", UNITS, [(a, (wpg,)) for a in (one, *published)]
        ),
        claim(
            "API-BCD reaches its target with a communication cost comparable to the best of I-BCD and WPG.",
            UNITS,
            [(api, (one, wpg)) for api in published],
            COMPARABLE,
        ),
        claim(
            "Ours: with the tracked token rule, API-BCD is the most efficient in running time.",
            TIME,
            [(tracked, (one, wpg))],
        ),
    ]
    baselines = [one, *published, tracked, *readings("gAPI-BCD"), wpg]
    if tuned:
        rounds = [Side(name, find(name)) for name in ("SyncWalks", "Central", "FedAvg")]
        gossip = [Side(name, find(name)) for name in ("DGD", "EXTRA", "D-ADMM")]
        claims += [
            claim(
                "The asynchronous API-BCD outperforms synchronous approaches in running time.",
                TIME,
                [(api, (*rounds, *gossip)) for api in published],
            ),
            claim("I-BCD needs less communication than gossip.", UNITS, [(one, gossip)]),
        ]
        baselines += [*rounds, *gossip, *(Side(name, find(name)) for name in ("WADMM", "PW-ADMM"))]
    relay, others = Side("Relay", find("Relay", tokens=1)), "every tuned method" if tuned else "the paper's methods"
    for cost in (TIME, UNITS):
        text = f"Ours: Relay, with nothing to set, needs less {COST_NAMES[cost]} than {others}."
        claims.append(claim(text, cost, [(relay, [side for side in baselines if side.runs])]))
    return tuple(claims)
