"""tune: a method's step or penalty by a small search on pilot runs, under the same budget of hops for every method.

The search is over powers of ten around the problem's own scale, by default nine values over six decades, and up to four
more beyond an end where the best lies there; then the four that lie halfway and a quarter of the way between the best
and its neighbours. Values are ranked by speed (`rank`): the best one is the first to come close to the lowest sum_i f_i
that any of them has at the end. So tuning does not use the optimum. A value whose loss rises at the end comes after all
whose loss does not.

A step that is slightly too large looks best in a short run and diverges in a long one. So the best value must also work
in a run twenty times as long; if the loss rises there, the next best is tested. `rescore` goes further: it compares the
best value with others around it on runs of full length.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from amble import engines, methods
from amble.arrays import Array
from amble.losses.objective import knows, number_of
from amble.methods import Method
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.results.run import Run
from amble.simulation.many import Interrupted, run_many
from amble.simulation.running import begin, run_once

PILOT_LAPS = 50  # visits per agent in each pilot run
VISITS_FEW = 300_000  # in all pilot runs of one step of the search: fewer are not worth a program of their own
LONG = 20  # how many times as long the chosen value must work
POWERS = (-4.0, 2.0, 9)  # of ten, times the scale: from, to, how many
BEYOND_MAX = 4  # steps beyond the coarse grid's ends, where the best lies at one
FINE = (-0.5, -0.25, 0.25, 0.5)  # of the coarse grid's width
CLOSE = 1e-4  # of the fall from the start: a loss this near to the lowest one has arrived
RISE = 1e-3  # of the fall: more is a rise, less may be the last of an oscillation
ROUNDING = 1e-12  # of the loss itself: what is less than this is neither a rise nor a fall
SAMPLES = 60  # losses of a run that are looked at, the later the further apart


class Trial(NamedTuple):
    """The loss of one run: `losses[k]` after `hops[k]` hops (rounds, of a round method), from the start to the end."""

    hops: Sequence[int]
    losses: Sequence[float]

    @property
    def end(self) -> float:
        return self.losses[-1] if np.isfinite(self.losses).all() else np.inf

    @property
    def rises(self) -> bool:
        """Whether the loss is higher at the end than at a quarter of the run or later."""
        late = [loss for hop, loss in zip(self.hops, self.losses, strict=True) if hop >= self.hops[-1] / 4]
        return not self.end <= self.level(min(late), RISE)

    def level(self, low: float, share: float) -> float:
        """The loss that is above `low` by this share of the fall from the start to there."""
        start = self.losses[0]
        return low + share * max(start - low, 0) + ROUNDING * (abs(low) + abs(start))

    def hops_to(self, low: float) -> float:
        """The hops after which the loss is close to `low` until the end; infinite where it is not."""
        above = [k for k, loss in enumerate(self.losses) if not loss <= self.level(low, CLOSE)]
        last = above[-1] if above else -1
        return float(self.hops[last + 1]) if last + 1 < len(self.hops) else np.inf


def rank(trials: Mapping[float, Trial]) -> list[float]:
    """The values, the best first: that is the first to come close to the lowest loss that any has at the end.

    Of two that are equally fast, the one with the lower loss is better; one whose loss rises is worse than all others.
    """
    low = min((trial.end for trial in trials.values() if not trial.rises), default=np.inf)

    def rank(value: float) -> tuple[bool, float, float, float]:
        trial = trials[value]
        return trial.rises, trial.hops_to(low), trial.end, value

    return sorted(trials, key=rank)


def tune(
    method: Method,
    problem: Problem,
    network: Network,
    *,
    laps: int = PILOT_LAPS,
    powers: tuple[float, float, int] = POWERS,
    long: int = LONG,
    reading: str | None = None,
    watch: Callable[[int, int], object] = lambda *_: None,
    made: dict[tuple[float, int], Run] | None = None,
    **options: Any,
) -> tuple[Method, dict[str, Any]]:
    """The method with its step or penalty chosen, and a record of what was tried; takes the options of `simulate`.

    `reading` names the model whose loss counts: "" is the tokens' mean, "_local" the mean of the agents' x_i.
    `watch` is called after each pilot run with how many are done, and the least number of all. `made` are pilot runs of
    this method that another reading had, by their value and hops; new ones are added.
    """
    name = methods.tunable(method)
    if name is None:
        return method, {}
    scale = scale_of(name, problem)
    hops = laps * problem.agents
    trials: dict[float, Trial] = {}
    done = 0
    least = powers[2] + len(FINE) + (long > 1)

    def pilots(values: Sequence[float], hops: int) -> dict[float, Trial]:
        nonlocal done
        known = {} if made is None else {value: made[value, hops] for value in values if (value, hops) in made}
        judged = {value: trial(run, problem, reading or "") for value, run in known.items()}
        new = [value for value in values if value not in known]
        own = [methods.with_setting(method, name, value) for value in new]
        for value, run in zip(new, pilot_runs(own, problem, network, hops, options) if new else (), strict=True):
            judged[value] = trial(run, problem, reading or "")
            if made is not None:
                made[value, hops] = run
            done += 1
            watch(done, max(done, least))
        return judged

    def best_of(powers: Sequence[float]) -> float:
        values = {power: rounded(scale * 10**power) for power in powers}
        if left := [value for value in dict.fromkeys(values.values()) if value not in trials]:
            trials.update(pilots(left, hops))
        best = rank({value: trials[value] for value in values.values()})[0]
        return next(power for power, value in values.items() if value == best)

    coarse = np.linspace(*powers).tolist()
    width = coarse[1] - coarse[0]
    best = best_of(coarse)
    for _ in range(BEYOND_MAX):
        if best not in (coarse[0], coarse[-1]):
            break
        coarse = [coarse[0] - width, *coarse] if best == coarse[0] else [*coarse, coarse[-1] + width]
        best = best_of(coarse)
    best_of([best + part * width for part in FINE])
    record: dict[str, Any] = {
        "setting": name,
        "hops": hops,
        "tried": losses_of(trials),
        "rising": [f"{value:g}" for value, own in sorted(trials.items()) if own.rises],
        "ranked": [f"{value:g}" for value in rank(trials)],
        "refused": [],  # in a long run
    }
    if reading is not None:
        record["reading"] = reading
    record["chosen"] = choose(record)
    while long > 1 and not all_refused(record):
        chosen = record["chosen"]
        short, longer = trials[chosen], pilots([chosen], long * hops)[chosen]
        if not longer.rises and longer.end <= short.level(short.end, RISE):
            break
        record = refuse(record)
    return methods.with_setting(method, name, record["chosen"]), record


def pilot_runs(
    chosen: Sequence[Method], problem: Problem, network: Network, hops: int, options: dict[str, Any]
) -> Iterator[Run]:
    """A pilot run of each method. As lanes of one program they are many times faster, but that takes seconds to
    compile: where they are short, they are made one after another, by the program that later makes the run itself."""
    every = 1 if methods.is_round(chosen[0]) else problem.agents  # a record per lap
    compiled = problem.own is None and options.get("engine", "auto") != "plain"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if compiled and len(chosen) > 1 and len(chosen) * hops > VISITS_FEW:
            about = {key: value for key, value in options.items() if key != "engine"}
            begun = [begin(method, problem, network, every=every, **about) for method in chosen]
            with suppress(Interrupted):  # then each of the runs below ends at once
                yield from run_many(begun, [problem] * len(begun), hops=hops, optimum=False)
                return
        same: dict[str, Any] = {"hops": hops, "every": every, "optimum": False, "progress": False}
        for method in chosen:
            yield run_once(method, problem, network, **same, **options)


def rounded(value: float) -> float:
    return float(f"{value:.3g}")


def losses_of(trials: Mapping[float, Trial]) -> dict[str, float | None]:
    """The loss at the end, by value; None where the run diverged."""
    return {f"{value:g}": own.end if np.isfinite(own.end) else None for value, own in sorted(trials.items())}


def rescore(record: Mapping[str, Any], trial_of: Callable[[float], Trial], step: float, tries: int) -> dict[str, Any]:
    """The record with its choice made by at most so many runs of full length, which `trial_of` makes.

    They are of the pilot runs' best value, and of those one step lower and higher; on outwards, while the best is at an
    end; then half a step and a quarter of a step around it. A value whose loss rises is refused.
    """
    middle = record["chosen"]
    trials: dict[float, Trial] = {}

    def add(*values: float) -> None:
        for value in map(rounded, values):
            if len(trials) < tries and value not in trials:
                trials[value] = trial_of(value)

    add(middle, middle / step, middle * step)
    while len(trials) < tries and (best := rank(trials)[0]) in (min(trials), max(trials)):
        add(best / step if best == min(trials) else best * step)
    for part in (0.5, 0.25):
        best = rank(trials)[0]
        add(best / step**part, best * step**part)
    ranked = [f"{value:g}" for value in rank(trials)]
    after = {
        **record,
        "full": losses_of(trials),
        "ranked": [*ranked, *(key for key in record["ranked"] if key not in ranked)],
        "refused": [f"{value:g}" for value, own in sorted(trials.items()) if own.rises],
    }
    return {**after, "chosen": choose(after)}


def choose(record: Mapping[str, Any]) -> float:
    """The best value that has not been refused; the best of all where every one has."""
    left = [key for key in record["ranked"] if key not in record["refused"]]
    return float((left or record["ranked"])[0])


def refuse(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with the next best value chosen."""
    after = {**record, "refused": [*record["refused"], f"{record['chosen']:g}"]}
    return {**after, "chosen": choose(after)}


def all_refused(record: Mapping[str, Any]) -> bool:
    """Whether no value is left that was not refused; then the best of the pilot runs stays."""
    return f"{record['chosen']:g}" in record["refused"]


def scale_of(name: str, problem: Problem) -> float:
    """What the setting is measured in: a step in 1/L, a penalty in the mean curvature; gamma is in 1/L_i already."""
    if name == "gamma":
        return 1.0
    each = [problem.stacked] if problem.own is None else problem.own
    kinds = ("smoothness", "local_smoothness") if name == "alpha" else ("curvature",)
    sizes = [next((number_of(f, kind, None) for kind in kinds if knows(f, kind)), 1.0) for f in each]
    values = np.concatenate([np.atleast_1d(np.asarray(size, np.float64)) for size in sizes])
    return float(1 / values.max() if name == "alpha" else values.mean())


def trial(run: Run, problem: Problem, reading: str = "", film: Mapping[int, Array] | None = None) -> Trial:
    """The run's sum_i f_i, from its start to its end.

    In gossip each agent's model is an answer, and their mean would hide how far apart they are: there it is the mean
    of the agents' losses. `film` has the agents' models at the records before the end; without it the run is replayed.
    """
    records = run.local if reading else run.consensus
    last = len(run.recorded) - 1
    at = [0, *np.unique(np.geomspace(1, last, SAMPLES).round().astype(int)).tolist()] if last else [0]
    hops = [int(run.recorded[k]) for k in at]
    with np.errstate(all="ignore"):
        if not is_gossip(run.method):
            sets = [records[[k]] for k in at]
        elif film is None:
            sets = models_at(run, problem, hops)
        else:
            sets = [*(film[hop] for hop in hops[:-1]), run.models]
        losses = [float(np.mean([float(problem.value(x)) for x in models])) for models in sets]
    if run.stopped == "diverged":
        losses[-1] = np.inf
    return Trial(hops, losses)


def is_gossip(method: Method) -> bool:
    """Whether each agent's model is an answer."""
    return methods.is_pair(method) or (methods.is_round(method) and method.hears != "mean")


def models_at(run: Run, problem: Problem, rounds: list[int]) -> list[Array]:
    """The agents' models after so many rounds or hops. A run keeps the last ones only, so it is replayed."""
    machine = engines.engine_for("auto", run.method, problem, run.network, run.start)
    state, done, models = machine.start(), 0, []
    for count in rounds:
        state, done = machine.advance(state, run.schedule, done, count), count
        models.append(replace(run, state=state.on_numpy()).models)
    return models
