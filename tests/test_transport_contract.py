"""What every transport must do: the same checks on the one over Zenoh, with real sockets, and the one in memory."""

import queue
import threading
from dataclasses import replace

import pytest

pytest.importorskip("zenoh")

from amble.errors import AmbleError
from amble.live.transport import ANSWER_BYTES
from amble.live.transport.memory import Memory
from amble.live.transport.zenoh.transport import ZenohTransport
from live_agent import address_of
from live_samples import WITHIN_S, Ring

LONG_S = 10 * WITHIN_S  # an answer that is there sooner did not wait for its time to be over


class Party:
    """One agent, with all that its transport has told it."""

    def __init__(self, open_links, address, knocked=None):
        self.peers, self.heard, self.answers, self.shown = (queue.Queue() for _ in range(4))
        self.address, self.threads = address, set()
        self.links = open_links(address, self.hear, lambda *peer: self.peers.put(peer), knocked)

    def hear(self, sender, payload, reply):
        self.threads.add(threading.current_thread())
        self.heard.put((sender, payload, reply))

    def ask(self, to, payload=b"hello", timeout_s=LONG_S):
        self.links.ask(to, payload, timeout_s, self.answers.put)

    def answer(self):
        return self.answers.get(timeout=WITHIN_S)

    def question(self):
        return self.heard.get(timeout=WITHIN_S)

    def peer(self):
        return self.peers.get(timeout=WITHIN_S)


@pytest.fixture(params=["zenoh", "memory"])
def start(request, tmp_path):
    """Starts agents a and b, who are neighbours, with what is changed of their addresses."""
    ring, memory, opened = Ring(tmp_path, ["a", "b"]), Memory(), []

    def started(name, knocked=None, **changes):
        open_links = ZenohTransport.open if request.param == "zenoh" else memory.open
        address = replace(address_of(ring.address(name)), **changes)
        opened.append(Party(open_links, address, knocked))
        return opened[-1]

    yield started
    for party in opened:
        party.links.close()


@pytest.fixture
def both(start):
    a, b = start("a"), start("b")
    assert (a.peer(), b.peer()) == (("b", True), ("a", True))
    return a, b


def test_neighbours_see_each_other_come_and_go(both, start):
    a, b = both
    assert a.links.is_up("b")
    assert b.links.is_up("a")
    assert a.links.doubled() == {}
    b.links.close()
    b.links.close()
    assert a.peer() == ("b", False)
    assert not a.links.is_up("b")
    again = start("b")  # the address is free
    assert a.peer() == ("b", True)
    assert again.peer() == ("a", True)


@pytest.mark.parametrize("size", [0, 5, 2**20])
def test_a_question_arrives_whole_and_gets_its_answer(both, size):
    a, b = both
    a.ask("b", bytes(range(256)) * (size // 256) if size > 5 else b"hello"[:size])
    sender, payload, reply = b.question()
    assert (sender, len(payload)) == ("a", size - size % 256 if size > 5 else size)
    reply(b"x" * ANSWER_BYTES)
    assert a.answer() == b"x" * ANSWER_BYTES
    assert threading.current_thread() not in b.threads


def test_the_first_answer_counts(both):
    a, b = both
    a.ask("b")
    *_, reply = b.question()
    reply(b"one")
    reply(b"two")
    assert a.answer() == b"one"
    a.ask("b")
    *_, reply = b.question()
    with pytest.raises(AmbleError, match=f"give at most {ANSWER_BYTES}"):
        reply(bytes(ANSWER_BYTES + 1))
    reply(b"three")
    assert a.answer() == b"three"


def test_an_answer_that_is_thrown_away_is_none_at_once(both):
    a, b = both
    a.ask("b")
    *_, reply = b.question()
    del _, reply
    assert a.answer() is None


def test_who_is_silent_gives_no_answer(both):
    a, b = both
    a.ask("b", timeout_s=0.1)
    kept = b.question()
    assert a.answer() is None
    kept[2](b"too late")
    a.ask("b")
    b.question()[2](b"in time")
    assert a.answer() == b"in time"


def test_who_is_down_gives_no_answer(start):
    a = start("a")
    a.ask("b")
    assert a.answer() is None


def test_who_goes_leaves_no_question_open(both):
    a, b = both
    a.ask("b")
    b.ask("a")
    kept = a.question(), b.question()
    b.links.close()
    assert a.answer() is None
    assert b.answer() is None
    b.ask("a")
    assert b.answer() is None
    assert len(kept) == 2


def test_what_cannot_be_asked_is_said_at_once(start):
    a = start("a", bytes_max=1000)
    with pytest.raises(AmbleError, match="no neighbour named 'c'"):
        a.ask("c")
    with pytest.raises(AmbleError, match="at most 1000 may be sent"):
        a.ask("b", bytes(1001))


def test_what_is_too_large_for_a_neighbour_is_not_taken(start):
    a, b = start("a"), start("b", bytes_max=1000)
    a.peer()
    a.ask("b", bytes(1001))
    assert a.answer() is None
    assert b.heard.empty()


def test_questions_that_wait_have_a_bound(start):
    a, b = start("a"), start("b", waiting_max=2)
    a.peer()
    kept = []
    for _ in range(2):
        a.ask("b")
        kept.append(b.question())
    a.ask("b")
    assert a.answer() is None
    kept.pop()[2](b"done")
    assert a.answer() == b"done"
    a.ask("b")
    b.question()[2](b"again")
    assert a.answer() == b"again"


def test_an_address_that_is_taken_is_refused(start):
    a = start("a")
    taken = a.address
    with pytest.raises(AmbleError, match=f"cannot listen on {taken.host} port {taken.port}"):
        start("b", port=taken.port)


def test_a_newcomer_is_announced_at_the_door(start):
    shown = queue.Queue()

    def knocked(invitation, judge):
        shown.put(invitation)
        judge("not today")

    start("b", knocked, neighbours=())
    start("a").links.announce(b"an invitation")
    assert shown.get(timeout=WITHIN_S) == b"an invitation"
