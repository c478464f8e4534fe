"""What a sweep is to make: every setting with every seed, network and split, each a case with a key of its own."""

import hashlib
import inspect
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from amble import __version__, methods, networks
from amble.errors import AmbleError, is_number, is_whole, shown, unknown
from amble.methods import Method
from amble.networks import walks
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.randomness import check_seed
from amble.schedule import timing as timings
from amble.simulation.planning import limits
from amble.simulation.running import check_problem, check_records, initial_model

FORMAT = 1  # of a kept row; rows of another one are made again
SCALES = ("linear", "log", "whole")
PROBLEMS_KEPT = 8  # of those that are made for a seed, in memory

Problems = Problem | Sequence[Problem] | Callable[[int], Problem]


class Case(NamedTuple):
    """One run of a sweep."""

    method: Method
    network: str
    split: int
    seed: int


@dataclass(frozen=True, eq=False)
class Plan:
    """The cases of a sweep, and all that their runs depend on."""

    methods: tuple[Method, ...]  # one for each setting
    problems: Problems
    networks: Mapping[str, Any]  # by their label
    seeds: tuple[int, ...]
    walk: Any
    timing: timings.Timing
    stop: dict[str, Any]  # hops, rounds, time_s, comm_units, tolerance
    within: tuple[float, ...]  # how near to the optimum's metric, for the costs until then
    every: int | None
    start: ArrayLike | None
    optimum: bool
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def splits(self) -> int:
        return len(self.problems) if isinstance(self.problems, Sequence) else 1

    def cases(self) -> list[Case]:
        """All cases. Those of one seed are together: they have their schedules and problems in common."""
        own = itertools.product(self._alike(), range(self.splits), self.networks, self.seeds)
        return [Case(method, name, split, seed) for alike, split, name, seed in own for method in alike]

    def _alike(self) -> list[list[Method]]:
        """Methods that differ in the numbers of their formula only: they can be lanes of one program."""
        from amble.methods.parameters import traced, with_traced

        groups: dict[Any, list[Method]] = {}
        for method in self.methods:
            groups.setdefault(with_traced(method, dict.fromkeys(traced(method), 0.0)), []).append(method)
        return list(groups.values())

    def problem(self, split: int, seed: int) -> Problem:
        if isinstance(self.problems, Problem):
            return self.problems
        if isinstance(self.problems, Sequence):
            return self.problems[split]
        if seed not in self._made:
            made = self.problems(seed)
            check_problem(made)
            while len(self._made) >= PROBLEMS_KEPT:
                self._made.pop(next(iter(self._made)))
            self._made[seed] = made
        problem: Problem = self._made[seed]
        return problem

    def network(self, case: Case) -> Network:
        return _network(self, case.network, self.problem(case.split, case.seed).agents, case.seed)

    def key(self, case: Case) -> str:
        """Names a run by all that it depends on, so that a repeated sweep makes only what is missing."""
        method: Any = case.method  # a frozen dataclass, so it can be hashed; no Protocol can say so
        problem = self.problem(case.split, case.seed)
        about = [_method(method), case.seed, problem.digest, _tested(problem), _links(self.network(case))]
        return hashlib.sha256(json.dumps([*about, _same(self)]).encode()).hexdigest()[:24]


@lru_cache(maxsize=4096)
def _network(plan: Plan, name: str, agents: int, seed: int) -> Network:
    asked = plan.networks[name]
    made = asked(agents, seed) if callable(asked) else asked
    network: Network = networks.as_network(made, agents, seed=seed)
    return network


@lru_cache(maxsize=4096)
def _links(network: Network) -> str:
    sha = hashlib.sha256(np.ascontiguousarray(network.starts, np.int64).tobytes())
    sha.update(np.ascontiguousarray(network.neighbours, np.int64).tobytes())
    return sha.hexdigest()


@lru_cache(maxsize=PROBLEMS_KEPT)
def _tested(problem: Problem) -> str:
    """The test rows: the metrics of a run depend on them, and its digits do not."""
    sha = hashlib.sha256()
    for part in problem.heldout or ():
        sha.update(b"-" if part is None else np.ascontiguousarray(part).tobytes())
    return sha.hexdigest()


@lru_cache(maxsize=4096)
def _method(method: Any) -> list[Any]:
    source = ""
    if type(method) not in methods.METHODS.values():
        with suppress(OSError, TypeError):  # a class that was typed in has no file
            source = inspect.getsource(type(method))
    return [method.label, json.dumps(methods.settings(method), sort_keys=True, default=float), source]


@lru_cache(maxsize=8)
def _same(plan: Plan) -> str:
    """What all runs of a sweep have in common."""
    walk = plan.walk
    if not isinstance(walk, str):
        walk = hashlib.sha256(np.ascontiguousarray(np.asarray(walk, np.float64)).tobytes()).hexdigest()
    start = None if plan.start is None else np.asarray(plan.start, np.float64).tolist()
    about = [FORMAT, __version__, walk, timings.settings(plan.timing), plan.stop, plan.within, plan.every, start]
    return json.dumps([*about, plan.optimum], default=float)


def make_plan(
    method: Any,
    problem: Any,
    network: Any,
    seeds: Any,
    grid: Mapping[str, Sequence[Any]] | None,
    random: Mapping[str, Sequence[Any]] | None,
    tries: int | None,
    *,
    walk: Any,
    timing: Any,
    stop: dict[str, Any],
    within: Any,
    every: int | None,
    start: ArrayLike | None,
    optimum: bool,
) -> Plan:
    """The plan, with everything checked before any work starts."""
    chosen = list(method) if isinstance(method, Sequence) and not isinstance(method, str) else [method]
    if not chosen:
        raise AmbleError("no method was given; give one, or a list of them, such as amble.APIBCD(tokens=5).")
    expanded = settings_of([methods.check(each) for each in chosen], grid or {}, random or {}, tries)
    if isinstance(problem, Sequence) and not problem:
        raise AmbleError("an empty list was given as the problems; give one at least.")
    plan = Plan(
        methods=expanded,
        problems=problem if isinstance(problem, Problem) or callable(problem) else tuple(problem),
        networks=labelled(network),
        seeds=seeds_of(seeds),
        walk=walk,
        timing=timings.timing_from(timing),
        stop=stop,
        within=shares_of(within),
        every=every,
        start=start,
        optimum=optimum,
    )
    if isinstance(walk, str) and walk not in ("auto", *walks.NAMES):
        raise unknown("walk", walk, ("auto", *walks.NAMES))
    for split in range(plan.splits):
        own = plan.problem(split, plan.seeds[0])
        check_problem(own)
        plan.timing.factors(own.agents)
        for each in plan.methods:
            checked = methods.check_penalty(each, own)
            check_records(checked, every, False)
            limits(checked, own, *(stop[name] for name in ("hops", "rounds", "time_s", "comm_units", "tolerance")))
        for name in plan.networks:
            links = plan.network(Case(plan.methods[0], name, split, plan.seeds[0]))
            if not isinstance(walk, str):
                walks.matrix(walk, links)
        if start is not None:
            initial_model(start, own)
    return plan


def settings_of(
    chosen: Sequence[Method], grid: Mapping[str, Any], random: Mapping[str, Any], tries: int | None
) -> tuple[Method, ...]:
    """Every method with every value of the grid, and with every try of the random search."""
    known = dict.fromkeys(name for method in chosen for name in methods.settings(method))
    for name in (*grid, *random):
        if name not in known:
            raise unknown("setting of these methods", name, known)
        if name in grid and name in random:
            raise AmbleError(f"{name} was given in grid and in random; give it in one of them.")
    for name, values in grid.items():
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
            given = "an empty list" if isinstance(values, Sequence) and not values else shown(values)
            raise AmbleError(f"grid has {name}={given}; give a list of values, such as [0.01, 0.1, 1.0].")
    if tries is not None and not (is_whole(tries) and tries >= 1):
        raise AmbleError(f"tries={tries!r} was given; it must be a whole number, one or more.")
    if bool(random) != (tries is not None):
        raise AmbleError("a random search has random={'tau': (1e-3, 10.0, 'log')} and tries=20; give both or neither.")
    drawn: list[dict[str, Any]] = [{} for _ in range(tries or 1)]
    for k, (name, span) in enumerate(sorted(random.items())):
        rng = np.random.default_rng(k)  # the same values for every method, and in every repetition
        for values in drawn:
            values[name] = draw(name, span, rng)
    made = []
    for method in chosen:
        own = {each.name for each in fields(method)}  # type: ignore[arg-type]  # every method is a dataclass
        for values in drawn:
            for row in itertools.product(*grid.values()):
                asked = {**values, **dict(zip(grid, map(plain, row), strict=True))}
                made.append(replace(method, **{name: value for name, value in asked.items() if name in own}))  # type: ignore[type-var]
    return tuple(dict.fromkeys(made))


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def draw(name: str, span: Any, rng: np.random.Generator) -> float | int:
    """One value of a setting, to four digits."""
    scale = span[2] if isinstance(span, Sequence) and len(span) == 3 else "linear"
    if isinstance(span, str) or not isinstance(span, Sequence) or len(span) not in (2, 3) or scale not in SCALES:
        raise AmbleError(f"random has {name}={span!r}; give (low, high, scale), the scale one of {', '.join(SCALES)}.")
    low, high = span[0], span[1]
    if not (is_number(low) and is_number(high) and low < high) or (scale == "log" and low <= 0):
        above = ", above zero on a log scale" if scale == "log" else ""
        raise AmbleError(f"random has {name}={span!r}; low must be below high{above}.")
    if scale == "whole":
        return int(rng.integers(int(low), int(high) + 1))
    u = rng.random()
    return float(f"{low * (high / low) ** u if scale == 'log' else low + u * (high - low):.4g}")


def labelled(network: Any) -> dict[str, Any]:
    """The networks by their labels: names are their own; others are numbered where two are called the same."""
    if isinstance(network, Mapping):
        return dict(network)
    several = list(network) if isinstance(network, list | tuple) else [network]
    if not several:
        raise AmbleError("an empty list was given as the networks; give one at least, or none for a random one.")
    labels: dict[str, Any] = {}
    for each in several:
        name = (
            each if isinstance(each, str) else "random" if each is None else str(getattr(each, "name", "") or "network")
        )
        if name in labels and isinstance(each, str | None):
            raise AmbleError(f"the network {name!r} was given twice; give each once.")
        label = name if name not in labels else f"{name} {len(labels) + 1}"
        labels[label] = each
    return labels


def seeds_of(seeds: Any) -> tuple[int, ...]:
    if is_whole(seeds):
        raise AmbleError(f"seeds={seeds} was given; give all of them, such as range({seeds}).")
    try:
        own = tuple(check_seed(seed) for seed in seeds)
    except TypeError as error:
        raise AmbleError(f"seeds={shown(seeds)} was given; give whole numbers, such as range(8).") from error
    if not own or len(set(own)) < len(own):
        raise AmbleError("seeds must be different, and one at least; give range(8), for example.")
    return own


def shares_of(within: Any) -> tuple[float, ...]:
    several = (within,) if is_number(within) else tuple(within)
    for share in several:
        if not (is_number(share) and share > 0):
            raise AmbleError(f"within={within!r} was given; shares of the optimum's metric are numbers above zero.")
    return tuple(map(float, several))
