"""What an agent says that it waits for, and until when, is what its protocol then does."""

import pytest

from amble.live.agent.waiting import waits
from amble.live.core.message import Accepted, Probe
from linked_cores import PATIENCE_S, SILENCE_S, Link

STALL_S, AHEAD_S = 5.0, 1e9  # how far the clock on the wall is ahead of the agent's own


def waits_of(link, name):
    """Its waits, with times on its own clock."""
    found = waits(link.cores[name], link.now, link.now + AHEAD_S)
    return [
        (wait.why, wait.whom, wait.token, wait.since_s - AHEAD_S, wait.until_s and wait.until_s - AHEAD_S)
        for wait in found
    ]


def handed(link, taken=True):
    """Token 0 from a to b, who takes it, or does not answer."""
    asked = link.take()
    assert (asked[0], asked[1].to) == ("a", "b")
    if taken:
        link.answer(asked, Accepted())


def until(link, name, until_s):
    """Just before that time nothing happens; then something does."""
    link.wait(until_s - link.now - 1e-3, name)
    before = len(link.reports), len(link.asks)
    link.wait(2e-3, name)
    return link.reports[before[0] :], link.asks[before[1] :]


def test_short_waits_are_the_usual_way_of_a_token():
    link = Link(stall_s=STALL_S)
    handed(link)
    link.wait(0.5)
    assert waits_of(link, "a") == waits_of(link, "b") == []


@pytest.mark.parametrize(("stall_s", "taken"), [(5.0, True), (5.0, False), (1.5, False)])
def test_one_that_is_down_is_waited_for_until_its_token_is_reissued(stall_s, taken):
    link = Link(stall_s=stall_s)
    handed(link, taken)
    link.down("a", "b")
    link.wait(1.0, "a")
    until_s = min(PATIENCE_S, stall_s)
    assert waits_of(link, "a") == [("down", ("b",), 0, 0.0, pytest.approx(until_s))]
    assert not link.said("reissue")
    reports, _ = until(link, "a", until_s)
    assert "reissue" in [report.kind for _, report in reports]
    assert waits_of(link, "a") == []


def test_a_method_that_cannot_reissue_waits_without_a_bound():
    link = Link(exact=False, stall_s=STALL_S)
    handed(link)
    link.down("a", "b")
    link.wait(100.0, "a")
    assert waits_of(link, "a") == [("down", ("b",), 0, 0.0, None)]


def test_an_answer_is_waited_for_until_the_token_goes_round():
    link = Link(stall_s=STALL_S)
    handed(link, taken=False)
    link.wait(1.0, "a")
    assert waits_of(link, "a") == [("answer", ("b",), 0, 0.0, pytest.approx(STALL_S))]
    reports, _ = until(link, "a", STALL_S)
    assert {report.kind for _, report in reports} == {"doubt", "reissue"}


def test_one_that_keeps_a_token_is_asked_at_the_said_time_whether_it_works():
    link = Link(stall_s=STALL_S)
    handed(link)
    link.wait(1.0, "a")
    ((why, whom, token, since_s, until_s),) = waits_of(link, "a")
    assert (why, whom, token, since_s) == ("passing", ("b",), 0, 0.0)
    _, asks = until(link, "a", until_s)
    assert [(ask.to, type(ask.question)) for _, ask in asks] == [("b", Probe)]


def test_an_agent_that_is_alone_waits_for_any_neighbour():
    link = Link(stall_s=STALL_S)
    link.down("b", "a", "c")
    link.hear(link.take())
    link.wait(1.0, "b")
    assert waits_of(link, "b") == [("neighbour", (), 0, 0.0, None)]


def test_a_run_that_ends_when_its_model_converges_waits_for_those_never_met():
    link = Link(tolerance=1e-9, stall_s=1000.0)
    link.walk(1)  # a, then b
    link.wait(1.0)
    assert ("meeting", ("c",), None, 0.0, SILENCE_S) in waits_of(link, "b")
    link.walk(3)
    assert "meeting" not in [wait[0] for wait in waits_of(link, "b")]
