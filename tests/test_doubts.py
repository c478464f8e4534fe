"""Agents that are up and do not work: the others go on without them, say so, and take them in again.

All in the simulated world (live/faults/world.py), in virtual seconds, with nothing else failing.
"""

import pytest

from amble.live.doubts import Doubts
from amble.live.effects import Custody
from amble.live.faults.kinds import MOMENTS, Faults
from amble.live.faults.world import STALL_S, World
from amble.live.message import Accepted, Refused, Token
from linked_cores import Link

pytestmark = pytest.mark.long

NOTHING = Faults(**dict.fromkeys((*MOMENTS, "loss", "double", "late", "between", "torn", "late_start"), 0.0))
GREY_S = 60.0


class Scene:
    """A complete network of five agents, all well."""

    def __init__(self, trained="gifts", seed=1):
        seed = next(s for s in range(seed, 200) if _fits(World(s, NOTHING, trained=trained)))
        self.world, self.said = World(seed, NOTHING, trained=trained), []
        names = tuple(self.world.nodes)
        self.world.links = [(one, other) for i, one in enumerate(names) for other in names[i + 1 :]]
        self.world.near = {name: tuple(other for other in names if other != name) for name in names}
        for name in names:
            self.world.begin(name)
        self.world.until(5.0)

    def visits(self, for_s):
        before = self.world.checker.counted["visit"]
        self.world.until(self.world.now + for_s)
        return self.world.checker.counted["visit"] - before

    def wrong(self):
        self.world.healed_s = self.world.now
        self.world.until(self.world.now + 60 * STALL_S)
        return self.world.checker.wrong()


def _fits(world):
    return len(world.nodes) == 5 and world.settings.tokens == 2 and not (
        world.settings.hops_max or world.settings.tolerance
    )  # fmt: skip


@pytest.mark.parametrize("trained", ["gifts", "tracked", "full"])
@pytest.mark.parametrize("grey", ["hangs", "keeps", "refuses"])
def test_one_grey_agent_does_not_stop_everybody(grey, trained):
    """protocol.py: "A token that it does not answer for within `stall_s` ... counts as lost: it is issued again round
    that neighbour"."""
    scene = Scene(trained)
    well = scene.visits(10.0) / 10
    scene.world.turn_grey("a1", grey)
    scene.visits(GREY_S / 2)  # one after the other finds it out
    assert scene.visits(GREY_S / 2) / (GREY_S / 2) > well / 4
    assert scene.world.checker.counted["doubt"] > 0
    scene.world.recover("a1")
    assert scene.wrong() == ""


@pytest.mark.parametrize("trained", ["gifts", "tracked", "full"])
@pytest.mark.parametrize("way", [("a0", "a1"), ("a1", "a0")])
def test_a_link_that_is_dead_one_way_does_not_stop_everybody(way, trained):
    scene = Scene(trained)
    well = scene.visits(10.0) / 10
    scene.world.one_way(*way, noticed_s=None)
    scene.visits(GREY_S / 2)
    assert scene.visits(GREY_S / 2) / (GREY_S / 2) > well / 2
    scene.world.both_ways(*way)
    assert scene.wrong() == ""


def test_what_a_copied_agent_gave_is_out_once_the_copy_is_gone():
    for journal in (False, True):
        scene = Scene("full")
        scene.world.trouble.done["copied agent"] = 1
        scene.world.clone("a1", journal, noticed_s=2.0)
        scene.visits(20.0)
        scene.world.end_clone("a1")
        assert scene.wrong() == ""


def test_the_token_goes_round_who_did_not_answer_and_the_status_names_it():
    link = Link(stall_s=3.0)
    asked = link.take(Token)
    assert asked[1].to == "b"
    link.wait(2.9, "a")
    assert not link.said("doubt")
    link.wait(0.2, "a")
    assert [report.words for _, report in link.said("doubt")] == ["b has not answered for 3 s"]
    again = link.take(Token)
    assert again[1].to == "c"
    assert again[1].question.epoch.number == 1
    assert link.cores["a"].doubts.of["b"].why == "has not answered for 3 s"


def test_where_there_is_no_other_way_it_is_waited_for():
    """ "... if there is another way, or else waited for": epochs are not used up."""
    link = Link(("a", "b"), stall_s=3.0)
    for _ in range(50):
        link.wait(1.0, "a")
    assert link.said("doubt")
    assert not link.said("reissue")
    custody: Custody = link.disks["a"]["custody/0"]
    assert custody.to == "b"


def test_a_refusal_is_said_once_and_the_second_time_at_once():
    link = Link(stall_s=3.0)
    for _ in range(40):
        link.wait(0.2, "a")
        while asked := link.take(Token):
            link.answer(asked, Refused("no") if asked[1].to == "b" else None)
            if asked[1].to == "c":
                break
    assert len(link.said("refused")) == 1
    assert link.cores["a"].doubts.of["b"].why == "refuses tokens (no)"


def test_one_that_works_again_is_no_longer_in_doubt():
    link = Link(stall_s=3.0)
    lost = link.take(Token)
    link.wait(3.1, "a")
    assert "b" in link.cores["a"].doubts.of
    link.answer(lost, Accepted())  # late, and of an epoch that is over
    token = lost[1].question
    link.hear(("b", lost[1]._replace(to="a", question=token._replace(sender="b", hop=token.hop + 1))))
    assert "b" not in link.cores["a"].doubts.of


def test_slow_answers_are_learnt_from():
    """doubts.py: "Answers that take long show that visits do: then everybody gets more time." """
    doubts = Doubts(10.0)
    doubts.answered(8.0)
    assert doubts.limit_s(taken=False) == 24.0
    assert doubts.limit_s(taken=True) == 72.0
    doubts.add(0.0, "b", "has not answered")
    first = doubts.of["b"].until_s
    doubts.add(first, "b", "has not answered")
    assert doubts.of["b"].until_s - first == 2 * first
    assert doubts.now(first) == {"b"}
    doubts.works("b")
    assert doubts.now(first) == set()


def test_one_late_answer_does_not_make_everybody_wait():
    """doubts.py: "it counts for no more than the limit that it missed, and is forgotten as others come sooner"."""
    doubts = Doubts(10.0)
    doubts.answered(3600.0)  # a disk that hung for an hour
    assert doubts.limit_s(taken=False) == 30.0
    for _ in range(300):
        doubts.answered(0.01)
    assert doubts.limit_s(taken=False) == 10.0
