"""The paper's claims that its figures do not show: networks of many sizes and of many kinds, and its worked example."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from amble.paper.plan import DENSITY, TOKENS, Job
from amble.paper.trials import CYCLE, FIGURE, RANDOM_WALK, SIZES, TIME_S_PER_AGENT, UNITS_PER_AGENT, USUAL
from amble.paper.verdicts import COMPARABLE, COST_NAMES, Side, cost_to_close, outcome
from amble.paper.worked_example import copies_changed, visits_of, worked_example
from amble.report.claims import Cell, Claim, Row, Verdict, overall
from amble.report.sections import TIME, UNITS
from amble.report.text import quantity
from amble.results.reaching import LOCAL
from amble.results.run import Run

BUDGETS = {TIME: TIME_S_PER_AGENT, UNITS: float(UNITS_PER_AGENT)}  # per agent
CAPTION_SHARE, TUNED_SHARE = 0.5, 0.9  # of the gap: at the caption's tau the published rule stops at about 85 %
API, API_TOKENS = "API-BCD (mean of x)", "API-BCD (tokens' mean)"  # the claims are judged by the first
Made = Mapping[Job, Sequence[Run]]
Setting = tuple[int, str, float, str]  # agents, network, density, walk


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
    sizes = [N for N in SIZES if any(job.figure.agents == N for job in made)]
    claims = []
    for tuned, share in _settings(made):
        for cost in (UNITS, TIME):
            rows = _rows(made, [(N, *USUAL, CYCLE) for N in sizes], tuned, cost, share, per_agent=True)
            own = rows[0].cells
            verdicts = [outcome(after, [before], COMPARABLE) for before, after in pairwise(own[1:])]
            text = (
                f"API-BCD is scalable in network size: about three times as many agents need at most "
                f"{COMPARABLE:g} times the {COST_NAMES[cost]} per agent ({_level(tuned, share)})."
            )
            measure = TIME if cost == TIME else "number"  # units per agent are below one
            columns = tuple(f"N = {N:,}" for N in sizes)
            claims.append(Claim(text, overall(verdicts), measure, columns, rows, tuple(verdicts)))
    about = (
        f"“Flexible and scalable in terms of network size”: {FIGURE.data} dealt out evenly to {sizes[0]} to "
        f"{sizes[-1]:,} agents on networks of density {DENSITY}. The cells are the communication units and "
        "the virtual time to close the share of the gap, divided by the number of agents. Growth is judged from "
        f"{sizes[1]} agents on: of {sizes[0]}, half have a token from the start, at no cost."
    )
    return Study("Network size", f"{about} {_common(made)}", tuple(claims))


def by_network(made: Made) -> Study:
    """Each walk is judged on its own; a network's verdict is that of all walks together."""
    N = FIGURE.agents
    kinds = list(dict.fromkeys((job.network, job.density) for job in made if job.figure.agents == N))
    kinds.sort(key=lambda kind: kind != USUAL)  # the paper's first, the others in the order of the plan
    columns = tuple(f"random {density:g}" if network == "random" else network for network, density in kinds)
    walks = {walk: [(N, *kind, walk) for kind in kinds] for walk in dict.fromkeys(job.walk for job in made)}
    claims = []
    for tuned, share in _settings(made):
        level = _level(tuned, share)
        rows = {walk: _rows(made, settings, tuned, TIME, share) for walk, settings in walks.items()}
        verdicts = {walk: _fastest(each) for walk, each in rows.items()}
        text = f"On different networks API-BCD needs less time than I-BCD and WPG ({level})."
        claims.append(_of_walks(text, TIME, columns, rows, verdicts))
        rows = {walk: _rows(made, settings, tuned, UNITS, share) for walk, settings in walks.items()}
        verdicts = {
            walk: [outcome(cell, [each[0].cells[0]], COMPARABLE) for cell in each[0].cells[1:]]
            for walk, each in rows.items()
        }
        text = (
            f"On different networks API-BCD needs at most {COMPARABLE:g} times its communication at density {DENSITY} "
            f"with the same walk ({level})."
        )
        claims.append(_of_walks(text, UNITS, columns, rows, verdicts))
    about = (
        f"“Different network setups”: {FIGURE.data} dealt out evenly to {N} agents. Tokens go round a Hamiltonian "
        "cycle, as the paper's do, or make a random walk (metropolis). The cycle takes one link per agent, however "
        "many there are, so with it the density cannot matter: those rows show only that the cycle makes the methods "
        "independent of the network. (A geometric network may have no such cycle; then the closed walk comes to some "
        "agents twice.) With the random walk the network can matter. The verdict is from both walks."
    )
    return Study("Kinds of network", f"{about} {_common(made)}", tuple(claims))


def _fastest(rows: Sequence[Row]) -> list[Verdict]:
    """Of each network: whether the first row, API-BCD, needs less than I-BCD and WPG."""
    baselines = [row for row in rows if row.name in ("I-BCD", "WPG")]
    return [outcome(cell, [baseline.cells[k] for baseline in baselines]) for k, cell in enumerate(rows[0].cells)]


def _of_walks(
    text: str,
    cost: str,
    columns: tuple[str, ...],
    rows: Mapping[str, Sequence[Row]],
    verdicts: Mapping[str, Sequence[Verdict]],
) -> Claim:
    """One claim from the rows and the verdicts of each walk."""
    named = [
        row._replace(name=f"{row.name}, random walk") if walk == RANDOM_WALK else row
        for walk, each in rows.items()
        for row in each
    ]
    together = tuple(overall(each) for each in zip(*verdicts.values(), strict=True))
    return Claim(text, overall(together), cost, columns, tuple(named), together)


def example() -> Study:
    """Figure 2: at each k the visiting token updates the visited agent's copy of it, and nothing else."""
    run = worked_example()
    visits, changed = visits_of(run), copies_changed(run)
    fits = [
        Verdict.HELD if copies == [visit] else Verdict.FAILED for visit, copies in zip(visits, changed, strict=True)
    ]
    rows = tuple(
        Row(name, tuple(Cell(float(number)) for number in numbers))
        for name, numbers in (
            ("active agent", [agent for agent, _ in visits]),
            ("token", [token for _, token in visits]),
            ("copies that changed", [len(copies) for copies in changed]),
        )
    )
    text = "At each step one local copy changes: the active agent's, of the token that is there."
    claim = Claim(text, overall(fits), "number", tuple(f"k = {k + 1}" for k in range(len(visits))), rows, tuple(fits))
    about = (
        "The worked example of the paper's figure 2: API-BCD with two tokens and five agents, here on a ring, with the "
        f"first seed ({run.seed}) whose tokens move in the order of the paper's text. So the order of the visits shows "
        "nothing, and only the copies are judged: all of them are compared before and after each step. Agents and "
        "tokens are counted from one."
    )
    return Study("The worked example", about, (claim,), run)


def _settings(made: Made) -> list[tuple[bool, float]]:
    """Whether tuned, and the share of the gap that is judged; only what was run."""
    tuned = {job.tuned for job in made}
    return [(False, CAPTION_SHARE), (True, TUNED_SHARE)] if True in tuned else [(False, CAPTION_SHARE)]


def _sides(made: Made, setting: Setting, tuned: bool) -> dict[str, Side]:
    """The methods by the names of their rows: API-BCD first, Relay with both the captions' settings and the tuned.

    The tokens' mean of API-BCD is shown too, unless it was tuned for the mean of x."""
    own, others = {}, {}
    for job, runs in made.items():
        here = (job.figure.agents, job.network, job.density, job.walk) == setting
        if here and (job.tuned == tuned or not job.method.positive):
            label = job.method.label
            if label != "API-BCD":
                others[label] = Side(label, runs)
                continue
            own[API] = Side(API, runs, LOCAL)
            if not tuned:
                own[API_TOKENS] = Side(API_TOKENS, runs)
    return own | others


def _rows(
    made: Made, settings: Sequence[Setting], tuned: bool, cost: str, share: float, per_agent: bool = False
) -> tuple[Row, ...]:
    """A row for each method, a cell for each setting; API-BCD is what the claims are about."""
    columns = {setting: _sides(made, setting, tuned) for setting in settings}
    rows = []
    for name in columns[settings[0]]:
        cells = []
        for (agents, *_), sides in columns.items():
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
    text = (
        "Claims about API-BCD are judged by the mean of x, the faster of its two readings. "
        f"Settings of the caption: tau = {FIGURE.tau_is:g} (I-BCD), tau = {FIGURE.tau_api:g} with {TOKENS} tokens "
        f"(API-BCD), alpha = {FIGURE.alpha:g} (WPG); Relay has none. "
    )
    if any(job.tuned for job in made):
        text += (
            "Tuned: step or penalty by the search of the figures, on the first seed of the network of density "
            f"{DENSITY} with the cycle, once for each number of agents and kept for all networks and walks; pilot runs "
            f"of {FIGURE.pilot_laps} laps; API-BCD for the mean of x; D-ADMM stands for gossip. "
        )
    return text + (
        f"Every run has {UNITS_PER_AGENT} units and {quantity(TIME_S_PER_AGENT, TIME)} of virtual time per agent, in "
        f"the fixed cost model; {'medians over ' + str(seeds) + ' seeds' if seeds > 1 else 'one seed'}."
    )
