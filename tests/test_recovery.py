"""The protocol's last resorts: tokens that nobody has, journals that are lost, ends that were not heard.

Sentences in quotation marks are those of the theory of operation at the top of live/protocol.py.
"""

from pathlib import Path

import numpy as np

from amble.live.control import glance, view
from amble.live.core.message import Seek
from amble.live.status import Status
from linked_cores import NAMES, PATIENCE_S, SILENCE_S, Link


def test_a_token_whose_first_agent_died_with_it_is_issued_from_the_beginning():
    """ "... or, if neither it nor a neighbour that answers ever had the token, the token as it began." """
    link = Link()
    assert link.take() is not None  # it never arrives
    del link.cores["a"]
    link.down("b", "a")
    link.down("c", "a")
    link.wait(2 * SILENCE_S)
    assert {ask.to for _, ask in link.asks if isinstance(ask.question, Seek)} == {"b", "c"}
    while link.deliver(Seek):
        pass
    link.wait(PATIENCE_S)
    assert {report.epoch.number for _, report in link.said("reissue")} == {1}
    link.walk(8)
    newest = max((link.disks[name]["custody/0"].message for name in "bc"), key=lambda message: message.hop)
    given = [link.disks[name]["holder"].agent.given.v[0] for name in "bc"]
    assert not newest.payload.recounting
    np.testing.assert_allclose(link.visits.estimate(newest.payload), np.mean(given), rtol=1e-15)


def test_one_who_seeks_a_token_hears_that_the_run_has_ended():
    link = Link(stall_s=1e6)
    link.walk(4)
    link.do("a", link.cores["a"].halt(link.now, "seconds", "enough"))
    link.asks.clear()  # nobody hears it
    link.wait(2 * SILENCE_S, "b")
    link.deliver(Seek)
    assert link.cores["b"].stopped == "enough"


def test_one_that_is_alone_begins_no_token():
    """ "... if neither it nor a neighbour that answers ever had the token." """
    link = Link()
    link.take()
    link.down("b", "a", "c")
    for _ in range(5):
        link.wait(2 * SILENCE_S, "b")
        link.wait(PATIENCE_S, "b")
    assert link.said("reissue") == []


def test_one_that_lost_its_journal_is_not_counted_twice():
    """ "An agent also begins one if its journal knows less of its visits than the token does." """
    link = Link()
    link.walk(10)
    link.disks["c"].clear()
    link.begin("c")
    link.meet("c")
    link.walk(7)
    assert [name for name, _ in link.said("recount")] == ["c"]
    newest = max((link.disks[name]["custody/0"].message for name in NAMES), key=lambda message: message.hop)
    given = [link.disks[name]["holder"].agent.given.v[0] for name in NAMES]
    assert float(newest.payload.members) == 3
    assert not newest.payload.recounting
    np.testing.assert_allclose(link.visits.estimate(newest.payload), np.mean(given), rtol=1e-14)


def test_whose_data_the_model_does_not_have_is_known_and_said():
    link = Link()
    link.walk(1)  # a, then b
    assert link.cores["b"].missing == ("c",)
    link.walk(7)
    assert all(core.missing == () for core in link.cores.values())
    for name in ("a", "b"):
        link.down(name, "c")
    link.wait(PATIENCE_S + 0.1, "a", "b")
    link.asks = [asked for asked in link.asks if asked[1].to != "c"]
    link.walk(60)
    assert {link.cores[name].missing for name in ("a", "b")} == {("c",)}
    said = Status(name="a", state="ended", visits=9, stopped="enough", missing=("c",))
    shown = view.sentences(glance.overview({"a": said}, {"a": Path("a")}, 0.0))
    assert "the model does not have the data of c" in shown
