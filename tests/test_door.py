"""The door: the one thing that an agent hears from somebody who is no neighbour, over real links."""

import threading
import time
from dataclasses import replace

import pytest

pytest.importorskip("zenoh")

from amble.live.transport.address import Link
from amble.live.transport.zenoh import door
from amble.live.transport.zenoh.transport import ZenohTransport
from live_agent import address_of
from live_samples import HOST, Authority, Ring, free_port

LET_IN, REFUSED = b"an invitation", "the run has another authority"


def judge(shown, answer):
    answer(None if shown == LET_IN else REFUSED)


@pytest.fixture
def at_the_door(tmp_path):
    """An agent with a door, and the address of one who is certified but no neighbour."""
    ring = Ring(tmp_path, ["a", "b"])
    ring.authority.issue(tmp_path / "x", "x")
    transport = ZenohTransport.open(address_of(ring.address("a")), lambda *_: None, lambda *_: None, judge)
    link = Link("a", HOST, ring.ports["a"])
    paths = {kind: tmp_path / "x" / f"{kind}.pem" for kind in ("authority", "certificate", "key")}
    stranger = replace(address_of(ring.address("b")), name="x", port=free_port(), neighbours=(link,), **paths)
    yield stranger, link
    transport.close()


def test_what_is_shown_is_let_in_or_refused_with_a_reason(at_the_door):
    stranger, link = at_the_door
    assert door.knock(stranger, link, LET_IN) == door.Answer("welcome")
    time.sleep(2 * door.BETWEEN_S)
    assert door.knock(stranger, link, b"else") == door.Answer("refused", REFUSED)


@pytest.mark.parametrize("words", ["", "welcome"])
def test_a_refusal_is_one_whatever_its_words(tmp_path, words):
    ring = Ring(tmp_path, ["a", "b"])
    refuse = lambda _shown, answer: answer(words)  # noqa: E731
    transport = ZenohTransport.open(address_of(ring.address("a")), lambda *_: None, lambda *_: None, refuse)
    try:
        answer = door.knock(address_of(ring.address("b")), Link("a", HOST, ring.ports["a"]), LET_IN)
    finally:
        transport.close()
    assert answer == door.Answer("refused", words)


def test_who_does_not_answer_in_time_has_not_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(door, "ANSWER_S", 0.5)
    ring, kept = Ring(tmp_path, ["a", "b"]), []
    keep = lambda *shown: kept.append(shown)  # noqa: E731
    transport = ZenohTransport.open(address_of(ring.address("a")), lambda *_: None, lambda *_: None, keep)
    try:
        answer = door.knock(address_of(ring.address("b")), Link("a", HOST, ring.ports["a"]), LET_IN)
    finally:
        transport.close()
    assert len(kept) == 1
    assert answer == door.Answer("silent")


def test_a_reason_does_not_move_the_cursor(tmp_path):
    ring = Ring(tmp_path, ["a", "b"])
    refuse = lambda _shown, answer: answer("\x1b[2Jgo\naway")  # noqa: E731
    transport = ZenohTransport.open(address_of(ring.address("a")), lambda *_: None, lambda *_: None, refuse)
    try:
        answer = door.knock(address_of(ring.address("b")), Link("a", HOST, ring.ports["a"]), LET_IN)
    finally:
        transport.close()
    assert answer == door.Answer("refused", " [2Jgo away")


def test_nobody_answers_where_nobody_is(at_the_door):
    stranger, link = at_the_door
    assert door.knock(stranger, replace(link, port=free_port()), LET_IN) == door.Answer("silent")


def test_a_certificate_of_another_authority_does_not_come_to_the_door(tmp_path, at_the_door):
    stranger, link = at_the_door
    folder = Authority.make().issue(tmp_path / "foreign", "x")
    foreign = {kind: folder / f"{kind}.pem" for kind in ("certificate", "key")}
    assert door.knock(replace(stranger, **foreign), link, LET_IN) == door.Answer("silent")


def test_an_agent_has_other_things_to_do_than_to_open(at_the_door):
    stranger, link = at_the_door
    answers = []
    knocking = [threading.Thread(target=lambda: answers.append(door.knock(stranger, link, LET_IN))) for _ in range(6)]
    for each in knocking:
        each.start()
    for each in knocking:
        each.join(30)
    assert set(answers) == {door.Answer("welcome"), door.Answer("busy")}


def test_one_knocks_until_the_neighbour_is_up(at_the_door, monkeypatch):
    """Also where the first answer is a refusal, or nobody opens."""
    stranger, link = at_the_door
    monkeypatch.setattr(door, "AGAIN_S", 0.05)
    monkeypatch.setattr(door, "REFUSED_S", 0.05)
    said = iter(map(door.Answer, ["silent", "refused", "busy", "welcome", "welcome"]))
    up, ended, knocks = threading.Event(), threading.Event(), []

    def knock(_address, _link, shown):
        knocks.append(shown)
        answer = next(said)
        if len(knocks) == 5:
            up.set()
        return answer

    monkeypatch.setattr(door, "knock", knock)
    door.knock_at_all(stranger, LET_IN, lambda _name: up.is_set(), ended)
    assert knocks == [LET_IN] * 5
    assert link.name == "a"
