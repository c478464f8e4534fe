"""Rewrites the tables and the figure of docs/asynchrony.md from docs/asynchrony.json: python docs/asynchrony.py

A table is between the comments <!-- asynchrony: NAME --> and <!-- end -->. benchmarks/asynchrony.py measures.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from amble.drawing import headline, new_figure, save
from amble.look import COLOURS, INK, QUIET, look

DOCS = Path(__file__).parent
KEPT, PAGE, FIGURE = DOCS / "asynchrony.json", DOCS / "asynchrony.md", DOCS / "asynchrony.png"
BLOCK = re.compile(r"(<!-- asynchrony: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
FAMILIES = {
    "tokens": ("Relay", "WPG", "WADMM", "Dual-BCD", "API-BCD"),
    "gossip in rounds": ("DGD", "EXTRA", "DIGing", "DATOS", "D-ADMM"),
    "gossip in pairs": ("AD-PSGD",),
    "a server": ("Central", "FedAvg"),
}
LEVELS = ("1 %", "0.1 %")
BUDGET = 2000.0  # the time of a run, in messages
SHOWN_IDLE = ("Relay", "Relay, 10 tokens", "AD-PSGD", "D-ADMM", "FedAvg")
TITLE = "{}: the fastest of each kind (x: none within the budget)"
NEAR = 1.2  # two times that differ by less are called equal
Cells = dict[str, dict[str, Any]]


def family(label: str) -> str:
    return next(name for name, members in FAMILIES.items() if label.startswith(members))


def fastest(cells: Cells, level: int) -> dict[str, tuple[float, str]]:
    """Of each family, the least median time to a level, and of which method; infinite where none has reached it."""
    best: dict[str, tuple[float, str]] = dict.fromkeys(FAMILIES, (np.inf, "none"))
    for label, cell in cells.items():
        seconds = cell["times"][level][1]
        if seconds is not None:
            best[family(label)] = min(best[family(label)], (seconds, label))
    return best


def winners(cells: Cells, level: int) -> list[str]:
    """The families whose fastest method is as fast as any, or nearly."""
    best = fastest(cells, level)
    least = min(seconds for seconds, _ in best.values())
    return [name for name, (seconds, _) in best.items() if seconds <= NEAR * least < np.inf]


def blocks(kept: dict[str, dict[str, Cells]]) -> dict[str, str]:
    """Every table by its name."""
    tables = {"count": _count(kept), "straggler": _straggler(kept), "idle": _idle(kept)}
    tables["conclusions"] = "\n".join(f"- {sentence}" for sentence in conclusions(kept))
    for level, name in enumerate(LEVELS):
        tables[f"fastest-{level}"] = _fastest(kept, level, name)
    return tables | {f"all-{data}": _all(scenarios) for data, scenarios in kept.items()}


def rewritten(page: str, tables: dict[str, str]) -> str:
    return BLOCK.sub(lambda block: f"{block[1]}\n{tables[block[2]]}\n\n{block[3]}", page)


def _table(heads: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *rows))


def _number(value: float | None) -> str:
    return "-" if value is None or not np.isfinite(value) else f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def conclusions(kept: dict[str, dict[str, Cells]]) -> list[str]:
    """Of each family, where it is the fastest to 0.1 % and by which method; and whom a straggler disturbs least."""
    total, said = sum(map(len, kept.values())), []
    for name in FAMILIES:
        won = {
            data: [each for each, cells in scenarios.items() if name in winners(cells, 1)]
            for data, scenarios in kept.items()
        }
        count = sum(map(len, won.values()))
        if not count:
            said.append(f"**{name.capitalize()}**: never the fastest to 0.1 %.")
            continue
        makers = [fastest(kept[data][each], 1)[name][1] for data, each_won in won.items() for each in each_won]
        by = ", ".join(f"{label} in {makers.count(label)}" for label in sorted(set(makers), key=makers.index))
        where = "; ".join(f"{data}: {_which(cases, list(kept[data]))}" for data, cases in won.items() if cases)
        cases = f"{count} of {total} cases ({where}). By {by}"
        said.append(f"**{name.capitalize()}**: the fastest to 0.1 %, or as fast, in {cases}.")
    factors = {label: _slowed(kept, label) for label in next(iter(next(iter(kept.values())).values()))}
    best = min(factors, key=lambda label: max(factors[label]))
    spans = {label: f"{min(each):.1f} to {max(each):.1f} times as long" for label, each in factors.items()}
    said.append(
        f"**With stragglers** {best} suffers least: to 1 % it takes {spans[best]} as with equal agents. Relay takes "
        f"{spans['Relay']} with one token, and {spans['Relay, 10 tokens']} with ten, which wait for the slowest."
    )
    return said


def _which(cases: list[str], every: list[str]) -> str:
    """Some cases of all, by the shorter list."""
    left = [each for each in every if each not in cases]
    return "all" if not left else f"all but {', '.join(left)}" if len(left) < len(cases) else ", ".join(cases)


def _slowed(kept: dict[str, dict[str, Cells]], label: str) -> list[float]:
    """How many times as long a method takes to 1 % with one slow agent, and with two; infinite beyond the budget."""
    found = []
    for scenarios in kept.values():
        even = scenarios["even"][label]["times"][0][1]
        for name in ("one agent 10x", "10 % of agents 10x"):
            slow = scenarios[name][label]["times"][0][1]
            found.append(np.inf if even is None or slow is None else slow / even)
    return found


def _fastest(kept: dict[str, dict[str, Cells]], level: int, name: str) -> str:
    rows = []
    for data, scenarios in kept.items():
        for scenario, cells in scenarios.items():
            best, first = fastest(cells, level), winners(cells, level)
            texts = [
                f"{'**' * (each in first)}{_number(seconds)}{'**' * (each in first)} ({label})"
                if label != "none"
                else "-"
                for each, (seconds, label) in best.items()
            ]
            rows.append([data, scenario, *texts])
    return _table(["data", "scenario", *(f"{each}, to {name}" for each in FAMILIES)], rows)


def _count(kept: dict[str, dict[str, Cells]]) -> str:
    """In how many scenarios each family has the fastest method."""
    every = [cells for scenarios in kept.values() for cells in scenarios.values()]
    rows = []
    for each in FAMILIES:
        counts = [sum(each in winners(cells, level) for cells in every) for level in range(len(LEVELS))]
        rows.append([each, *(f"{count} of {len(every)}" for count in counts)])
    return _table(["fastest, or as fast", *(f"to {name}" for name in LEVELS)], rows)


def _straggler(kept: dict[str, dict[str, Cells]]) -> str:
    """How many times as long each method takes to 1 % with one slow agent, and with two."""
    rows = []
    for label in next(iter(next(iter(kept.values())).values())):
        texts = []
        for scenarios in kept.values():
            even = scenarios["even"][label]["times"][0][1]
            for name in ("one agent 10x", "10 % of agents 10x"):
                slow = scenarios[name][label]["times"][0][1]
                texts.append("-" if even is None else "> budget" if slow is None else f"{slow / even:.1f}")
        rows.append([label, *texts])
    heads = [f"{data}, {count}" for data in kept for count in ("one slow", "10 % slow")]
    return _table(["method", *heads], rows)


def _idle(kept: dict[str, dict[str, Cells]]) -> str:
    """The share of time in which agents do not compute."""
    data, scenarios = next(iter(kept.items()))
    rows = []
    for label in scenarios["even"]:
        even, slow = scenarios["even"][label], scenarios["one agent 10x"][label]
        others = (20 * slow["idle"] - slow["idle_slowest"]) / 19
        rows.append([label, *(f"{100 * share:.0f} %" for share in (even["idle"], slow["idle_slowest"], others))])
    return _table([f"method, {data}", "all agents alike", "one 10x: the slow agent", "one 10x: the others"], rows)


def _all(scenarios: dict[str, Cells]) -> str:
    """Medians to 0.1 %, with quartiles; in brackets those to 1 %."""
    rows = []
    for label in next(iter(scenarios.values())):
        texts = []
        for cells in scenarios.values():
            (_, early, _), (low, middle, high) = cells[label]["times"]
            spread = "" if middle is None else f" ({_number(low)} to {_number(high)})"
            texts.append(f"{_number(middle)}{spread}; {_number(early)}")
        rows.append([label, *texts])
    return _table(["method", *scenarios], rows)


@look()
def draw(kept: dict[str, dict[str, Cells]], path: Path) -> None:
    """For each data set the fastest method of each family by scenario; below, how idle agents are with a straggler."""
    figure = new_figure(11, 2.6 * len(kept) + 2.6)
    panels = figure.subplots(len(kept) + 1, 1)
    marks = dict(zip(FAMILIES, "os^D", strict=True))
    for panel, (data, scenarios) in zip(panels, kept.items(), strict=False):
        for k, name in enumerate(FAMILIES):
            best = [fastest(cells, 1)[name][0] for cells in scenarios.values()]
            at = np.arange(len(best)) + 0.12 * (k - 1.5)
            there = np.isfinite(best)
            label = name if panel is panels[0] else None
            panel.scatter(at[there], np.array(best)[there], marker=marks[name], color=COLOURS[k], s=45, label=label)
            panel.scatter(at[~there], np.full((~there).sum(), BUDGET), marker="x", color=COLOURS[k], s=40)
        panel.axhline(BUDGET, color=QUIET, lw=0.8, ls="--")
        panel.set_yscale("log")
        panel.set_xticks(range(len(scenarios)), list(scenarios), fontsize=8)
        panel.set_ylabel("messages' time\nto 0.1 %")
        panel.set_title(TITLE.format(data))
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4)
    data, scenarios = next(iter(kept.items()))
    lower = panels[-1]
    for k, label in enumerate(SHOWN_IDLE):
        idle = scenarios["one agent 10x"][label]["idle_of_agents"]
        at = np.arange(len(idle)) + 0.12 * (k - 2)
        lower.scatter(at, 100 * np.array(idle), marker="os^Dv"[k], s=16, color=COLOURS[k], label=label)
    lower.set_xticks(range(20), [*map(str, range(1, 20)), "slow"], fontsize=8)
    lower.set_xlabel("agent")
    lower.set_ylabel("idle, % of time")
    lower.set_ylim(-4, 104)
    lower.set_title(f"{data}, one agent ten times slower: how long each agent does not compute (one seed)")
    lower.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    headline(figure, sentence(kept), TITLE.format(next(iter(kept))))
    for panel in panels:
        panel.tick_params(colors=INK)
    save(figure, path)


def sentence(kept: dict[str, dict[str, Cells]]) -> str:
    """What the figure shows, from its numbers."""
    every = [cells for scenarios in kept.values() for cells in scenarios.values()]
    counts = {name: sum(name in winners(cells, 1) for cells in every) for name in FAMILIES}
    texts = [f"{name} in {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1])]
    return f"The fastest to 0.1 %, or as fast, in {len(every)} cases: {', '.join(texts)}"


if __name__ == "__main__":
    known = json.loads(KEPT.read_text())
    PAGE.write_text(rewritten(PAGE.read_text(), blocks(known)))
    draw(known, FIGURE)
