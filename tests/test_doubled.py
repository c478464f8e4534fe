"""One name, two agents: a folder that was copied must not count its data twice."""

import contextlib
import time

import pytest

from amble.live.transport.zenoh.links import End, Links
from amble.live.transport.zenoh.pulse import SLACK_S
from live_samples import Agent, Ring, free_port

pytest.importorskip("zenoh")
LEASE_S = 1.0


@pytest.fixture
def ring(tmp_path):
    """Three agents, of which `a` dials the others; and how to start more."""
    with contextlib.ExitStack() as stack:
        ring = Ring(tmp_path, ["a", "b", "c"], lease_s=LEASE_S)

        def start(name, **changes):
            agent = Agent(ring.address(name, **changes))
            stack.callback(agent.end)
            return agent

        ring.start = start
        ring.agents = {name: start(name) for name in ring.names}
        for name, agent in ring.agents.items():
            for other in set(ring.names) - {name}:
                agent.wait(peer=other, up=True)
        yield ring


def wait_for_log(agent, *words, since=0):
    def found():
        return any(all(word in event.get("log", "") for word in words) for event in agent.said[since:])

    with agent.more:
        assert agent.more.wait_for(found, 20), (words, agent.said[-20:])


def test_neither_of_two_agents_with_one_name_is_listened_to_until_one_is_left(ring):
    a, b = ring.agents["a"], ring.agents["b"]
    copy = ring.start("a", port=free_port())
    b.wait(peer="a", up=False)
    wait_for_log(b, "two agents have the name a: session ", " from 127.0.0.1:", "stop one of them")
    for agent in (a, copy):
        wait_for_log(agent, "b ignores us: two agents have the name a")
        agent.wait(peer="b", up=False)
        assert agent.ask("b", "mine")["last"] is None
    b.tell(to="a", words="which")
    assert b.wait(asked="which")["last"] is None
    b.tell(doubled=True)
    assert b.wait(doubled=["a"])
    a.tell(doubled=True)
    assert a.wait(doubled=["a"])  # as b says
    assert not [event for event in b.said if event.get("words") == "mine"]
    assert not [event for agent in (a, copy) for event in agent.said if event.get("words") == "which"]
    assert b.ask("c")["last"] == "b said hello"
    since = len(b.said), len(a.said)
    copy.end()
    b.wait(since[0], peer="a", up=True)
    a.wait(since[1], peer="b", up=True)
    assert a.ask("b", "again")["last"] == "a said again"
    assert b.ask("a", "again")["last"] == "b said again"
    b.tell(doubled=True)
    assert b.wait(since[0], doubled=[])


def test_a_restart_is_not_a_second_agent(ring):
    for name in ("a", "c"):  # which dials, and which is dialled
        since = {other: len(ring.agents[other].said) for other in set(ring.names) - {name}}
        ring.agents[name].process.kill()
        ring.agents[name] = ring.start(name)
        for other, number in since.items():
            ring.agents[other].wait(number, peer=name, up=True)
    time.sleep(LEASE_S + SLACK_S + 0.5)
    said = [event for agent in ring.agents.values() for event in agent.said]
    assert not [event for event in said if "two agents" in event.get("log", "")]
    assert ring.agents["a"].ask("c")["last"] == "a said hello"


def test_two_sessions_are_two_agents_only_after_what_a_restart_explains():
    links = Links(patience_s=4.0)
    old, new = End("1", "tls/10.0.0.1:1", "tls/10.0.0.2:5"), End("2", "tls/10.0.0.1:1", "tls/10.0.0.3:6")
    links.change(0.0, old, "b")
    assert links.linked("b")
    assert not links.twice("b")
    links.change(1.0, new, "b")
    assert links.twice("b")  # from the first moment it is not listened to
    assert links.doubled(4.9) == {}
    assert list(links.doubled(5.1)) == ["b"]
    assert "session 1 from 10.0.0.2:5 and session 2 from 10.0.0.3:6" in links.doubled(5.1)["b"]
    links.change(6.0, old, None)
    assert not links.twice("b")
    assert links.doubled(20.0) == {}
    links.change(30.0, old, "b")
    assert links.doubled(30.1) == {}  # it is counted from when it came


def test_somebody_in_a_neighbours_session_is_seen():
    links = Links(patience_s=4.0)
    links.change(0.0, End("1", "here", "there"), "b")
    links.change(0.0, End("1", "here", "elsewhere"), "x")
    assert links.joined("b")
    assert links.joined("x")
    assert not links.twice("b")
    links.change(0.0, End("1", "here", "elsewhere"), None)
    assert not links.joined("b")
