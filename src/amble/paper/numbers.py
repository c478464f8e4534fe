"""paper.json: the numbers behind the tables of README.md and docs/reproduce.md, with the machine and the settings."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amble import methods
from amble.files import write_whole
from amble.paper.other_claims import Study
from amble.report.claims import Cell, Claim
from amble.report.measures import costs_to_reach, median_cost
from amble.report.sections import TIME, UNITS, Line, Section, best_metric, lines

NAME = "paper.json"
WITHIN = 0.001  # of the optimum's metric
DIGITS = 4


def write_numbers(
    folder: Path, sections: Sequence[Section], studies: Sequence[Study], machine: Mapping[str, str]
) -> Path:
    text = json.dumps(numbers(sections, studies, machine), indent=1)
    write_whole({folder / NAME: f"{text}\n".encode()})
    return folder / NAME


def numbers(sections: Sequence[Section], studies: Sequence[Study], machine: Mapping[str, str]) -> dict[str, Any]:
    """What each method needed and each claim's verdict, section by section. It holds no date, so that the same runs
    give the same file."""
    return {
        "machine": dict(machine),
        "within": WITHIN,
        "sections": [_section(section) for section in sections],
        "studies": [
            {"title": each.title, "about": each.about, "claims": [_claim(claim) for claim in each.claims]}
            for each in studies
        ],
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "group": section.group,
        "data": section.runs[0].problem["name"],
        "seeds": sorted({run.seed for run in section.runs}),
        "budgets": dict(section.budgets),
        "optimum": _plain(best_metric(section)),
        "lines": [_line(line) for line in lines(section)],
        "claims": [_claim(claim) for claim in section.claims],
    }


def _claim(claim: Claim) -> dict[str, Any]:
    return {
        "text": claim.text,
        "verdict": claim.verdict.value,
        "measure": claim.measure,
        "columns": list(claim.columns),
        "verdicts": [verdict.value for verdict in claim.verdicts],
        "rows": {row.name: [_cell(cell) for cell in row.cells] for row in claim.rows},
    }


def _cell(cell: Cell) -> list[float | None] | None:
    """The value and the limit, None where it is infinite; no pair where there is nothing to measure."""
    return None if np.isnan(cell.value) else [_plain(cell.value), _plain(cell.limit)]


def _line(line: Line) -> dict[str, Any]:
    """A method with its settings, and the median cost to come and stay near the optimum; None: not in the budget."""
    first = line.runs[0]
    needed = {cost: _plain(median_cost(costs_to_reach(line, cost, WITHIN))) for cost in (TIME, UNITS)}
    return {
        "method": first.method.label,
        "settings": methods.settings(first.method),
        "reading": line.column_suffix,
        "tuned": first.tuning.get("setting"),  # the setting that was, or None
        "tuned_for_reading": first.tuning.get("reading") is not None,
        "refused": first.tuning.get("refused", []),  # values that looked better in pilot runs and rose in a full one
        **needed,
    }


def _plain(value: float) -> float | None:
    """A few digits; None for what JSON has no number for."""
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
