"""Claims of the paper's text that the runs of its figures can test: idle time, cheaper visits, lost accuracy."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from amble.paper.verdicts import LEVELS, Find, Side, cost_to_close, judge, outcome
from amble.report.claims import Cell, Claim, Row, Verdict, overall
from amble.report.sections import TIME, UNITS
from amble.report.text import quantity
from amble.results.reaching import LOCAL, records_within
from amble.results.run import Run
from amble.schedule.rounds import Rounds

COMPUTE = "compute_s"
SAME = 1e-3  # of the gap: two methods that end this near to one another are equally accurate
READINGS = {"": "tokens' mean", LOCAL: "mean of x"}


def text_claims(find: Find, budgets: Mapping[str, float], tuned: bool) -> tuple[Claim, ...]:
    """All claims of the text for one figure, like `paper_claims` for those of the figures."""
    claims = [idle_claim(find, budgets[TIME], tuned), complexity_claim(find, tuned)]
    return (*claims, *accuracy_claims(find, budgets)) if tuned else tuple(claims)


def idle_claim(find: Find, time_s: float, tuned: bool) -> Claim:
    """Every agent's idle share at the end of the time budget; synchronous methods beside it where they were run."""
    api = find("API-BCD", LOCAL if tuned else None, token_rule="published")
    baselines = {name: find(name) for name in ("SyncWalks", "Central", "DGD", "D-ADMM")} if tuned else {}
    named = {"API-BCD": api, "I-BCD": find("I-BCD"), **baselines}
    rows = []
    for name, runs in named.items():
        shares = np.array([idle_shares(run, time_s) for run in runs])  # seeds x agents
        each = (shares.mean(axis=1), shares.min(axis=1), shares.max(axis=1))
        rows.append(Row(name, tuple(Cell(float(np.median(part))) for part in each), claimed=name == "API-BCD"))
    verdicts = [outcome(own, [single]) for own, single in zip(rows[0].cells, rows[1].cells, strict=True)]
    columns = ("mean of all agents", "the least idle", "the most idle")
    text = "API-BCD reduces the idle time of each agent, compared with I-BCD."
    return Claim(text, overall(verdicts), "share", columns, tuple(rows), tuple(verdicts))


def idle_shares(run: Run, time_s: float) -> Any:
    """Each agent's share of the time up to then in which it did not compute; a visit counts once it has ended."""
    ended = np.searchsorted(run.schedule.time_s, time_s, side="right")
    if isinstance(run.schedule, Rounds):
        visits = np.full(run.network.agents, ended)
    else:
        visits = np.bincount(run.schedule.agent[:ended], minlength=run.network.agents)
    return 1 - visits * run.compute_s / time_s


def complexity_claim(find: Find, tuned: bool) -> Claim:
    """Compute seconds of a visit, and of all visits until a level is reached, of both readings."""
    pairs = []
    for reading, read_as in READINGS.items():
        sides = [
            Side(f"{label} ({read_as})", [with_compute(run) for run in find(label, reading if tuned else None, **rule)],
                 reading)
            for label, rule in (("gAPI-BCD", {}), ("API-BCD", {"token_rule": "published"}))
        ]  # fmt: skip
        pairs.append([(side, _compute_cells(side)) for side in sides])
    verdicts = [
        overall(outcome(own[k], [baseline[k]]) for (_, own), (_, baseline) in pairs) for k in range(1 + len(LEVELS))
    ]
    rows = [Row(own.name, cells, claimed=True) for (own, cells), _ in pairs]
    rows += [Row(baseline.name, cells) for _, (baseline, cells) in pairs]
    columns = ("compute of a visit", *(f"until {100 * share:g} %" for share in LEVELS))
    text = "gAPI-BCD reduces the computational complexity of API-BCD."
    return Claim(text, overall(verdicts), TIME, columns, tuple(rows), tuple(verdicts))


def with_compute(run: Run) -> Run:
    """The run with the compute seconds of all visits so far as one more cost."""
    busy_s = (1 - run.history["idle"]) * run.network.agents * run.history[TIME]
    return replace(run, history={**run.history, COMPUTE: busy_s})


def _compute_cells(side: Side) -> tuple[Cell, ...]:
    visit_s = float(np.median(np.concatenate([run.compute_s for run in side.runs])))
    return (Cell(visit_s), *(cost_to_close(side, COMPUTE, share) for share in LEVELS))


def accuracy_claims(find: Find, budgets: Mapping[str, float]) -> tuple[Claim, Claim]:
    """Incremental methods against gossip and a server, all tuned: less communication, and less accurate at the end."""
    walks = [Side(name, find(name)) for name in ("WPG", "WADMM", "PW-ADMM", "I-BCD")]
    walks.append(Side("API-BCD (mean of x)", find("API-BCD", LOCAL, token_rule="published"), LOCAL))
    rounds = [Side(name, find(name)) for name in ("DGD", "EXTRA", "D-ADMM", "Central", "FedAvg")]
    cheaper = judge(
        "Incremental methods need less communication than synchronous ones.",
        UNITS,
        [(side, rounds) for side in walks],
        budget=budgets[UNITS],
    )
    left = {side.name: gap_left(side, budgets[TIME]) for side in (*walks, *rounds)}
    best = min(left[side.name] for side in rounds)
    verdict = overall(Verdict.HELD if left[side.name] > best + SAME else Verdict.FAILED for side in walks)
    rows = [
        Row(side.name, (Cell(left[side.name] if np.isfinite(left[side.name]) else np.nan),), claimed=side in walks)
        for side in (*walks, *rounds)
    ]
    text = "Incremental methods sacrifice accuracy for it: they end further from the optimum than synchronous ones."
    columns = (f"share of the gap left after {quantity(budgets[TIME], TIME)}",)
    return cheaper, Claim(text, verdict, "share", columns, tuple(rows), (verdict,))


def gap_left(side: Side, time_s: float) -> float:
    """The share of the gap to the optimum's metric that is left at the time budget, median over the seeds.

    A method that is better than the optimum on the test rows has none left. A diverged run has an infinite share.
    """
    left = []
    for run in side.runs:
        metric, best = run.history[f"metric{side.suffix}"], run.problem["optimum_metric"]
        last = metric[records_within(run, TIME, time_s) - 1]
        lost = run.stopped == "diverged" or not np.isfinite(last)
        left.append(np.inf if lost else max(0.0, (best - last) / (best - metric[0])))
    return float(np.median(left))
