"""The fault simulator with surveys and with runs of three stages: what they end with is exact, and the same at all."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from amble.live.chaos.checkers import Broken
from amble.live.chaos.staged import NAMES, Course, StagedCore
from amble.live.chaos.world import World
from amble.live.core.end import End
from amble.live.core.message import Stop
from amble.live.core.protocol import Core
from amble.live.core.stages import CLOSING, OPENING, Stages
from amble.live.core.state import State as CoreState
from test_chaos import FEW, ForgetsToBury, GivesTwice, LeavesItsGifts, TellsNobody, planted

pytestmark = pytest.mark.long

CHUNK, CHUNKS = 20, 5
SEEDS_MAX = 200


def run(seed, kind, **bug):
    world = World(seed, FEW, trained=kind, **bug)
    world.run()
    return world


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_survey_is_the_exact_sum_of_those_inside_and_the_same_at_all(chunk):
    """Nobody is counted twice, the dead and who has left are not in it, and newcomers are (endings.py)."""
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        run(seed, "survey")


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_three_stages_end_with_one_model_and_the_sums_of_those_inside(chunk):
    """All that are left have one model, bit for bit, which is the optimum of the rows inside, and the sums of these."""
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        run(seed, "stages")


def test_faults_of_every_kind_happen_in_every_stage():
    worlds = [run(seed, "stages") for seed in range(100, 160)]
    kinds = sum((world.trouble.by_stage for world in worlds), Counter())
    wanted = ("crash", "death", "cut", "newcomer", "departure", "freeze", "question lost", "answer lost")
    assert {(stage, kind) for stage in NAMES for kind in wanted} <= kinds.keys()
    assert all(sum(world.checker.visited[stage] for world in worlds) > 500 for stage in NAMES)
    assert {world.training.kind for world in worlds} == {"full", "gifts", "tracked"}
    assert {world.settings.hops_max > 0 for world in worlds} == {True, False}
    assert any(world.checker.counted["unfit"] for world in worlds)


# --- bugs -----------------------------------------------------------------------------------------------------------


class KeepsTheFirstEnding(CoreState):
    """Another ending of a larger order does not replace the one that came first."""

    def stop(self, ending):
        if self.ending is None:
            super().stop(ending)


class TellsOnce(End):
    """Who does not answer is not told again."""

    def tell(self, now):
        super().tell(now)
        self.told |= {(to, stop.ending.order) for to, stop in self.state.asked.values() if isinstance(stop, Stop)}


class AnyToken(End):
    """The result is that of the newest token, not of the one that has converged."""

    def _stop(self, cause, sentence, m=None):  # noqa: ARG002
        super()._stop(cause, sentence)


class CalmAtSome(End):
    """A model is taken for converged while some agent that is inside was not met."""

    def _settled(self, parcel, hop):  # noqa: ARG002
        return True


class EndsInARecount(End):
    """A limit ends the training in a recount, and the result does not say so."""

    def look(self, now, m, hop, parcel):
        if 0 < self.settings.hops_max <= hop * self.settings.tokens and self.state.ending is None:
            self.at_a_limit("hops", "enough", m)
            flags = np.frombuffer(self.state.ending.result, "<f8").copy()
            flags[-self.settings.size :] = np.minimum(flags[-self.settings.size :], 1.0)
            self.state.persist({"stopped": self.state.ending._replace(result=flags.tobytes())})
        super().look(now, m, hop, parcel)


class NothingIsVoid(Stages):
    """What follows from an older result of a stage goes on."""

    def advance(self):
        before = self.all if hasattr(self, "all") and len(self.all) > 1 else ()
        for stage in before[:-1]:
            stage.order = stage.core.ending.order
        return super().advance()


class ForgetsEndedStages(Stages):
    """A stage that has ended does not answer."""

    def heard(self, now, stage, number, question):
        return super().heard(now, stage, number, question) if stage is self.last else []


class AllAddSums(Course):
    """One that is not in the model adds its sums to it."""

    def after(self, name, ending):
        plan = super().after(name, ending)
        if plan is None or plan.name != CLOSING:
            return plan
        inside = ending._replace(
            result=ending.result[: -8 * self.settings.size] + np.ones(self.settings.size).tobytes()
        )
        return plan._replace(objective=super().after(name, inside).objective)


class ExpectsTheAbsent(Course):
    """The training waits for who was not in the opening survey, and forgets to count it out."""

    def after(self, name, ending):
        plan = super().after(name, ending)
        if plan is None or name != OPENING:
            return plan
        return plan._replace(settings=replace(plan.settings, expected=None, silence_s=1e6))


def with_parts(stages=None, course=None):
    """A world's agents with other stages, or another course."""

    @dataclass
    class Buggy(StagedCore):
        def __post_init__(self):
            super().__post_init__()
            if course is not None:
                self.stages.course.__class__ = course
            if stages is not None:
                self.stages.__class__ = stages

    return Buggy


SURVEYS = {
    "gives twice": {"make_visits": GivesTwice},
    "no recount": {"make_visits": ForgetsToBury},
    "leaves its gifts": {"make_visits": LeavesItsGifts},
    "the end is not passed on": {"make_core": planted(state=TellsNobody)},
    "keeps the first ending": {"make_core": planted(state=KeepsTheFirstEnding)},
}
IN_CORES = {  # and the worlds that may show it
    "the end is not passed on": (planted(state=TellsNobody), lambda _: True),
    "keeps the first ending": (planted(state=KeepsTheFirstEnding), lambda _: True),
    "the result of any token": (planted(end=AnyToken), lambda world: world.settings.tokens > 1),
    "calm at some": (planted(end=CalmAtSome), lambda world: world.training.loss and not world.settings.hops_max),
    "ends in a recount": (planted(end=EndsInARecount), lambda world: world.settings.hops_max),
}
LOSSY = replace(FEW, loss=0.3, crash=0.02, cut=0.01, false_report=0.01, freeze=0.01)
IN_STAGES = {
    "nothing is void": with_parts(stages=NothingIsVoid),
    "forgets ended stages": with_parts(stages=ForgetsEndedStages),
    "all add sums": with_parts(course=AllAddSums),
    "expects the absent": with_parts(course=ExpectsTheAbsent),
}


def caught(kind, bug, staged_core=None, faults=FEW, shows=lambda _: True):
    """What the first seed that finds it says; None where none does."""
    for seed in range(SEEDS_MAX):
        world = World(seed, faults, trained=kind, **bug)
        if not shows(world):
            continue
        if staged_core is not None:
            world.make_core = partial(staged_core, make_core=Core)
        try:
            world.run()
        except Broken as broken:
            return str(broken)
    return None


@pytest.mark.parametrize("bug", SURVEYS)
def test_a_bug_in_surveys_is_caught_within_200_seeds(bug):
    assert caught("survey", SURVEYS[bug]) is not None


@pytest.mark.parametrize("bug", IN_CORES)
def test_a_bug_in_the_end_of_a_stage_is_caught_within_200_seeds(bug):
    make_core, shows = IN_CORES[bug]
    assert caught("stages", {"make_core": make_core}, shows=shows) is not None


@pytest.mark.parametrize("bug", IN_STAGES)
def test_a_bug_in_what_follows_a_stage_is_caught_within_200_seeds(bug):
    assert caught("stages", {}, IN_STAGES[bug]) is not None


def test_an_end_that_is_told_once_is_caught_where_many_messages_are_lost():
    """ "each neighbour is told until it has answered" """
    assert caught("stages", {"make_core": planted(end=TellsOnce)}, faults=LOSSY) is not None
