"""A sweep as plain settings: from a TOML file, from the command line, or both."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from amble import networks
from amble.errors import AmbleError, is_whole, unknown
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.simulation.experiment import LIMITS, Experiment
from amble.sweeps.plan import shares_of
from amble.sweeps.rows import measured


@dataclass(frozen=True)
class SweepSettings:
    """What a sweep has beside the settings of an experiment; the fields are keys of the TOML file."""

    seeds: Any = 8  # how many, from 0 on, or a list of them
    splits: Any = 1  # how many splits of the data, or a list of their seeds; one split has `seed`
    networks: list[str] = field(default_factory=list)  # several names, in place of `network`
    grid: dict[str, Any] = field(default_factory=dict)  # a list of values per setting, for every method that has it
    random: dict[str, Any] = field(default_factory=dict)  # [low, high, scale] per setting: linear, log or whole
    tries: int | None = None  # of the random search
    within: Any = 0.01  # how near to the optimum's metric, as a share, or a list of shares
    rank: str = "objective"  # the column of the table that says which setting is best


def read_settings(values: Mapping[str, Any]) -> tuple[SweepSettings, Experiment]:
    """The settings of the sweep, and those of its runs, checked for their names and kinds."""
    own = {each.name for each in fields(SweepSettings)}
    ours = {key: value for key, value in values.items() if key in own}
    theirs = {key: value for key, value in values.items() if key not in own}
    for key, kind in (("grid", dict), ("random", dict), ("networks", list), ("rank", str)):
        if key in ours and not isinstance(ours[key], kind):
            expected = {dict: "a table", list: "a list", str: "text"}[kind]
            raise AmbleError(f"{key} = {ours[key]!r} was given; it must be {expected}.")
    known = [each.name for each in fields(Experiment)]
    for key in theirs:
        if key not in known:
            raise unknown("setting", key, [*known, *own])
    for key in ("tune", "penalised"):
        if theirs.get(key):
            raise AmbleError(f"{key} was given; a sweep has none, so use grid, or amble compare.")
    if theirs.get("metric") is not None:
        raise AmbleError(
            f"metric = {theirs['metric']!r} was given; a sweep does not stop at a metric: use rank, or hops."
        )
    methods = theirs.get("methods")
    if isinstance(methods, list):
        theirs["methods"] = [one for table in methods for one in each_of(table)]
    return SweepSettings(**ours), Experiment().with_settings({"out": "amble-sweep", **theirs})


def each_of(table: Any) -> list[Any]:
    """A method's table for each combination of the values that are lists."""
    if not isinstance(table, dict):
        return [table]
    lists = {key: value for key, value in table.items() if isinstance(value, list)}
    return [{**table, **dict(zip(lists, row, strict=True))} for row in itertools.product(*lists.values())]


def arguments(own: SweepSettings, runs: Experiment) -> dict[str, Any]:
    """What `amble.sweep` is to be called with; the data are read and divided."""
    chosen = [method for method, _ in runs.make_methods()]
    several = own.networks or [runs.network]
    for name in several:
        if name not in networks.KINDS:
            raise unknown("network", name, networks.KINDS)
    if own.rank not in (columns := measured(shares_of(own.within))):
        raise unknown("measured column", own.rank, columns)
    numbers = counted(own.splits, "splits")
    data = runs.read_data()
    problems: list[Problem] = [runs.deal(data, seed) for seed in ([runs.seed] if numbers == [0] else numbers)]
    return {
        "method": chosen,
        "problem": problems,
        "network": {name: partial(named, name, runs.density) for name in several},
        "seeds": counted(own.seeds, "seeds"),
        "grid": own.grid,
        "random": {key: tuple(span) if isinstance(span, list) else span for key, span in own.random.items()},
        "tries": own.tries,
        "within": own.within,
        **{name: getattr(runs, name) for name in (*LIMITS, "walk", "timing", "every", "start")},
    }


def named(name: str, density: float, agents: int, seed: int) -> Network:
    return networks.named(name, agents, density, seed)


def counted(value: Any, name: str) -> list[int]:
    """So many numbers from 0 on, or those of the list."""
    if is_whole(value) and value >= 1:
        return list(range(value))
    if isinstance(value, list) and value and all(map(is_whole, value)):
        return value
    raise AmbleError(f"{name} = {value!r} was given; give how many, one or more, or a list of whole numbers.")
