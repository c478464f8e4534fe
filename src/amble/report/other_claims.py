"""The paper's claims that its figures do not show: networks of many sizes and of many kinds, and its worked example."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from amble.claim_trials import FIGURE, PILOT_LAPS, SIZES, TIME_S_PER_AGENT, UNITS_PER_AGENT, USUAL, Trial
from amble.report.claims import Cell, Claim, Row, Verdict, overall
from amble.report.results import quantity
from amble.report.sections import TIME, UNITS
from amble.report.verdicts import COMPARABLE, WORDS, Side, cost_to_close, outcome
from amble.reproduction import LOCAL, TOKENS
from amble.run import Run
from amble.worked_example import UPDATES, copies_changed, visits_of, worked_example

BUDGETS = {TIME: TIME_S_PER_AGENT, UNITS: float(UNITS_PER_AGENT)}  # per agent
CAPTION_SHARE, TUNED_SHARE = 0.5, 0.9  # of the gap: at the caption's tau the published rule stops at about 85 %
API, API_TOKENS = "API-BCD (mean of x)", "API-BCD (tokens' mean)"  # the claims are judged by the first
Made = Mapping[Trial, Sequence[Run]]


class Study(NamedTuple):
    """Some claims with one set of runs."""

    title: str
    about: str
    claims: tuple[Claim, ...]
    drawn: Run | None = None  # shown as a time line


def studies(made: Made) -> list[Study]:
    """All of them. `made` are the runs of claim_trials."""
    return [by_size(made), by_network(made), example()]


def by_size(made: Made) -> Study:
    sizes = [N for N in SIZES if any(trial.agents == N for trial in made)]
    claims = []
    for tuned, share in _settings(made):
        for cost in (UNITS, TIME):
            rows = _rows({f"N = {N}": (N, _sides(made, N, USUAL, tuned)) for N in sizes}, cost, share, per_agent=True)
            own = rows[0].cells
            verdicts = [outcome(after, [before], COMPARABLE) for before, after in pairwise(own[1:])]
            text = (
                f"API-BCD is scalable in network size: about three times as many agents need at most "
                f"{COMPARABLE:g} times the {WORDS[cost]} per agent ({_level(tuned, share)})."
            )
            measure = TIME if cost == TIME else "number"  # units per agent are below one
            columns = tuple(f"N = {N:,}" for N in sizes)
            claims.append(Claim(text, overall(verdicts), measure, columns, rows, tuple(verdicts)))
    about = (
        f"“Flexible and scalable in terms of network size”: {FIGURE.data} dealt out evenly to {sizes[0]} to "
        f"{sizes[-1]:,} agents on networks of density {USUAL.split()[1]}. The cells are the communication units and "
        "the virtual time to close the share of the gap, divided by the number of agents. Growth is judged from "
        f"{sizes[1]} agents on: of {sizes[0]}, half have a token from the start, at no cost."
    )
    return Study("Network size", f"{about} {_common(made)}", tuple(claims))


def by_network(made: Made) -> Study:
    N = FIGURE.agents
    kinds = list(dict.fromkeys(trial.network for trial in made if trial.agents == N))
    kinds.sort(key=lambda kind: kind != USUAL)  # the paper's first, the others in the order of the plan
    claims = []
    for tuned, share in _settings(made):
        sides = {kind: (N, _sides(made, N, kind, tuned)) for kind in kinds}
        rows = _rows(sides, TIME, share)
        names = [row.name for row in rows]
        rivals = [rows[names.index(name)] for name in ("I-BCD", "WPG")]
        verdicts = [outcome(rows[0].cells[k], [rival.cells[k] for rival in rivals]) for k in range(len(kinds))]
        text = f"On different networks API-BCD needs less time than I-BCD and WPG ({_level(tuned, share)})."
        claims.append(Claim(text, overall(verdicts), TIME, tuple(kinds), rows, tuple(verdicts)))
        rows = _rows(sides, UNITS, share)
        verdicts = [outcome(cell, [rows[0].cells[0]], COMPARABLE) for cell in rows[0].cells[1:]]
        text = (
            f"On different networks API-BCD needs at most {COMPARABLE:g} times its communication at density "
            f"{USUAL.split()[1]} ({_level(tuned, share)})."
        )
        claims.append(Claim(text, overall(verdicts), UNITS, tuple(kinds), rows, tuple(verdicts)))
    about = f"“Different network setups”: {FIGURE.data} dealt out evenly to {N} agents."
    return Study("Kinds of network", f"{about} {_common(made)}", tuple(claims))


def example() -> Study:
    """Figure 2: at each k the visiting token updates the visited agent's copy of it, and nothing else."""
    run = worked_example()
    visits, changed = visits_of(run), copies_changed(run)
    fits = [
        Verdict.HELD if visit == wanted and copies == [wanted] else Verdict.FAILED
        for visit, wanted, copies in zip(visits, UPDATES, changed, strict=True)
    ]
    rows = tuple(
        Row(name, tuple(Cell(float(number)) for number in numbers))
        for name, numbers in (
            ("active agent", [agent for agent, _ in visits]),
            ("token", [token for _, token in visits]),
            ("copies that changed", [len(copies) for copies in changed]),
        )
    )
    text = "At each step one agent updates its copy of one token; agent 2 updates both of its copies, at k = 2 and 5."
    claim = Claim(text, overall(fits), "number", tuple(f"k = {k + 1}" for k in range(len(visits))), rows, tuple(fits))
    about = (
        "The worked example of the paper's figure 2: API-BCD with two tokens and five agents, here on a ring, with the "
        f"first seed ({run.seed}) whose tokens move in the order of the paper's text. Agents and tokens are counted "
        "from one. Which copies changed is found by comparing all copies before and after each step."
    )
    return Study("The worked example", about, (claim,), run)


def _settings(made: Made) -> list[tuple[bool, float]]:
    """Whether tuned, and the share of the gap that is judged; only what was run."""
    tuned = {trial.tuned for trial in made}
    return [(False, CAPTION_SHARE), (True, TUNED_SHARE)] if True in tuned else [(False, CAPTION_SHARE)]


def _sides(made: Made, agents: int, network: str, tuned: bool) -> dict[str, Side]:
    """The methods by the names of their rows: API-BCD first, Relay with both the captions' settings and the tuned.

    The tokens' mean of API-BCD is shown too, unless it was tuned for the mean of x."""
    own, others = {}, {}
    for trial, runs in made.items():
        if (trial.agents, trial.network) == (agents, network) and (trial.tuned == tuned or not trial.method.positive):
            label = trial.method.label
            if label != "API-BCD":
                others[label] = Side(label, runs)
                continue
            own[API] = Side(API, runs, LOCAL)
            if not tuned:
                own[API_TOKENS] = Side(API_TOKENS, runs)
    return own | others


def _rows(
    columns: Mapping[str, tuple[int, Mapping[str, Side]]], cost: str, share: float, per_agent: bool = False
) -> tuple[Row, ...]:
    """A row for each method, a cell for each network; API-BCD is what the claims are about."""
    names = list(next(iter(columns.values()))[1])
    rows = []
    for name in names:
        cells = []
        for agents, sides in columns.values():
            value, limit = cost_to_close(sides[name], cost, share, BUDGETS[cost] * agents)
            divisor = agents if per_agent else 1
            cells.append(Cell(value / divisor, limit / divisor))
        rows.append(Row(name, tuple(cells), claimed=name == API))
    return tuple(rows)


def _level(tuned: bool, share: float) -> str:
    settings = "tuned" if tuned else "at the caption's settings"
    return f"{settings}, {100 * share:g} % of the gap"


def _common(made: Made) -> str:
    seeds = len(next(iter(made)).seeds)
    words = (
        "Claims about API-BCD are judged by the mean of x, the faster of its two readings. "
        f"Settings of the caption: tau = {FIGURE.tau_is:g} (I-BCD), tau = {FIGURE.tau_api:g} with {TOKENS} tokens "
        f"(API-BCD), alpha = {FIGURE.alpha:g} (WPG); Relay has none. "
    )
    if any(trial.tuned for trial in made):
        words += (
            f"Tuned: step or penalty by the search of the figures, with pilot runs of {PILOT_LAPS} laps on the first "
            "seed of each network; API-BCD for the mean of x; D-ADMM stands for gossip. "
        )
    return words + (
        f"Every run has {UNITS_PER_AGENT} units and {quantity(TIME_S_PER_AGENT, TIME)} of virtual time per agent, in "
        f"the fixed cost model; {'medians over ' + str(seeds) + ' seeds' if seeds > 1 else 'one seed'}."
    )
