"""An agent that leaves, at the level of the protocol; tests/test_joining.py has it with real processes."""

import numpy as np

from amble.live.core.message import Accepted, Leaving, Refused
from linked_cores import NAMES, Link

WITHIN_S = 5.0


def leave(link, name):
    link.do(name, link.cores[name].leave(link.now, WITHIN_S))


def deliver_all(link, *kinds):
    while any(link.deliver(kind) for kind in kinds):
        pass


def go_on(link, name):
    """Time passes, tokens walk, and who leaves asks again."""
    for _ in range(4):
        link.walk(1)
        link.wait(0.2, name)
        deliver_all(link, Leaving)


def z(link, name):
    return float(link.visits.estimate(link.disks[name]["custody/0"].message.payload)[0])


def given(link, *names):
    return np.mean([link.disks[name]["holder"].agent.given.v[0] for name in names])


def left(link):
    """Who has, and whether all that it gave is out."""
    return [(name, link.disks[name]["left"].all_out) for name, _ in link.said("left")]


def test_one_that_leaves_takes_out_what_it_gave_and_nobody_recounts():
    """ "An agent that leaves takes its share out of each token that comes, tells its neighbours to send it nothing
    more, and passes on what it holds. It ends when that is done" """
    link = Link()
    link.walk(6)  # from a on, twice round: b is next
    leave(link, "b")
    link.walk(1)
    parcel = link.disks["b"]["custody/0"].message.payload
    assert float(parcel.members) == 2
    assert parcel.buried.tolist() == [0, 1, 0]
    np.testing.assert_allclose(z(link, "b"), given(link, "a", "c"), rtol=1e-15)
    assert link.disks["b"]["holder"].agent.given.v[0] == 0
    deliver_all(link, Leaving)
    assert left(link) == []  # c has the token, and has not handed it on
    go_on(link, "b")
    assert left(link) == [("b", True)]
    assert link.said("recount") + link.said("reissue") == []
    link.walk(6)
    assert {name for name, _ in link.visited()[-6:]} == {"a", "c"}
    np.testing.assert_allclose(z(link, "a"), given(link, "a", "c"), rtol=1e-15)


def test_nobody_leaves_while_a_token_is_on_its_way_there():
    link = Link()
    link.walk(1)  # b has it
    leave(link, "b")
    link.walk(3)  # c, a, b: its share is out
    asked = [link.take(Leaving), link.take(Leaving)]
    assert {ask.to for _, ask in asked} == {"a", "c"}
    link.walk(2)  # c, a: and from a on to b, as it does not know yet
    answers = {ask.to: link.hear((name, ask)) for name, ask in asked}
    assert isinstance(answers["a"], Refused)
    assert answers["c"] == Accepted()
    for name, ask in asked:
        link.answer((name, ask), answers[ask.to])
    assert left(link) == []
    go_on(link, "b")
    assert left(link) == [("b", True)]


def test_leaving_has_a_bound():
    """ "... or when `within_s` is over, and then it counts as dead." """
    link = Link()
    link.walk(2)
    leave(link, "b")
    link.wait(WITHIN_S - 0.1, "b")
    assert left(link) == []
    link.wait(0.2, "b")
    assert left(link) == [("b", False)]


def test_a_neighbour_that_comes_back_is_told_again():
    link = Link()
    link.walk(6)
    leave(link, "b")
    link.walk(1)
    link.wait(0.2, "b")
    deliver_all(link, Leaving)
    link.down("b", "a")
    link.do("b", link.cores["b"].peer(link.now, "a", True))
    assert "a" not in link.cores["b"].departure.parted
    link.do("a", link.cores["a"].peer(link.now, "b", False))
    link.do("a", link.cores["a"].peer(link.now, "b", True))
    assert "b" not in link.cores["a"].neighbours.parting
    go_on(link, "b")
    assert left(link) == [("b", True)]


def test_who_is_down_is_not_waited_for():
    link = Link()
    link.walk(6)
    leave(link, "b")
    link.walk(1)
    link.down("b", "a")
    go_on(link, "b")
    assert left(link) == [("b", True)]


def test_one_that_crashes_while_it_leaves_leaves_once_it_is_back():
    link = Link()
    link.walk(6)
    leave(link, "b")
    link.begin("b")
    link.meet("b")
    assert link.cores["b"].leaving
    assert left(link) == []
    leave(link, "b")  # the driver asks again
    go_on(link, "b")
    assert left(link) == [("b", True)]
    assert "left" in link.disks["b"]


def test_all_tokens_are_left_one_after_the_other():
    link = Link(NAMES, tokens=2)
    link.walk(12)
    leave(link, "c")
    link.walk(6)
    go_on(link, "c")
    go_on(link, "c")
    assert left(link) == [("c", True)]
    link.walk(8)
    for m in range(2):
        newest = max((link.disks[name][f"custody/{m}"].message for name in "ab"), key=lambda message: message.hop)
        np.testing.assert_allclose(link.visits.estimate(newest.payload)[0], given(link, "a", "b"), rtol=1e-14)
