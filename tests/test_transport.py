"""The links between agents: real processes, real certificates, real deaths."""

import contextlib
import json
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from amble.errors import AmbleError
from amble.live.transport.address import Address, Link
from amble.live.transport.zenoh.engine_log import sentence_of
from amble.live.transport.zenoh.transport import ZenohTransport
from live_samples import HOST, Agent, Authority, Ring, files, free_port

pytest.importorskip("zenoh")


@pytest.fixture
def start():
    """Starts agents, and ends those that are left."""
    with contextlib.ExitStack() as stack:

        def started(address):
            agent = Agent(address)
            stack.callback(agent.end)
            return agent

        yield started


def all_up(agents):
    for agent in agents:
        for name, _, _ in agent.address["neighbours"]:
            agent.wait(peer=name, up=True)


@pytest.mark.parametrize("count", [2, 4])
def test_neighbours_answer_each_other_and_know_who_asks(tmp_path, start, count):
    ring = Ring(tmp_path, list("abcd")[:count])
    agents = [start(ring.address(name)) for name in ring.names]
    all_up(agents)
    for agent in agents:
        for name, _, _ in agent.address["neighbours"]:
            assert agent.ask(name)["last"] == f"{agent.address['name']} said hello"


def test_three_thousand_questions_are_answered_once_each(tmp_path, start):
    ring = Ring(tmp_path, ["a", "b"])
    a, b = start(ring.address("a")), start(ring.address("b"))
    all_up([a, b])
    b.tell(to="a", words="other way", count=500, together=20)
    asked = a.ask("b", count=3000, together=50, within_s=60)
    assert asked["each_once"]
    assert asked["last"] == "a said hello"
    assert b.wait(asked="other way")["each_once"]


@pytest.mark.parametrize(("left", "dead"), [("a", "b"), ("b", "a")], ids=["who is dialled", "who dials"])
def test_a_killed_neighbour_is_seen_at_once_and_again_when_it_is_back(tmp_path, start, left, dead):
    """By the link that broke: the lease is longer than anything here waits."""
    ring = Ring(tmp_path, ["a", "b"], lease_s=3600.0)
    agents = {name: start(ring.address(name)) for name in ring.names}
    all_up(agents.values())
    agents[left].tell(to=dead, words="hold", timeout_s=60)
    agents[dead].wait(words="hold")
    agents[dead].process.kill()
    agents[left].wait(peer=dead, up=False)
    assert agents[left].wait(asked="hold")["last"] is None
    assert agents[left].ask(dead)["last"] is None
    since = len(agents[left].said)
    again = start(ring.address(dead))
    agents[left].wait(since, peer=dead, up=True)
    assert agents[left].ask(dead, "again")["last"] == f"{left} said again"
    again.wait(peer=left, up=True)
    assert again.ask(left, "again")["last"] == f"{dead} said again"


@pytest.mark.parametrize(("left", "frozen"), [("a", "b"), ("b", "a")], ids=["who is dialled", "who dials"])
def test_a_frozen_neighbour_is_down_after_the_lease_and_up_when_it_goes_on(tmp_path, start, left, frozen):
    ring = Ring(tmp_path, ["a", "b"], lease_s=1.0)
    agents = {name: start(ring.address(name)) for name in ring.names}
    all_up(agents.values())
    agents[frozen].process.send_signal(signal.SIGSTOP)
    agents[left].tell(to=frozen, words="large", size=20_000_000, timeout_s=60)  # more than the system's buffers hold
    agents[left].wait(peer=frozen, up=False)
    assert agents[left].wait(asked="large")["last"] is None
    since = len(agents[left].said)
    agents[frozen].process.send_signal(signal.SIGCONT)
    agents[left].wait(since, peer=frozen, up=True)
    assert agents[left].ask(frozen, "again")["last"] == f"{left} said again"


def stranger(folder, port, protocol="tls", claims_session_at=0, **changes):
    given = files(folder) | {"port": port, "protocol": protocol, "claims_session_at": claims_session_at} | changes
    command = [sys.executable, str(Path(__file__).with_name("live_stranger.py")), json.dumps(given)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60).stdout)


@pytest.fixture
def beset(tmp_path, start):
    """Three agents, of which `a` is going to be tried; at the end it must still serve its neighbours. A name that is
    there twice meanwhile, in ring.twice, is not listened to."""
    ring = Ring(tmp_path, ["a", "b", "c"])
    ring.authority.issue(tmp_path / "x", "x")
    ring.twice = ""
    a, b, c = (start(ring.address(name, engine_log=True)) for name in ring.names)
    all_up([a, b, c])
    yield ring, a
    assert not [event for event in a.said if event.get("words", "") == "evil"]
    assert {event["peer"] for event in a.said if event.get("up") is False} <= {ring.twice}
    assert b.ask("a")["last"] == "b said hello"
    assert c.ask("a")["last"] == "c said hello"


def test_a_stranger_of_another_authority_is_refused(tmp_path, beset):
    ring, a = beset
    folder = Authority.make().issue(tmp_path / "foreign", "b")
    tried = stranger(folder, ring.ports["a"], authority=str(tmp_path / "a" / "authority.pem"))
    assert "refused" in tried
    assert tried["answers"] == []
    a.wait(log="refused a connection: invalid peer certificate: BadSignature")


def test_a_stranger_without_a_certificate_is_refused(tmp_path, beset):
    ring, a = beset
    assert stranger(tmp_path / "b", ring.ports["a"], certificate="")["refused"]
    a.wait(log="refused a connection: peer sent no certificates")


def test_an_expired_certificate_is_refused(tmp_path, beset):
    ring, a = beset
    folder = ring.authority.issue(tmp_path / "expired", "b", days=-1)
    assert stranger(folder, ring.ports["a"])["refused"]
    a.wait(log="refused a connection: invalid peer certificate: certificate expired")


def test_an_agent_that_is_no_neighbour_is_not_heard(tmp_path, beset):
    ring, a = beset
    assert stranger(tmp_path / "x", ring.ports["a"])["answers"] == []
    with a.more:
        words = "has the certificate of x, which is not a neighbour"
        assert a.more.wait_for(lambda: any(words in event.get("log", "") for event in a.said), 20)


def test_a_neighbour_cannot_speak_as_another(tmp_path, beset):
    ring, a = beset
    ring.twice = "c"
    assert stranger(tmp_path / "c", ring.ports["a"])["answers"] == []
    a.wait(a.said.index(a.wait(peer="c", up=False)), peer="c", up=True)


@pytest.mark.parametrize("joining", ["x", "c"], ids=["no neighbour", "another neighbour"])
def test_nobody_can_join_the_session_of_a_neighbour(tmp_path, start, joining):
    """Zenoh lets anybody with a certificate add a link to another's session, if it knows the session's number: then we
    begin a new one."""
    ring = Ring(tmp_path, ["a", "b", "c"])
    ring.authority.issue(tmp_path / "x", "x")
    a, b, c = (start(ring.address(name)) for name in ring.names)
    all_up([a, b, c])
    since = [len(agent.said) for agent in (b, c)]
    assert stranger(tmp_path / joining, ring.ports["a"], claims_session_at=ring.ports["b"])["answers"] == []
    a.wait(log=f"{joining} has joined the session of a neighbour; all links are set up again")
    for agent, number in zip((b, c), since, strict=True):
        agent.wait(number, peer="a", up=True)
        answer, tries = None, 0
        while answer is None and tries < 20:  # it may restart more than once, and what was asked then is not answered
            answer, tries = agent.ask("a")["last"], tries + 1
            time.sleep(0.2)
        assert answer == f"{agent.address['name']} said hello"
    assert not [event for event in a.said if event.get("words", "") == "evil"]


def test_what_is_no_tls_is_refused(tmp_path, beset):
    ring, a = beset
    assert stranger(tmp_path / "b", ring.ports["a"], protocol="tcp")["answers"] == []
    with contextlib.ExitStack() as stack:
        for words in (b"", b"GET / HTTP/1.0\r\n\r\n", bytes(range(256)) * 300):
            raw = stack.enter_context(socket.create_connection((HOST, ring.ports["a"])))
            with contextlib.suppress(OSError):
                raw.sendall(words)
        a.wait(log="refused a connection: received corrupt message of type InvalidContentType")


def test_the_strangers_of_these_tests_would_be_heard_if_they_were_let_in(tmp_path, start):
    """With the right certificate the same script is heard: so what keeps the others out is not a slip in it."""
    ring = Ring(tmp_path, ["a", "b"])
    a = start(ring.address("a"))
    a.wait(open="a")
    assert stranger(tmp_path / "b", ring.ports["a"])["answers"] == ["b said evil"]
    a.wait(peer="b", up=True)


def test_why_a_neighbour_cannot_be_reached_is_logged(tmp_path, start):
    ring = Ring(tmp_path, ["a", "b"])
    a = start(ring.address("a", engine_log=True))
    a.wait(open="a")
    with a.more:
        found = a.more.wait_for(lambda: [event for event in a.said if "log" in event], 20)
    assert f"cannot reach {HOST}:{ring.ports['b']}: " in found[0]["log"]
    assert "Connection refused" in found[0]["log"]


def test_lines_of_the_engine_that_say_nothing_to_us_are_left_out():
    assert sentence_of("zenoh::net::runtime::orchestrator", "Zenoh can be reached at: tls/127.0.0.1:7447") == ""
    assert sentence_of("zenoh_link_tls::utils", "Loading user-generated certificates.") == ""


def test_a_link_that_takes_too_long_is_told_with_its_time():
    words = "Unable to connect to configured peer tls/10.0.0.2:7447! deadline has elapsed at /a/b.rs:1.. Retry in 1s"
    sentence = sentence_of("zenoh::net::runtime::orchestrator", words)
    assert sentence.startswith("cannot reach 10.0.0.2:7447: no link within 10 s, the time for 5 round trips;")
    assert "does a round trip take longer than 2 s?" in sentence


def test_a_port_that_is_taken_is_one_sentence(tmp_path, start):
    ring = Ring(tmp_path, ["a", "b"])
    with socket.socket() as taken:
        taken.bind((HOST, ring.ports["a"]))
        taken.listen()
        a = start(ring.address("a"))
        assert a.process.wait(20) == 0
        with a.more:
            assert a.more.wait_for(lambda: a.said, 20)
    assert f"cannot listen on {HOST} port {ring.ports['a']}" in a.said[0]["error"]
    assert "Address already in use" in a.said[0]["error"]


def test_close_ends_what_is_under_way_and_frees_the_port_and_the_process(tmp_path, start):
    ring = Ring(tmp_path, ["a", "b"])
    a, b = start(ring.address("a")), start(ring.address("b"))
    all_up([a, b])
    a.tell(to="b", words="hold", timeout_s=60)
    b.wait(words="hold")
    assert a.leave() == 0  # which closes twice
    assert a.wait(closed="a")["threads"] == ["MainThread"]
    assert a.wait(asked="hold")["last"] is None
    b.wait(peer="a", up=False)
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind((HOST, ring.ports["a"]))
        again.listen()


def test_too_large_a_question_is_refused_and_the_link_lives_on(tmp_path, start):
    ring = Ring(tmp_path, ["a", "b"])
    a, b = start(ring.address("a")), start(ring.address("b", bytes_max=1000))
    all_up([a, b])
    assert a.ask("b", "fits", size=990)["last"].startswith("a said fits")
    assert a.ask("b", "slightly", size=1001)["last"] is None
    b.wait(log="refused a question from a: it has more than 1000 bytes")
    assert a.ask("b", "far", size=5_000_000, timeout_s=1.0)["last"] is None
    assert a.ask("b", "again")["last"] == "a said again"
    b.wait(words="again")  # its line may come later than the answer
    assert [event["words"] for event in b.said if "heard" in event] == ["fits".ljust(20, "."), "again"]


def test_questions_beyond_those_that_may_wait_are_refused(tmp_path, start):
    ring = Ring(tmp_path, ["a", "b"])
    a, b = start(ring.address("a")), start(ring.address("b", waiting_max=2))
    all_up([a, b])
    assert a.ask("b", "drop", count=5)["last"] is None  # what is thrown away waits no longer
    a.tell(to="b", words="hold", count=2, together=2, timeout_s=60)
    b.wait(words="hold")
    with b.more:
        assert b.more.wait_for(lambda: sum(event.get("words") == "hold" for event in b.said) == 2, 20)
    assert a.ask("b", "third")["last"] is None
    b.wait(log="refused a question from a: 2 others are waiting")


def test_who_does_not_answer_in_time_gives_no_answer(tmp_path, start):
    ring = Ring(tmp_path, ["a", "b"])
    a, b = start(ring.address("a")), start(ring.address("b"))
    all_up([a, b])
    assert a.ask("b", "hold", timeout_s=0.3)["last"] is None
    assert a.ask("b", "again")["last"] == "a said again"


def insecure(name, port, *neighbours):
    return Address(name, HOST, port, neighbours, run="run1", insecure=True)


def test_one_process_may_open_close_and_open_again(capfd):
    """Plain TCP, as in benchmarks; and nothing is printed."""
    ports, events = (free_port(), free_port()), queue.Queue()
    for _ in range(2):
        a = ZenohTransport.open(insecure("a", ports[0], Link("b", HOST, ports[1])), lambda *_: None, lambda *_: None)
        b = ZenohTransport.open(
            insecure("b", ports[1], Link("a", HOST, ports[0])),
            lambda sender, payload, reply: events.put((sender, payload, reply)),
            lambda name, up: events.put((name, up)),
        )
        answers = queue.Queue()
        assert events.get(timeout=20) == ("a", True)
        a.ask("b", b"hello", 10.0, answers.put)
        sender, payload, reply = events.get(timeout=20)
        reply(b"well")
        reply(b"twice is once")
        assert (sender, payload, answers.get(timeout=20)) == ("a", b"hello", b"well")
        with pytest.raises(AmbleError, match="no neighbour named 'c'"):
            a.ask("c", b"", 1.0, answers.put)
        a.close()
        assert events.get(timeout=20) == ("a", False)
        closing = [threading.Thread(target=b.close) for _ in range(3)]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(20)
        b.ask("a", b"", 1.0, answers.put)
        assert answers.get(timeout=20) is None
    assert capfd.readouterr() == ("", "")


def test_places_that_cannot_be_are_refused(tmp_path):
    link = Link("b", HOST, 1)
    with pytest.raises(AmbleError, match=r"the name 'a\.org' was given"):
        insecure("a.org", 1)
    with pytest.raises(AmbleError, match="make all different"):
        insecure("b", 1, link)
    with pytest.raises(AmbleError, match="give all three"):
        Address("a", HOST, 1, (link,), "run1")
    with pytest.raises(AmbleError, match="there is no file"):
        Address("a", HOST, 1, (link,), "run1", *(tmp_path / name for name in ("authority", "certificate", "key")))
    with pytest.raises(AmbleError, match="at most 268435456 may be sent"):
        ZenohTransport(insecure("a", 1, link), lambda *_: None, lambda *_: None).ask("b", bytes(2**28 + 1), 1.0, print)
