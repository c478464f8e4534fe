"""tune: a method's step or penalty by a small search on pilot runs, under the same budget of hops for every method.

The search is over powers of ten around the problem's own scale, by default nine values over six decades, and up to four
more beyond an end where the best lies there; then the four that lie halfway and a quarter of the way between the best
and its neighbours. A value is judged by the lowest sum_i f_i at a quarter, a half and the end of its pilot run, so
nothing is used that is not known before the optimum is. One whose loss rises at the end comes after all that do not.

A step that is slightly too large looks best in a short run and diverges in a long one. So the best value must hold in a
run twenty times as long; where the loss rises in it, the next best is tested in its turn. `rescore` goes further: it
compares the best value with others around it on runs of full length.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from amble import methods, replay
from amble import simulation as simulations
from amble.network import Network
from amble.problem import Problem
from amble.run import Run

PILOT_LAPS = 50  # visits per agent in each pilot run
LONG = 20  # how many times as long the chosen value must hold
POWERS = (-4.0, 2.0, 9)  # of ten, times the scale: from, to, how many
BEYOND_MAX = 4  # steps beyond the coarse grid's ends, where the best lies at one
FINE = (-0.5, -0.25, 0.25, 0.5)  # of the coarse grid's width
RISE = 1e-3  # of the fall from the start: more is a rise, less may be the last of an oscillation
ROUNDING = 1e-12  # of the loss itself: what is less than this is neither a rise nor a fall
EQUAL = 1e-6  # of the fall: full runs whose losses are this near to the lowest are equally good
HORIZONS = 4  # records of a pilot run: at a quarter, a half, three quarters and the end


class Score(NamedTuple):
    """How a pilot run did; the least is the best."""

    rises: bool
    loss: float
    start: float  # the loss before the first visit

    def is_above(self, low: float, share: float = RISE) -> bool:
        """Whether the loss is above `low` by more than this share of the fall from the start to there."""
        return not self.loss - low <= share * max(self.start - low, 0) + ROUNDING * (abs(low) + abs(self.start))


def tune(
    method: Any,
    problem: Problem,
    network: Network,
    *,
    laps: int = PILOT_LAPS,
    powers: tuple[float, float, int] = POWERS,
    long: int = LONG,
    reading: str | None = None,
    **options: Any,
) -> tuple[Any, dict[str, Any]]:
    """The method with its step or penalty chosen, and a record of what was tried; takes the options of `simulate`.

    `reading` names the model whose loss counts: "" is the tokens' mean, "_local" the mean of the agents' x_i.
    """
    names = [f.name for f in fields(method) if f.name in methods.positive(method)]
    if not names:
        return method, {}
    name = names[0]
    scale = scale_of(name, problem)
    hops = laps * problem.agents
    scores: dict[float, Score] = {}

    def pilot(value: float, hops: int) -> Score:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = replace(method, **{name: value})
            every = max(1, hops // HORIZONS // (problem.agents if methods.is_round(method) else 1))
            run = simulations.simulate(
                own, problem, network, hops=hops, every=every, optimum=False, progress=False, **options
            )
        return score(run, problem, reading or "")

    def pilot_score(power: float) -> Score:
        value = rounded(scale * 10**power)
        if value not in scores:
            scores[value] = pilot(value, hops)
        return scores[value]

    coarse = np.linspace(*powers).tolist()
    width = coarse[1] - coarse[0]
    best = min(coarse, key=pilot_score)
    for _ in range(BEYOND_MAX):
        if best not in (coarse[0], coarse[-1]):
            break
        coarse = [coarse[0] - width, *coarse] if best == coarse[0] else [*coarse, coarse[-1] + width]
        best = min(coarse, key=pilot_score)
    for part in FINE:
        pilot_score(best + part * width)
    record: dict[str, Any] = {
        "setting": name,
        "hops": hops,
        "tried": {f"{value:g}": loss if np.isfinite(loss) else None for value, (_, loss, _) in sorted(scores.items())},
        "rising": [f"{value:g}" for value, own in sorted(scores.items()) if own.rises],
        "refused": [],  # in a long run
    }  # a loss of None: diverged
    if reading is not None:
        record["reading"] = reading
    record["chosen"] = choose(record)
    while long > 1 and not all_refused(record):
        short, held = scores[record["chosen"]], pilot(record["chosen"], long * hops)
        if not held.rises and not held.is_above(short.loss):
            break
        record = refuse(record)
    return replace(method, **{name: record["chosen"]}), record


def rounded(value: float) -> float:
    return float(f"{value:.3g}")


def rescore(record: Mapping[str, Any], score_of: Callable[[float], Score], step: float, tries: int) -> dict[str, Any]:
    """The record with its choice made by at most so many runs of full length, whose scores `score_of` gives.

    They are of the pilot runs' best value, and of those one step lower and higher; on outwards, while the best is at an
    end; then, unless another is equally good, half a step and a quarter of a step around it. Of values that are equally
    good, the nearest to the pilot runs' best wins: that is the one that was fast early on. A value whose loss rises is
    refused.
    """
    middle = record["chosen"]
    scores: dict[float, Score] = {}

    def add(*values: float) -> None:
        for value in map(rounded, values):
            if len(scores) < tries and value not in scores:
                scores[value] = score_of(value)

    def rank(value: float) -> tuple[Any, ...]:
        own, equal = scores[value], value in equals()
        return (own.rises, not equal, 0.0 if equal else own.loss, abs(np.log(value / middle)), value)

    def equals() -> list[float]:
        falling = {value: own for value, own in scores.items() if not own.rises}
        low = min((own.loss for own in falling.values()), default=np.inf)
        return [value for value, own in falling.items() if not own.is_above(low, EQUAL)]

    add(middle, middle / step, middle * step)
    while len(scores) < tries and (best := min(scores, key=rank)) in (min(scores), max(scores)):
        add(best / step if best == min(scores) else best * step)
    for part in (0.5, 0.25):
        if len(equals()) == 1:
            best = min(scores, key=rank)
            add(best / step**part, best * step**part)
    after = {
        **record,
        "full": {f"{value:g}": own.loss if np.isfinite(own.loss) else None for value, own in sorted(scores.items())},
        "ranked": [f"{value:g}" for value in sorted(scores, key=rank)],
        "refused": [f"{value:g}" for value, own in sorted(scores.items()) if own.rises],
    }
    return {**after, "chosen": choose(after)}


def choose(record: Mapping[str, Any]) -> float:
    """The best value that has not been refused, of full runs where there are any; the best of the pilot runs where
    every one has."""
    order = sorted(
        (key in record["rising"], np.inf if loss is None else loss, key) for key, loss in record["tried"].items()
    )
    pilots = [key for _, _, key in order]
    left = [key for key in (*record.get("ranked", ()), *pilots) if key not in record["refused"]]
    return float((left or pilots)[0])


def refuse(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with the next best value chosen."""
    after = {**record, "refused": [*record["refused"], f"{record['chosen']:g}"]}
    return {**after, "chosen": choose(after)}


def all_refused(record: Mapping[str, Any]) -> bool:
    """Whether no value is left that was not refused; then the best of the pilot runs stays."""
    return f"{record['chosen']:g}" in record["refused"]


def scale_of(name: str, problem: Problem) -> float:
    """What the setting is measured in: a step in 1/L, a penalty in the mean curvature."""
    each = [problem.stacked] if problem.own is None else problem.own
    kind = "smoothness" if name == "alpha" else "curvature"
    values = np.concatenate([np.atleast_1d(np.asarray(getattr(f, kind, 1.0), np.float64)) for f in each])
    return float(1 / values.max() if name == "alpha" else values.mean())


def score(run: Run, problem: Problem, reading: str = "") -> Score:
    """The lowest sum_i f_i at a quarter, a half and the end of the run, and whether it is higher at the end.

    In gossip each agent's model is an answer, and their mean would hide how far apart they are: there it is the mean
    of the agents' losses.
    """
    records = run.local if reading else run.consensus
    start = float(problem.value(records[0]))
    if run.stopped == "diverged":
        return Score(True, np.inf, start)
    hops = run.recorded[-1]
    at = [int(np.searchsorted(run.recorded, hops * share, side="right")) - 1 for share in (0.25, 0.5, 1.0)]
    gossip = getattr(run.method, "hears", "mean") != "mean"
    with np.errstate(all="ignore"):
        sets = models_at(run, problem, [int(run.recorded[k]) for k in at]) if gossip else [records[[k]] for k in at]
        losses = [float(np.mean([float(problem.value(x)) for x in models])) for models in sets]
    if not np.isfinite(losses).all():
        return Score(True, np.inf, start)
    low = min(losses)
    return Score(Score(False, losses[-1], start).is_above(low), low, start)


def models_at(run: Run, problem: Problem, rounds: list[int]) -> list[Any]:
    """The agents' models after so many rounds. A run keeps the last ones only, so its rounds are replayed."""
    machine = replay.make("auto", run.method, problem, run.network, run.start)
    state, done, models = machine.start(), 0, []
    for count in rounds:
        state, done = machine.advance(state, run.schedule, done, count), count
        models.append(replace(run, state=state.on_numpy()).models)
    return models
