"""The protocol, two and three agents at a time, joined by a link that the test holds in its hands.

Sentences in quotation marks are those of live/protocol.py, most of its theory of operation (see test_quotes.py).
"""

import numpy as np
import pytest

from amble.live.core.effects import Ask, Persist, Reply, Sight, Wake
from amble.live.core.message import Accepted, Ending, Epoch, Found, Passed, Refused, Seek, Stop, Token
from amble.live.core.visits import RawVisits
from linked_cores import NAMES, PATIENCE_S, SILENCE_S, Link


def test_a_token_walks_its_way():
    """ "Some agent always has custody of a token." """
    link = Link()
    link.walk(7)
    assert link.visited() == [(NAMES[k % 3], k + 1) for k in range(8)]
    assert len(link.asks) == 1
    z = link.visits.estimate(link.disks["b"]["custody/0"].message.payload)
    given = [link.disks[name]["holder"].agent.given.v[0] for name in NAMES]
    np.testing.assert_allclose(z, np.mean(given), rtol=1e-15)


def test_a_token_is_in_the_journal_before_it_is_acknowledged():
    """It is acknowledged only after one transaction has the agent's new state, its share, the newest (epoch, hop) seen
    and the outgoing token with its destination."""
    link = Link()
    _, ask = link.take()
    effects = link.cores["b"].heard(0.0, 1, ask.question)
    kinds = [type(effect) for effect in effects]
    assert kinds.index(Persist) < kinds.index(Reply) < kinds.index(Ask)
    assert kinds.count(Persist) == 1
    rows = next(effect for effect in effects if isinstance(effect, Persist)).rows
    assert rows.keys() == {"holder", "share/0", "sight/0", "custody/0"}
    assert rows["custody/0"].to == "c"
    assert rows["sight/0"] == Sight(Epoch(0, 0), 2)


def test_a_duplicate_is_acknowledged_and_not_visited_again():
    """ "A token that an agent has seen before (same epoch, same hop or an earlier one) is acknowledged again but not
    visited again." """
    link = Link()
    asked = link.take()
    assert [link.hear(asked) for _ in range(3)] == [Accepted()] * 3
    assert link.visited() == [("a", 1), ("b", 2)]
    link.walk(3)
    assert link.hear(asked) == Accepted()  # it was overtaken
    assert link.visited()[-1] == ("b", 5)


def test_a_lost_acknowledgement_is_asked_again():
    """ "A hand-over is repeated until it is answered." """
    link = Link()
    asked = link.take()
    link.hear(asked)
    link.answer(asked, None)
    assert link.take(Token)[0] == "b"  # which goes on meanwhile
    link.wait(1.0, "a")
    again = link.take()
    assert again[1].question == asked[1].question
    assert again[1].to == "b"
    link.answer(again, link.hear(again))
    link.wait(10.0, "a")
    assert link.take() is None
    assert link.visited() == [("a", 1), ("b", 2)]


def test_who_is_asked_again_is_asked_less_and_less_often():
    """Each wait for an answer is longer than the one before, up to a bound."""
    link, times = Link(), []
    for _ in range(400):
        while asked := link.take():
            times.append(link.now)
            link.answer(asked, None)
        link.wait(0.05, "a")
    gaps = np.diff(times)
    assert gaps[0] < 0.5
    assert 0.9 <= gaps[-1] <= 3.1


def test_the_destination_is_fixed_after_the_first_attempt():
    """ "After the first attempt to send, the destination of a token changes only together with its epoch". Else A sends
    to B, the acknowledgement is lost, A restarts and sends to C, and one epoch has two tokens."""
    link = Link()
    asked = link.take()
    link.answer(asked, None)
    link.begin("a")
    link.do("a", link.cores["a"].peer(link.now, "c", True))  # b is not up yet
    link.wait(1.0, "a")
    assert link.take() is None
    link.do("a", link.cores["a"].peer(link.now, "b", True))
    again = link.take()
    assert (again[1].to, again[1].question) == ("b", asked[1].question)


def test_a_destination_that_could_not_be_tried_is_still_open():
    """A token that nobody was sent goes to whichever neighbour comes up first."""
    link = Link()
    link.walk(1)
    link.asks.clear()
    link.down("c", "a", "b")
    token = link.disks["b"]["custody/0"].message
    link.do("c", link.cores["c"].heard(link.now, 99, token))
    assert link.disks["c"]["custody/0"].to == ""
    assert link.take() is None
    link.do("c", link.cores["c"].peer(link.now, "b", True))
    assert link.disks["c"]["custody/0"].to == "b"
    assert link.take()[1].to == "b"


def test_a_sender_forgets_once_the_receiver_has_handed_on():
    """ "The sender keeps a copy until the receiver says that it has passed the token on." """
    link = Link()
    link.deliver(Token)
    link.deliver(Token)
    passed = link.deliver(Passed)
    assert (passed[0], passed[1].to, passed[1].question.hop) == ("b", "a", 1)
    link.down("a", "b")
    link.wait(PATIENCE_S + 0.1, "a")
    assert not link.said("reissue")


def test_a_giver_is_told_later_and_still_in_time():
    """ "The receiver says that it has passed a token on after `tell_s`." """
    link = Link(tell_s=0.5)
    link.deliver(Token)
    link.deliver(Token)
    wake = next(e.at_s for e in reversed(link.cores["b"].tick(0.1)) if isinstance(e, Wake))
    assert (link.take(Passed), wake) == (None, 0.5)
    link.wait(0.5, "b")
    passed = link.deliver(Passed)
    assert (passed[0], passed[1].to, passed[1].question.hop) == ("b", "a", 1)
    assert link.take(Passed) is None
    link.down("a", "b")
    link.wait(PATIENCE_S + 0.1, "a")
    assert not link.said("reissue")


def test_a_giver_that_has_the_token_again_is_not_told():
    """ "It says nothing if the token comes back from the sender itself, whose copy is newer by then." """
    link = Link(tell_s=0.5)
    for _ in range(20):
        link.deliver(Token)
        assert link.take(Passed) is None
    assert all(
        link.cores[name].custodian.errands[0].tell_s is None or link.cores[name].custodian.errands[0].taken
        for name in NAMES
    )


def test_a_giver_that_has_not_is_told_when_the_token_is_back_from_another():
    """ "... or as soon as the token is back." """
    link = Link(tell_s=0.5)
    link.deliver(Token)
    link.deliver(Token)  # c has it from b, and b has it from a
    back = link.disks["c"]["custody/0"].message
    link.do("b", link.cores["b"].heard(link.now, 99, back))
    passed = link.deliver(Passed)
    assert (passed[0], passed[1].to, passed[1].question.hop) == ("b", "a", 1)
    assert link.cores["a"].custodian.errands[0].passed


def test_only_the_sender_reissues_and_only_after_its_patience():
    """ "If the receiver of a token is down for `patience_s` and has not passed it on, the sender, and only the sender,
    reissues its copy in the next epoch." """
    link = Link()
    link.deliver(Token)  # b has it
    link.asks.clear()
    for name in ("a", "c"):
        link.down(name, "b")
    link.wait(PATIENCE_S - 0.1)
    assert not link.said("reissue")
    before = link.visits.estimate(link.disks["a"]["custody/0"].message.payload)
    link.wait(0.2)
    assert [(name, report.epoch) for name, report in link.said("reissue")] == [("a", Epoch(1, 0))]
    custody = link.disks["a"]["custody/0"]
    assert (custody.message.epoch, custody.to) == (Epoch(1, 0), "c")
    np.testing.assert_allclose(link.visits.estimate(custody.message.payload), before, atol=1e-15)
    assert link.take()[1].question == custody.message


def test_what_cannot_be_recounted_waits_for_the_dead():
    """ "Methods that cannot recount wait for the dead agent instead" """
    import amble

    link = Link(exact=True)
    link.visits = RawVisits(amble.APIBCD(tau=1.0), 1, 3)
    core = link.cores["a"]
    core.visits = core.custodian.visits = link.visits
    link.deliver(Token)
    link.down("a", "b")
    link.wait(10 * SILENCE_S, "a")
    assert not link.said("reissue")


def test_an_older_epoch_is_discarded():
    """ "an agent that has seen a newer epoch discards an older token" """
    link = Link()
    link.deliver(Token)
    old = link.take()  # b to c, and b is cut off from a
    link.down("a", "b")
    link.wait(PATIENCE_S + 0.1, "a")
    link.deliver(Token)  # a to c, again
    assert link.disks["c"]["sight/0"].epoch == Epoch(1, 0)
    assert link.hear(old) == Accepted()
    assert [name for name, _ in link.said("absorbed")] == ["c"]
    assert link.disks["c"]["sight/0"].epoch == Epoch(1, 0)


def test_of_two_issues_with_one_number_the_author_decides():
    """ "Epochs are ordered by (number, author), and the larger one wins." """
    link = Link()
    token = link.take()[1].question
    by_b, by_a = (token._replace(epoch=Epoch(1, "abc".index(name)), hop=4, sender=name) for name in ("b", "a"))
    link.hear(("b", Ask(1, "c", by_b)))
    link.hear(("a", Ask(1, "c", by_a._replace(hop=9))))
    assert link.disks["c"]["sight/0"] == Sight(Epoch(1, 1), 5)


def test_a_token_unseen_for_long_is_sought_and_then_reissued():
    """ "the agent asks its neighbours. If none knows better, it reissues its last copy" """
    link = Link(stall_s=1e6)
    link.walk(4)
    link.asks.clear()
    for _ in range(80):
        link.wait(1.0, "a", "c")
        while asked := link.take(Token):
            link.answer(asked, None)
    assert not link.asks
    assert not link.said("reissue")
    while not link.asks:
        link.wait(1.0, "c")
    assert {ask.to for _, ask in link.asks if isinstance(ask.question, Seek)} == {"a", "b"}
    while asked := link.take(Seek):
        link.answer(asked, None)
    assert not link.said("reissue")
    link.wait(PATIENCE_S, "c")
    ((who, reissue),) = link.said("reissue")
    assert (who, reissue.epoch, reissue.hop) == ("c", Epoch(1, 2), 3)


def test_news_of_a_token_keeps_the_back_stop_back():
    """ "... asks its neighbours. If none knows better, it reissues its last copy." """
    for newest, again in ((Found(0, Epoch(0, 0), 99), 0), (Refused("not seen"), 1)):
        link = Link(stall_s=1e6)
        link.walk(4)
        link.asks.clear()
        sought = False
        for _ in range(300):
            link.wait(1.0, "c")
            for asked in [asked for asked in link.asks if isinstance(asked[1].question, Seek)]:
                link.asks.remove(asked)
                link.answer(asked, newest)
                sought = True
            if sought and link.now > 2 * SILENCE_S + 2 * PATIENCE_S:
                break
        assert sought
        assert len([name for name, _ in link.said("reissue") if name == "c"]) == again


def test_seek_tells_the_newest_that_is_known():
    """ "I have not seen this token for long: what is the newest that you know of it?" """
    link = Link()
    link.walk(2)
    assert link.hear(("b", Ask(1, "c", Seek(0, "b")))) == Found(0, Epoch(0, 0), 3)
    assert isinstance(Link(("a", "b", "c")).hear(("b", Ask(1, "c", Seek(0, "b")))), Refused)


def test_the_end_is_flooded_once_and_known_by_all():
    """ "its holder tells everybody, and everybody passes that on" - but not to who has said it"""
    link = Link(hops_max=3)
    link.walk(2)
    assert link.disks["c"]["stopped"] == Ending("hops", "token 0 has made its 3 hops")
    told = 0
    while link.deliver(Stop):
        told += 1
    assert told == 4
    assert all(link.disks[name]["stopped"] for name in NAMES)
    assert link.cores["a"].tick(1.0) == []


def test_who_comes_back_after_the_end_is_told():
    """One that was down when the run ended does not wait forever: a neighbour tells it."""
    link = Link(hops_max=3)
    link.down("c", "a")
    link.walk(2)
    while link.deliver(Stop):
        pass
    link.disks["a"].pop("stopped", None)
    link.begin("a")
    for name in ("b", "c"):
        link.down(name, "a")
        link.do(name, link.cores[name].peer(link.now, "a", True))
    link.deliver(Stop)
    assert link.disks["a"]["stopped"]


def test_a_token_that_meets_the_end_brings_it_home():
    """Who offers a token to an agent that knows of the end hears of it, and ends too."""
    link = Link()
    link.do("b", link.cores["b"].halt(0.0, "seconds", "60 s are over"))
    link.asks = [asked for asked in link.asks if isinstance(asked[1].question, Token)]
    link.deliver(Token)
    assert link.disks["a"]["stopped"] == Ending("seconds", "60 s are over")


def test_it_stops_when_the_model_has_converged():
    """ "The token counts visits at which the model has not moved. After twice as many as its members" it stops: six
    for three."""
    link = Link(tolerance=1e-12)
    link.walk(200)
    while link.deliver(Stop):
        pass
    words = {link.disks[name]["stopped"] for name in NAMES}
    assert words == {Ending("tolerance", "the model has converged: unchanged for 6 visits of token 0")}


@pytest.mark.parametrize("when", range(1, 8))
def test_an_agent_goes_on_from_its_rows(when):
    """ "The only state that survives a crash is what `Persist` was given." """
    still, broken = Link(), Link()
    still.walk(9)
    broken.walk(when)
    broken.asks.clear()
    for name in NAMES:
        broken.begin(name)
    for name in NAMES:
        broken.meet(name)
    while len(broken.visited()) < len(still.visited()):
        assert broken.deliver(Token)
    assert broken.visited() == still.visited()
    last = still.visited()[-1][0]
    one, other = (link.disks[last]["custody/0"].message.payload for link in (still, broken))
    np.testing.assert_array_equal(one.token.account.board.total, other.token.account.board.total)


def test_a_dead_neighbour_is_counted_out_by_who_holds_the_token():
    """ "A holder also begins one when a neighbour has been down for `patience_s`" and the token misses it for laps."""
    link = Link()
    link.walk(4)  # b has it, and sends it to c
    for name in ("a", "b"):
        link.down(name, "c")
    link.wait(PATIENCE_S + 0.1, "b")
    link.asks = [asked for asked in link.asks if asked[1].to != "c"]
    link.walk(6)
    parcel = link.disks["b"]["custody/0"].message.payload
    assert parcel.buried.tolist() == [0, 0, 1]
    assert float(parcel.members) == 2
    right = np.mean([link.disks[name]["holder"].agent.given.v[0] for name in ("a", "b")])
    np.testing.assert_allclose(link.visits.estimate(link.disks["a"]["custody/0"].message.payload), right, atol=0.2)
