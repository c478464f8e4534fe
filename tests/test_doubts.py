"""Agents that are up and do not work: the others go on without them, say so, and take them in again.

All in the simulated world (live/faults/world.py), in virtual seconds, with nothing else failing.
"""

import pytest

from amble.live.chaos.kinds import MOMENTS, Faults
from amble.live.chaos.world import STALL_S, World
from amble.live.core.doubts import Doubts
from amble.live.core.effects import Custody
from amble.live.core.message import Accepted, Passed, Probe, Refused, Token
from linked_cores import Link

pytestmark = pytest.mark.long

NOTHING = Faults(**dict.fromkeys((*MOMENTS, "loss", "double", "late", "between", "torn", "late_start"), 0.0))
GREY_S = 60.0


class Scene:
    """A complete network, or a ring, of agents that are all well."""

    def __init__(self, trained="gifts", agents=5, complete=True):
        seed = next(s for s in range(400) if _fits(World(s, NOTHING, trained=trained, agents=agents)))
        self.world = World(seed, NOTHING, trained=trained, agents=agents)
        names = tuple(self.world.nodes)
        ring = {tuple(sorted(pair)) for pair in zip(names, names[1:] + names[:1], strict=True)}
        pairs = [(one, other) for i, one in enumerate(names) for other in names[i + 1 :]]
        self.world.links.pairs = [pair for pair in pairs if complete or tuple(sorted(pair)) in ring]
        self.world.trouble.pace = 4.0  # what is waited for are stalls, which last far longer than messages even so
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
    return world.settings.tokens == 2 and not (world.settings.hops_max or world.settings.tolerance)


@pytest.mark.parametrize("trained", ["gifts", "tracked", "full"])
@pytest.mark.parametrize("grey", ["hangs", "keeps", "refuses"])
def test_one_grey_agent_does_not_stop_everybody(grey, trained):
    """protocol.py: "A token counts as lost if the neighbour does not answer for it within `stall_s`"."""
    scene = Scene(trained)
    well = scene.visits(10.0) / 10
    scene.world.turn_grey("a1", grey)
    scene.visits(GREY_S / 2)  # one after the other finds it out
    assert scene.visits(GREY_S / 2) / (GREY_S / 2) > well / 3
    assert scene.world.checker.counted["doubt"] > 0
    scene.world.recover("a1")
    assert scene.wrong() == ""


@pytest.mark.parametrize("grey", ["hangs", "keeps", "refuses"])
def test_a_grey_agent_that_lasts_costs_many_agents_next_to_nothing(grey):
    """doubts.py: "it gets no token before it has answered, nor before a time is over that doubles with each
    failure"."""
    scene = Scene(agents=20)
    well = scene.visits(10.0) / 10
    scene.world.turn_grey("a1", grey)
    scene.visits(120.0)
    issued = scene.world.checker.counted["reissue"]
    assert scene.visits(60.0) / 60 > 0.7 * well
    assert scene.world.checker.counted["reissue"] - issued < 40
    scene.world.recover("a1")
    assert scene.wrong() == ""


@pytest.mark.parametrize("complete", [True, False], ids=["complete", "ring"])
@pytest.mark.parametrize("slow_s", [1.5, 3.0, 8.0])
def test_a_healthy_agent_that_is_slow_is_counted_in(slow_s, complete):
    """doubts.py: "A neighbour whose answers take long has long visits, so it gets more time." """
    scene = Scene(agents=6, complete=complete)
    scene.world.nodes["a2"].slow_s = slow_s
    scene.visits(300.0)
    issued = scene.world.checker.counted["reissue"]
    scene.visits(150.0)
    assert scene.world.checker.counted["reissue"] - issued <= 2
    place = scene.world.settings.indices["a2"]
    newest = max(
        (node.disk[f"sight/{m}"], node.disk[f"custody/{m}"].message.payload)
        for m in (0,) for node in scene.world.nodes.values() if f"sight/{m}" in node.disk
    )[1]  # fmt: skip
    assert newest.token.account.inside[place]


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
    assert link.cores["a"].neighbours.doubts.of["b"].why == "has not answered for 3 s"


def test_where_there_is_no_other_way_it_is_waited_for():
    """ "If there is no other way for the token, it waits": epochs are not used up."""
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
    assert link.cores["a"].neighbours.doubts.of["b"].why == "refuses tokens (no)"


def test_one_that_works_again_is_no_longer_in_doubt():
    link = Link(stall_s=3.0)
    lost = link.take(Token)
    link.wait(3.1, "a")
    assert "b" in link.cores["a"].neighbours.doubts.of
    link.answer(lost, Accepted())  # late, and of an epoch that is over
    token = lost[1].question
    link.hear(("b", lost[1]._replace(to="a", question=token._replace(sender="b", hop=token.hop + 1))))
    assert "b" not in link.cores["a"].neighbours.doubts.of


def test_slow_answers_are_learnt_from():
    doubts = Doubts(10.0)
    doubts.answered("b", 8.0)
    assert doubts.limit_s("b") == 24.0
    assert doubts.limit_s("b", taken=True) == 72.0
    assert doubts.limit_s("c") == 10.0


def test_one_late_answer_does_not_make_everybody_wait():
    """doubts.py: "it counts for no more than twice the limit that it missed"."""
    doubts = Doubts(10.0)
    doubts.answered("b", 3600.0)  # a disk that hung for an hour
    assert doubts.limit_s("b") == 60.0
    for _ in range(300):
        doubts.answered("b", 0.01)
    assert doubts.limit_s("b") == 10.0


def test_one_in_doubt_is_tried_again_once_it_says_that_it_works_and_not_at_once():
    doubts = Doubts(10.0)
    assert doubts.add(0.0, "b", "has not answered")
    assert doubts.asks(9.0) == []
    assert doubts.asks(10.0) == ["b"]
    assert doubts.now(1000.0) == {"b"}
    doubts.said("b", works=True)
    assert doubts.now(19.0) == {"b"}
    assert doubts.now(20.0) == set()
    assert not doubts.add(20.0, "b", "has not answered")  # which is no news
    doubts.said("b", works=True)
    assert doubts.now(59.0) == {"b"}
    assert doubts.now(60.0) == set()
    for _ in range(2000):
        doubts.add(60.0, "b", "has not answered")
    assert doubts.of["b"].until_s == 60.0 + 640.0
    doubts.works("b")
    assert doubts.now(60.0) == set()


def test_who_has_taken_a_token_is_asked_before_it_is_doubted():
    link = Link(stall_s=3.0)
    link.answer(link.take(Token), Accepted())  # b has it, or so it says
    link.wait(9.1, "a")
    asked = link.take(Probe)
    assert asked[1].to == "b"
    link.answer(asked, Accepted())
    link.wait(8.0, "a")
    assert not link.said("doubt")
    link.wait(1.1, "a")
    link.answer(link.take(Probe), Refused("it has had token 0 for 18 s"))
    assert [report.words for _, report in link.said("doubt")] == ["b keeps tokens"]
    assert link.take(Token)[1].to == "c"


def test_one_that_cannot_hand_on_says_so_and_one_that_can_has_written_to_its_disk():
    link = Link(stall_s=3.0)
    asked = ("c", link.asks[0][1]._replace(to="a", question=Probe("c")))
    assert link.hear(asked) == Accepted()
    assert link.disks["a"]["probed"] == "c"
    link.wait(9.5, "a")
    assert link.hear(asked) == Refused("it has had token 0 for 10 s")


def test_that_a_token_was_passed_on_is_said_again_if_it_was_not_heard():
    link = Link()
    link.deliver(Token)
    link.deliver(Token)  # from b to c, so b tells a
    link.wait(0.1, "b")
    lost = link.take(Passed)
    assert lost[0] == "b"
    link.answer(lost, None)
    link.wait(2.1, "b")
    assert link.take(Passed)[1].question == lost[1].question
