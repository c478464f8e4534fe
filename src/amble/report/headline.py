"""One sentence that says what a section's figure shows, from the numbers that it is drawn from."""

from collections.abc import Sequence

import numpy as np

from amble.report.measures import costs_to_reach, ended, median_cost
from amble.report.sections import MEAN_OF_X, TIME, UNITS, Line, Section, best_metric, columns, is_accuracy, lines
from amble.report.text import ended_text, quantity

LEVELS = {0.001: "0.1 %", 0.01: "1 %"}  # the first that any line reaches is told
COST_NAMES = {TIME: "time", UNITS: "communication"}


def headline(section: Section) -> str:
    """Who comes near the optimum at the least cost; else who ends best."""
    drawn = lines(section)
    names = _names(drawn)
    shown = columns(section)
    measured = "metric" if np.isfinite(best_metric(section)) else "distance"
    for within, level in LEVELS.items() if measured in shown else ():
        goal = f"{level} of the optimum's {shown['metric']}" if measured == "metric" else f"a distance of {within:g}"
        costs = {cost: [median_cost(costs_to_reach(line, cost, within)) for line in drawn] for cost in COST_NAMES}
        reached = {cost: each for cost, each in costs.items() if np.isfinite(each).any()}
        if reached and len({line.runs for line in drawn}) == 1:  # one method: its model, or else its second reading
            told = next(k for k, each in enumerate(zip(*reached.values(), strict=True)) if np.isfinite(each).any())
            least = {cost: each[told] for cost, each in reached.items() if np.isfinite(each[told])}
            spent = [f"{quantity(amount, cost)}{' units' * (cost == UNITS)}" for cost, amount in least.items()]
            return f"{names[told]} is within {goal} after {' and '.join(spent)}"
        if reached:
            first = {COST_NAMES[cost]: _least(drawn, names, each) for cost, each in reached.items()}
            won = {who: " and ".join(cost for cost, each in first.items() if each == who) for who in first.values()}
            return f"First within {goal}: {', '.join(f'{who} in {what}' for who, what in won.items())}"
    column = next(iter(shown))
    ends = [ended(line, column) for line in drawn]
    upward = column == "metric" and is_accuracy(section)
    best = int(np.argmax(ends) if upward else np.argmin(ends))
    if not np.isfinite(ends[best]):
        return "No method converges"
    missed = "; no method is within 1 % of the optimum's" if measured == column == "metric" else ""
    return f"{names[best]} ends with the best {shown[column]}, {ended_text(ends[best], column)}{missed}"


def _least(drawn: Sequence[Line], names: Sequence[str], costs: Sequence[float]) -> str:
    """The lines that need least; a run's second reading is not told where its first needs as little."""
    first = {
        line.runs: name
        for line, name, cost in reversed(list(zip(drawn, names, costs, strict=True)))
        if cost == min(costs)
    }
    return " and ".join(reversed(first.values()))


def _names(drawn: Sequence[Line]) -> list[str]:
    """The method's name where it tells the lines apart, else the whole label."""
    labels = [line.runs[0].method.label for line in drawn if not line.column_suffix]
    short = [f"{line.runs[0].method.label}{f' ({MEAN_OF_X})' if line.column_suffix else ''}" for line in drawn]
    return [
        name if labels.count(line.runs[0].method.label) < 2 else line.label
        for name, line in zip(short, drawn, strict=True)
    ]
