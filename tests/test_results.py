"""Stages that end with a result: all agents have the same one in the end, whoever ends the stage, and whenever."""

import numpy as np
import pytest

from amble.live.chaos.tally import _number
from amble.live.core.effects import Ask
from amble.live.core.message import Ended, Ending, Epoch, Seek, Stop
from amble.live.core.visits import visits_for
from amble.methods.survey import Part, Survey
from linked_cores import NAMES, Link

PLACES = len(NAMES)


def numbers(ending):
    return np.frombuffer(ending.result, "<f8")


def endings(link):
    return {name: link.disks[name].get("stopped") for name in NAMES}


def test_the_result_has_the_model_and_whose_data_is_in_it():
    """ "If another stage follows, the ending carries a `result`" """
    link = Link(tolerance=1e-12, result=1 + PLACES)
    link.walk(200)
    while link.deliver(Stop):
        pass
    ends = endings(link)
    assert len(set(ends.values())) == 1
    # the mean of 1, 2 and 3, each with what its tenth gift adds to it (chaos/tally.py); all inside
    np.testing.assert_allclose(numbers(ends["a"]), [np.mean([_number(k, 10.0, 10) for k in (1.0, 2.0, 3.0)]), 1, 1, 1])


@pytest.mark.parametrize("first", ["a", "c"])
def test_of_two_endings_the_larger_order_counts_everywhere(first):
    """ "where two agents end the run at the same time, the ending of the larger order replaces the other" """
    link = Link(result=1 + PLACES)
    link.walk(4)
    second = "c" if first == "a" else "a"
    for name in (first, second):
        link.do(name, link.cores[name].halt(link.now, "seconds", f"ended by {name}"))
    ends = endings(link)
    larger = max((ends["a"], ends["c"]), key=lambda ending: ending.order)
    assert ends["a"].order != ends["c"].order
    while link.deliver(Stop):
        pass
    assert set(endings(link).values()) == {larger}


def test_who_asks_after_the_end_is_told_the_result():
    """ "whoever knows only the smaller one is told": an answer is too short for a result, so it comes as a question."""
    link = Link(tolerance=1e-12, result=1 + PLACES)
    link.walk(200)
    link.asks = [asked for asked in link.asks if asked[1].to != "a" or not isinstance(asked[1].question, Stop)]
    while link.deliver(Stop):
        pass
    link.disks["a"].pop("stopped", None)
    link.begin("a")
    answer = link.hear(("a", Ask(1, "b", Seek(0, "a"))))
    assert isinstance(answer, Ended)
    assert not answer.ending.result
    link.answer(("a", Ask(1, "b", Seek(0, "a"))), answer)
    assert "stopped" not in link.disks["a"]  # not before it has the result
    link.deliver(Stop)
    assert endings(link)["a"] == endings(link)["b"]


def test_an_end_without_a_result_becomes_one_with_that_of_who_hears_it():
    """One that no token has come to ends with nothing, and the others with what they have."""
    link = Link(result=1 + PLACES)
    link.walk(1)  # by a and b
    ended = link.cores["c"].halt(link.now, "asked", "it was asked to")
    link.do("c", ended)
    assert not endings(link)["c"].result
    while link.deliver(Stop):
        pass
    ends = endings(link)
    assert len(set(ends.values())) == 1
    assert ends["c"].result


def test_divergence_has_no_result():
    link = Link(result=1 + PLACES)
    link.hear(("b", Ask(1, "a", Stop(Ending("diverged", "noticed by b"), "b"))))
    while link.deliver(Stop):
        pass
    assert {ending.result for ending in endings(link).values()} == {b""}


def test_who_is_awaited_is_inside_only_while_the_account_is_recounted():
    """Agents that a recount has not met in time give later: until then nothing of them is in the ledgers."""
    visits = visits_for(Survey(), 1, PLACES)
    holders = [visits.holder(Part(np.array([k + 1.0]))) for k in range(PLACES)]
    parcel, hop = visits.parcel(0), 0
    for k in (0, 1, 2, 0):
        hop += 1
        part = Part(np.array([k + 1.0]))
        holders[k], _, parcel = visits.visit(part, holders[k], visits.share(), parcel, k, hop, True)
    parcel = visits.recount(parcel, Epoch(1, 0), np.zeros(PLACES), holders[0])
    assert visits.inside(parcel).all()
    while parcel.recounting:  # by two agents alone
        for k in (0, 1):
            hop += 1
            part = Part(np.array([k + 1.0]))
            holders[k], _, parcel = visits.visit(part, holders[k], visits.share(), parcel, k, hop, True)
    assert visits.result(parcel).tolist() == [3.0, 1, 1, 0]


def test_a_survey_does_not_wait_for_an_agent_that_has_left():
    visits = visits_for(Survey(), 1, PLACES)
    holder = visits.holder(Part(np.ones(1)))
    _, _, parcel = visits.leave(holder, visits.share(), visits.parcel(0), 1, 1, True)
    assert visits.counted(parcel).tolist() == [False, True, False]
    assert not visits.inside(parcel).any()
