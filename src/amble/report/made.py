"""How a section's runs were made: data, network, walk, timing, seeds, tuning."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from amble import methods
from amble.report.markup import Markup, join, tag
from amble.report.page_tables import headings, pairs, table
from amble.report.sections import Line, Section, lines
from amble.report.text import BYTE_UNITS, SECOND_UNITS, in_units, percent
from amble.results.run import Run
from amble.schedule import timing

HEADS = ("method", "walk", "a visit takes", "a message has", "hops", "idle", "ended by", "tuning")


def made(section: Section) -> Markup:
    """What all runs share, as a list; what differs between methods, as a table."""
    runs = section.runs
    first = runs[0]
    degrees = [int(degree) for degree in first.network.degrees]
    shared = {
        "data": f"{first.problem['name']}, {first.problem['task']}, {first.problem['dimension']} unknowns",
        "agents": str(first.network.agents),
        "split": _listed({key: value for key, value in first.problem["settings"].items() if key != "seed"}),
        "network": f"{first.network.name}, {_each(len(run.network.edges) for run in runs)} links, "
        f"{min(degrees)} to {max(degrees)} neighbours per agent",
        "timing": "; ".join(dict.fromkeys(_timing(run) for run in runs)),
        "seeds": _each(run.seed for run in runs),
    }
    if any(run.problem["settings"].get("seed", run.seed) != run.seed for run in runs):
        shared["seeds of the split"] = _each(run.problem["settings"].get("seed") for run in runs)
    shown = {id(line.runs[0]): line for line in reversed(lines(section))}  # the first line of each method's runs
    rows = [_row(line) for line in reversed(shown.values())]
    idle = "Idle: the share of all agents' time in which they did not compute, median over the seeds."
    caption = "How each method was run."
    return join(pairs(shared), table(caption, [headings(*HEADS)], rows, caption), tag("p", idle, class_="note"))


def _row(line: Line) -> Sequence[str]:
    runs = line.runs
    seconds = float(np.median(np.concatenate([np.atleast_1d(run.compute_s) for run in runs])))
    method = runs[0].method
    walks = "rounds" if methods.is_round(method) else "pairs" if methods.is_pair(method) else runs[0].walk_name
    return (
        line.label,
        walks,
        in_units(float(f"{seconds:.3g}"), SECOND_UNITS),
        in_units(runs[0].message_bytes, BYTE_UNITS),
        _each(f"{int(run.history['hop'][-1]):,}" for run in runs),
        percent(float(np.median([run.history["idle"][-1] for run in runs]))),
        _each(run.stopped for run in runs),
        tuning_text(runs),
    )


def tuning_text(runs: Sequence[Run]) -> str:
    """Which setting was chosen by tuning, and from how many."""
    tuned = [run.tuning for run in runs if run.tuning]
    if not tuned:
        return "none"
    chosen = _each(f"{each['chosen']:g}" for each in tuned)
    return f"{tuned[0]['setting']} = {chosen}, from {_each(len(each['tried']) for each in tuned)} tried"


def _timing(run: Run) -> str:
    """What is set; a visit's seconds are in the table."""
    if run.walk == "live":
        hop_s = run.timing.low_s + run.timing.mean_s
        return f"measured, {in_units(float(f'{hop_s:.3g}'), SECOND_UNITS)} a hop"
    chosen = {key: value for key, value in timing.settings(run.timing).items() if value and key != "compute"}
    return _listed(chosen)


def _each(values: Iterable[Any]) -> str:
    """Every value once."""
    return ", ".join(dict.fromkeys(map(str, values)))


def _listed(settings: dict[str, Any]) -> str:
    shown = {key: value for key, value in settings.items() if value is not None and value != []}
    return ", ".join(f"{key} = {value}" for key, value in shown.items()) or "as given"
