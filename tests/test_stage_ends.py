"""When a run or a stage ends, and whom it waits for: cores joined in memory (core/end.py)."""

import numpy as np
import pytest

from amble.live.chaos.tally import Mean
from amble.live.core.effects import Settings
from amble.live.core.end import RECOUNTING
from amble.live.core.message import Leaving, Passed, Seek, Stop, Token
from amble.live.core.protocol import Core
from amble.live.core.stages import Result
from amble.live.core.visits import GiftVisits
from amble.methods.survey import Part, Survey
from linked_cores import NAMES, PATIENCE_S, SILENCE_S, Link

PLACES = len(NAMES)
STALL_S = Settings.stall_s


def steady(**settings):
    """Agents whose numbers never change, so that the model is calm once all have given."""
    return Link(method=Mean(1, settle=1), tolerance=1e-12, result=1 + PLACES, **settings)


def ended(link):
    return {name: core.ending.cause for name, core in link.cores.items() if core.ending}


def survey(there, patience_s=PATIENCE_S, silence_s=SILENCE_S, gather_s=None):
    """A survey of a, b and c, of whom these are there; it follows another stage, unless it gathers."""
    link = Link.__new__(Link)
    expected = np.ones(PLACES, bool)
    link.settings = Settings(
        NAMES, 1, 1, ({"a": "b", "b": "c", "c": "a"},), patience_s, silence_s=silence_s, tolerance=1e-12,
        result=1 + PLACES, expected=expected, gather_s=gather_s,
    )  # fmt: skip
    link.visits = GiftVisits(Survey(), 1, PLACES, 1e-12)
    link.disks, link.lines, link.holders = {name: {} for name in NAMES}, {name: [] for name in NAMES}, {}
    link.asks, link.reports, link.replies, link.now, link.number, link.cores = [], [], {}, 0.0, 0, {}
    for name in there:
        near, part = tuple(other for other in NAMES if other != name), Part(np.array([1.0 + NAMES.index(name)]))
        link.cores[name] = Core(name, near, link.settings, link.visits, part, rows={})
        link.do(name, link.cores[name].start(link.now))
    for name in there:
        for other in there:
            link.do(name, link.cores[name].peer(link.now, other, True))
    return link


def pass_time(link, until_s, step_s=0.25):
    """Tokens walk, a few hops a step, until the stage ends or this time has come; when it was."""
    while link.now < until_s and not ended(link):
        for _ in range(4):
            link.deliver(Token)
        while link.deliver(Passed) or link.deliver(Seek) or link.deliver(Leaving):
            pass
        link.wait(step_s)
    while link.deliver(Stop):
        pass
    return link.now


# --- with which result ----------------------------------------------------------------------------------------------


def test_the_result_is_that_of_the_token_that_has_converged():
    """ "that of token m, because of which it ends, or of the newest here" """
    link = Link(tokens=2, method=Mean(2), result=1 + PLACES)
    link.walk(9)
    core = link.cores["a"]
    older, newer = sorted((core.rows[f"custody/{m}"].message for m in (0, 1)), key=core.end._order)
    assert not np.array_equal(link.visits.result(older.payload), link.visits.result(newer.payload))
    core.end._stop("tolerance", "it has converged", older.token)
    np.testing.assert_array_equal(np.frombuffer(core.ending.result, "<f8"), link.visits.result(older.payload))


def test_a_model_is_not_calm_while_an_agent_in_it_is_away():
    """ "with each of them among these" """
    link = steady()
    link.walk(3)  # all have given, and the model is what it will be
    for name in ("a", "b"):
        link.down(name, "c")
    link.walk(30)
    assert {name for name, _ in link.visited()[5:]} == {"a", "b"}
    assert not ended(link)
    for name in ("a", "b"):
        link.do(name, link.cores[name].peer(link.now, "c", True))
    link.walk(10)
    assert ended(link)


@pytest.mark.parametrize("limit", ["hops", "seconds"])
def test_a_limit_waits_for_a_recount(limit):
    """ "a model that is older than whose data is in it would have rows of the dead, and lack those of newcomers" """
    link = Link(method=Mean(1, settle=1), result=1 + PLACES, hops_max=6 if limit == "hops" else 0)
    link.walk(4)
    token = link.take(Token)  # for c, which dies with it
    assert (token[0], token[1].to) == ("b", "c")
    link.down("a", "c")
    link.down("b", "c")
    link.wait(PATIENCE_S + 0.1, "b")
    assert [report.buried for _, report in link.said("reissue")] == [("c",)]
    for _ in range(4):
        if limit == "seconds":
            link.do("b", link.cores["b"].halt(link.now, "seconds", "1 s is over"))
        assert not (ended(link) and link.visited()[-1][1] < 7)  # at hops 6 and 7 a and b give again
        link.walk(1)
    while link.deliver(Stop):
        pass
    result = Result.of(link.cores["a"].ending, PLACES)
    assert result.inside.tolist() == [True, True, False]
    assert not result.recounting
    np.testing.assert_allclose(result.numbers, [np.mean([1.0, 2.0]) + 1.0])  # without what c gave


def test_a_recount_that_does_not_end_is_said_in_the_result():
    """The time is over for long, and the last token that was here was being recounted."""
    link = Link(method=Mean(1, settle=1), result=1 + PLACES)
    link.walk(4)
    token = link.take(Token)
    name = token[0]
    link.down(name, "c")
    link.wait(PATIENCE_S + 0.1, name)
    core = link.cores[name]
    core.halt(link.now, "seconds", "1 s is over")
    assert core.ending is None
    core.halt(link.now + SILENCE_S, "seconds", "1 s is over")
    result = Result.of(core.ending, PLACES)
    assert result.recounting
    assert set(np.frombuffer(core.ending.result, "<f8")[-PLACES:]) <= {0.0, RECOUNTING}
    np.testing.assert_allclose(result.numbers, [np.mean([1.0, 2.0, 3.0]) + 1.0])  # with what c gave
    assert not result.inside[2]


# --- who is told ----------------------------------------------------------------------------------------------------


def test_who_does_not_answer_is_told_of_the_end_again():
    """ "each neighbour is told until it has answered" """
    link = Link(hops_max=3, stall_s=STALL_S)
    link.walk(2)
    lost = [link.take(Stop), link.take(Stop)]
    assert {ask.to for _, ask in lost} == {"a", "b"}
    assert link.take(Stop) is None
    link.answer(lost[0], None)  # the link broke: soon again; the other message just vanished
    link.wait(Settings.retry_max_s, "c")
    assert link.take(Stop)[1].to == lost[0][1].to
    link.wait(STALL_S, "c")
    assert {link.take(Stop)[1].to, link.take(Stop)[1].to} == {"a", "b"}
    link.asks.clear()
    link.wait(STALL_S, "c")
    while link.deliver(Stop):
        pass
    link.wait(100 * STALL_S, "c")
    assert link.take(Stop) is None


# --- whom it waits for ----------------------------------------------------------------------------------------------


def test_a_survey_after_another_stage_gives_the_dead_a_while_to_come_back():
    """ "So one that its neighbours have counted out is dead or has failed, and gets `stall_s` to come back." """
    link = survey(there=("a", "b"))
    ended_s = pass_time(link, SILENCE_S)
    assert set(ended(link).values()) == {"tolerance"}
    assert STALL_S <= ended_s < STALL_S + PATIENCE_S + 5.0
    result = Result.of(link.cores["a"].ending, PLACES)
    assert (result.numbers.tolist(), result.inside.tolist()) == ([3.0], [True, True, False])


def test_an_opening_survey_waits_for_who_has_not_started():
    link = survey(there=("a", "b"), gather_s=60.0)
    assert 60.0 <= pass_time(link, SILENCE_S) < 61.0
    assert ended(link)


def test_a_token_whose_first_agent_has_died_since_the_last_stage_is_begun_by_a_neighbour():
    """ "So where that one is a neighbour, and is down, the token may well have gone with it." """
    link = survey(there=("b", "c"))
    ended_s = pass_time(link, SILENCE_S)
    assert ended_s < STALL_S + 4 * PATIENCE_S + 5.0
    assert Result.of(link.cores["b"].ending, PLACES).numbers.tolist() == [5.0]


def test_who_leaves_before_a_token_has_come_is_met_first_and_not_waited_for():
    """ "So one that no token has met yet waits for them too, and lets each carry the news that it has left." """
    link = steady(silence_s=SILENCE_S)
    link.do("c", link.cores["c"].leave(link.now, 30.0))
    assert link.take(Leaving) is None
    assert link.cores["c"].left is None
    assert pass_time(link, SILENCE_S) < 10.0
    assert link.cores["c"].left.all_out
    assert Result.of(link.cores["a"].ending, PLACES).inside.tolist() == [True, True, False]


def test_who_leaves_and_has_no_neighbour_does_not_wait():
    link = steady()
    link.down("c", "a", "b")
    link.do("c", link.cores["c"].leave(link.now, 30.0))
    assert link.cores["c"].left is not None


@pytest.mark.parametrize("weigh", ["scalar", "agents"])
def test_who_never_came_is_counted_out_also_where_nobody_near_knows_it(weigh):
    """ "and who was never met, once the run no longer waits for it": d is a neighbour of c alone, who never came."""
    link = Link(("a", "b", "c", "d"), method=Mean(1, settle=1, weigh=weigh), tolerance=1e-12, silence_s=20.0)
    near = {"a": ("b",), "b": ("a", "c")}
    link.asks, link.reports, link.disks = [], [], {name: {} for name in link.disks}
    link.cores = {
        name: Core(name, near[name], link.settings, link.visits, 1.0 + k, rows={}) for k, name in enumerate(near)
    }
    for name, other in (("a", "b"), ("b", "a")):
        link.do(name, link.cores[name].start(link.now))
        link.do(name, link.cores[name].peer(link.now, other, True))
    pass_time(link, 60.0)
    assert set(ended(link).values()) == {"tolerance"}
    parcel = link.cores["a"].rows["custody/0"].message.payload
    np.testing.assert_allclose(link.visits.estimate(parcel), [2.5])  # the mean of 2 and 3, of two agents
    assert link.cores["a"].missing == ("c", "d")
