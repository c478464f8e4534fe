"""Section: what one figure of the page shows: which runs, as which lines."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from amble import methods
from amble.problem.prediction import METRICS
from amble.report.claims import Claim
from amble.results.reaching import LOCAL, column_of
from amble.results.run import Run, settings_text
from amble.schedule import timing

READINGS_APART = 0.01  # relative difference of the two readings of the model from which both are drawn
MEAN_OF_X = "mean of x"
DISTANCES_APART = 1e-3  # below it two distances are both near zero, and one line says it all
TIME, UNITS, BYTES = "time_s", "comm_units", "bytes"


@dataclass(frozen=True)
class Section:
    """One data set, several methods, one or more seeds each."""

    title: str
    runs: tuple[Run, ...]
    about: str = ""
    claims: tuple[Claim, ...] = ()
    group: str = ""  # the heading of the summary table that this section's claims are in
    budgets: Mapping[str, float] = field(
        default_factory=dict
    )  # of a cost: what lies beyond is neither shown nor judged
    pictures: bool = True  # which agent holds which rows, and the network; not if the section before has shown them


class Line(NamedTuple):
    """One curve: a method's runs, one per seed, read at the tokens' mean or (LOCAL) at the mean of the x_i."""

    label: str
    runs: tuple[Run, ...]
    column_suffix: str
    details: tuple[str, ...] = ()  # the label without the method's name: settings, and what else distinguishes lines
    budgets: Mapping[str, float] = {}


def group(runs: Iterable[Run]) -> list[Section]:
    """Runs of the same data over the same kind of network make a section; the order is kept."""
    by_key: dict[str, list[Run]] = {}
    for run in runs:
        about = run.problem
        settings = {key: value for key, value in about["settings"].items() if key != "seed"}
        key = [about["name"], about["task"], run.network.agents, settings, run.network.name]
        by_key.setdefault(json.dumps(key, sort_keys=True, default=str), []).append(run)
    titles = [_title(runs_of_key[0]) for runs_of_key in by_key.values()]
    numbered = [f"{title} ({titles[:k].count(title) + 1})" if title in titles[:k] else title
                for k, title in enumerate(titles)]  # fmt: skip
    return [Section(title, tuple(runs_of_key)) for title, runs_of_key in zip(numbered, by_key.values(), strict=True)]


def _title(run: Run) -> str:
    how = run.problem["settings"].get("how", "even")
    dealt = "" if how == "even" else f" ({how})"
    agents = "1 agent" if run.network.agents == 1 else f"{run.network.agents} agents"
    return f"{run.problem['name']}, {agents}{dealt}, {run.network.name}"


def slugs(sections: Sequence[Section]) -> list[str]:
    """A unique name for each section, fit for a link and for a file's name."""
    names: list[str] = []
    for section in sections:
        plain = re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")[:60] or "section"
        number, name = 1, plain
        while name in names:
            number += 1
            name = f"{plain}-{number}"
        names.append(name)
    return names


def best_metric(section: Section) -> float:
    """The test metric of the centralised optimum, median over the seeds; nan without test rows."""
    known = [float(best) for run in section.runs if (best := run.problem["optimum_metric"]) is not None]
    return float(np.median(known)) if known else float("nan")


def is_accuracy(section: Section) -> bool:
    return bool(section.runs[0].problem["task"] == "classification")


def cost_names(section: Section) -> dict[str, str]:
    """What a figure is drawn against. Where some runs are live and others simulated, times are just times."""
    clocks = {run.clock for run in section.runs}
    time = clocks.pop() if len(clocks) == 1 else "time"
    return {TIME: time, UNITS: "communication (units)", BYTES: "communication (bytes)"}


def metric_word(section: Section) -> str:
    return METRICS.get(section.runs[0].problem["task"], "metric")


def columns(section: Section) -> dict[str, str]:
    """What can be shown, with its words: test metric and distance, or the objective where neither is known."""
    shown = {}
    if any(np.isfinite(run.history["metric"]).any() for run in section.runs):
        shown["metric"] = f"test {metric_word(section)}"
    if any(np.isfinite(column_of(run, "distance")).any() for run in section.runs):
        shown["distance"] = "distance to the optimum"
    return shown or {"objective": "sum of all losses"}


def lines(section: Section) -> list[Line]:
    """One line per method; a second one where the mean of the agents' x_i is another model than the tokens' mean.
    Runs that were tuned for one reading are read so only."""
    each = []
    shown = columns(section)
    for details, runs in _by_method(section.runs):
        tuned_for = runs[0].tuning.get("reading")
        differ = any(_readings_differ(run, column) for run in runs for column in shown)
        for suffix in ("", LOCAL):
            if (suffix == tuned_for) if tuned_for is not None else (differ or not suffix):
                told = (*details, MEAN_OF_X) if suffix else details
                name = f"{runs[0].method.label} ({told[0]})" if told[0] else runs[0].method.label
                label = ", ".join([name, *told[1:]])
                each.append(Line(label, runs, suffix, told, section.budgets))
    return each


def legend_label(line: Line) -> str:
    return line.label + " (diverged)" * any(run.stopped == "diverged" for run in line.runs)


def _readings_differ(run: Run, column: str) -> bool:
    """Whether the tokens' mean and the mean of x are far enough apart, late in the run, to draw both."""
    if column == "objective":
        return False
    late = slice(len(run.recorded) // 2, None)
    one, other = column_of(run, column)[late], column_of(run, f"{column}{LOCAL}")[late]
    with np.errstate(all="ignore"):  # a diverged run
        apart = np.abs(one - other)
        differ = apart > READINGS_APART * np.maximum(np.abs(one), np.abs(other))
    return bool(differ.any() and (column == "metric" or (apart > DISTANCES_APART).any()))


def _by_method(runs: Sequence[Run]) -> list[tuple[tuple[str, ...], tuple[Run, ...]]]:
    """Runs that differ only in their seed, with their settings and what else distinguishes them."""
    alike: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        walk = run.walk_name if methods.walks(run.method) else ""
        taken = {} if walk == "live" else timing.settings(run.timing)  # measured: never twice the same
        kind = (
            run.method.label,
            settings_text(run.method, run.tuning.get("setting")),
            run.tuning.get("reading"),
            walk,
            json.dumps(taken, sort_keys=True),
        )
        turn = 1  # a second run of the same seed is not another seed
        while any(_chance(run) == _chance(other) for other in alike.get((*kind, turn), ())):
            turn += 1
        alike.setdefault((*kind, turn), []).append(run)
    told = []
    for key, own in alike.items():
        namesakes = [other for other in alike if _settings(alike[other]) == _settings(own) and other[0] == key[0]]
        details = [_settings(own)]
        if len({other[3] for other in namesakes}) > 1:
            details.append(f"walk: {key[3]}")
        timings = [other[4] for other in namesakes if (other[3] == "live") == (key[3] == "live")]  # of live runs: none
        if len({*timings}) > 1:
            details.append(_what_differs(key[4], timings))
        twins = [other for other in namesakes if other[2:5] == key[2:5]]
        if len(twins) > 1 and twins[0] != key:
            details.append(f"run {twins.index(key) + 1}")
        told.append((tuple(details), tuple(own)))
    return told


def _settings(runs: Sequence[Run]) -> str:
    """The settings of runs that differ in their seed only; what tuning chose is named where it is the same for all."""
    each = {settings_text(run.method) for run in runs}
    if len(each) > 1:
        return settings_text(runs[0].method, runs[0].tuning["setting"])
    return f"{each.pop()}, tuned" if runs[0].tuning else each.pop()


def _chance(run: Run) -> tuple[Any, ...]:
    """All that a seed decides: the walk and link times, the split, the network."""
    return run.seed, run.problem["digest"], run.network.starts.tobytes(), run.network.neighbours.tobytes()


def _what_differs(mine: str, all_of_them: list[str]) -> str:
    every = [json.loads(each) for each in all_of_them]
    own = json.loads(mine)
    return ", ".join(f"{key}={own[key]}" for key in own if any(other[key] != own[key] for other in every))
