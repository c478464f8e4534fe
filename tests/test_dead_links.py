"""Links that are dead in one direction, or both, while the system takes them for alive."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

from amble.live.transport.zenoh.pulse import SLACK_S, Pulse
from amble.live.transport.zenoh.sockets import cut_off
from live_delay import Delay
from live_samples import HOST, Agent, Authority, Ring, files

NAMESPACES = tuple(f"amble-{side}-{os.getpid()}" for side in ("left", "right"))  # others may be testing, too
ADDRESSES = ("10.91.6.1", "10.91.6.2")
NOWHERE = "02:00:00:00:00:99"
LEASE_S = 1.0
pytest.importorskip("zenoh")
pytestmark = pytest.mark.long


def ip(*words, quiet=False):
    subprocess.run(["ip", *words], check=not quiet, capture_output=quiet)


class Hosts:
    """Two network namespaces with a cable between them: as good as two machines. Agent b is alone on the right."""

    def __init__(self, stack):
        self.stack = stack
        for name in NAMESPACES:
            ip("netns", "del", name, quiet=True)
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name, quiet=True)
        ends = [word for k, name in enumerate(NAMESPACES) for word in ("name", f"amble{k}", "netns", name)]
        ip("link", "add", *ends[:4], "type", "veth", "peer", *ends[4:])
        stack.callback(ip, "-n", NAMESPACES[0], "link", "del", "amble0", quiet=True)  # dying connections keep it
        for k, name in enumerate(NAMESPACES):
            ip("-n", name, "addr", "add", f"{ADDRESSES[k]}/24", "dev", f"amble{k}")
            ip("-n", name, "link", "set", f"amble{k}", "up")
            ip("-n", name, "link", "set", "lo", "up")

    def cut(self, k):
        """Nothing that this host sends arrives: it goes to a card that nobody has."""
        far = ADDRESSES[1 - k]
        ip("-n", NAMESPACES[k], "neigh", "replace", far, "lladdr", NOWHERE, "dev", f"amble{k}", "nud", "permanent")

    def heal(self, k):
        ip("-n", NAMESPACES[k], "neigh", "del", ADDRESSES[1 - k], "dev", f"amble{k}")

    def start(self, folder, names):
        authority, where = Authority.make(), {name: (ADDRESSES[name == "b"], 21_000 + ord(name)) for name in names}
        agents = {}
        for name, (host, port) in where.items():
            authority.issue(folder / name, name, host=host)
            near = [(other, *where[other]) for other in names if other != name]
            address = {"name": name, "host": host, "port": port, "neighbours": near, "run": "run1", "lease_s": LEASE_S}
            agents[name] = Agent(address | files(folder / name), NAMESPACES[name == "b"])
            self.stack.callback(agents[name].end)
        for agent in agents.values():
            for name, _, _ in agent.address["neighbours"]:
                agent.wait(peer=name, up=True)
        return agents


@pytest.fixture
def hosts():
    if os.name != "posix" or os.geteuid() != 0 or not shutil.which("ip"):
        pytest.skip("network namespaces need root and ip")
    with contextlib.ExitStack() as stack:
        try:
            made = Hosts(stack)
        except subprocess.CalledProcessError:
            pytest.skip("this machine allows no network namespaces")
        yield made


@pytest.mark.parametrize(("asking", "asked"), ["ab", "ba"], ids=["who dials asks", "who is dialled asks"])
@pytest.mark.parametrize("cut", [0, 1], ids=["from the left", "from the right"])
def test_a_link_that_is_cut_in_one_direction_is_down_at_both_ends_and_heals(tmp_path, hosts, cut, asking, asked):
    """With more on its way than the system's buffers hold: Zenoh then waits forever to send it, link or no link."""
    agents = hosts.start(tmp_path, "abc")
    hosts.cut(cut)
    agents[asking].tell(to=asked, words="large", size=2_000_000, timeout_s=60)
    bound_s = LEASE_S + SLACK_S + 10
    agents[asking].wait(peer=asked, up=False, within_s=bound_s)
    agents[asked].wait(peer=asking, up=False, within_s=bound_s)
    assert agents[asking].wait(asked="large", within_s=bound_s)["last"] is None
    since = {name: len(agents[name].said) for name in "ab"}
    assert agents["a"].ask("c")["last"] == "a said hello"  # the other links live
    assert not [event for event in agents["a"].said if event.get("peer") == "c" and not event["up"]]
    assert not [event for event in agents[asking].said[since[asking] :] if event.get("up")]  # it has not answered
    hosts.heal(cut)
    agents["a"].wait(since["a"], peer="b", up=True, within_s=20)
    agents["b"].wait(since["b"], peer="a", up=True, within_s=20)
    assert agents[asking].ask(asked, "again")["last"] == f"{asking} said again"
    assert agents[asked].ask(asking, "again")["last"] == f"{asked} said again"


def test_a_neighbour_whose_link_lives_but_that_does_not_answer_is_down_until_it_answers(tmp_path):
    """Zenoh's own threads say that they are there, whatever Python does. A long visit is no silence."""
    ring = Ring(tmp_path, ["a", "b"], lease_s=LEASE_S)
    with contextlib.ExitStack() as stack:
        a, b = (Agent(ring.address(name)) for name in ring.names)
        for agent, other in ((a, "b"), (b, "a")):
            stack.callback(agent.end)
            agent.wait(peer=other, up=True)
        a.tell(to="b", words="hold", timeout_s=60)
        time.sleep(LEASE_S + SLACK_S + 1.0)
        assert not [event for event in a.said + b.said if event.get("up") is False]
        b.tell(block_s=LEASE_S + SLACK_S + 2.0)
        a.wait(peer="b", up=False)
        since = len(a.said)
        a.wait(since, peer="b", up=True)
        assert a.ask("b", "again")["last"] == "a said again"
        assert b.ask("a", "again")["last"] == "b said again"


def test_round_trips_of_more_than_half_a_second_are_linked_and_stay_so(tmp_path):
    """A link takes five round trips: TCP, TLS, and two of Zenoh's and one to spare; the lease is for a sign of life."""
    ring = Ring(tmp_path, ["a", "b"], lease_s=2.0)
    with contextlib.ExitStack() as stack:
        line = Delay(ring.ports["b"], 0.3)
        stack.callback(line.close)
        b = Agent(ring.address("b"))
        a = Agent(ring.address("a", neighbours=[("b", HOST, line.port)]))
        for agent, other in ((a, "b"), (b, "a")):
            stack.callback(agent.end)
            agent.wait(peer=other, up=True)
        assert a.ask("b")["last"] == "a said hello"
        time.sleep(5.0)
        assert not [event for event in a.said + b.said if event.get("up") is False]


def pulse():
    return Pulse(["b", "c"], lease_s=2.0, now=0.0)


def test_who_answers_questions_is_not_probed():
    kept = pulse()
    for tenth in range(1, 100):
        kept.proved("b", tenth / 10)
        assert kept.silent(tenth / 10, ["b"]) == []
        assert kept.due(tenth / 10, ["b"]) == []


def test_who_is_idle_is_probed_twice_in_a_lease():
    kept, probed = pulse(), []
    for tenth in range(1, 101):
        if kept.due(tenth / 10, ["b"]):
            probed.append(tenth / 10)
            kept.proved("b", tenth / 10)
    assert probed == [float(second) for second in range(1, 11)]


def test_who_answers_nothing_is_silent_until_it_answers():
    kept, fallen = pulse(), []
    for tenth in range(1, 100):
        fallen += [tenth / 10] * (kept.silent(tenth / 10, ["b"]) == ["b"])
        kept.due(tenth / 10, ["b"])
    assert fallen == [pytest.approx(4.1)]  # the lease and the slack
    assert not kept.answers("b")
    kept.begin("b", 10.0)  # a new link
    assert not kept.answers("b")
    assert kept.due(10.0, ["b"]) == ["b"]  # at once
    kept.proved("b", 10.0)
    kept.speaks("b")
    assert kept.answers("b")


def test_an_answer_proves_the_time_of_its_question():
    """A question of long ago that is answered now says nothing about now."""
    kept = pulse()
    for tenth in range(1, 41):
        kept.silent(tenth / 10, ["b"])
    kept.proved("b", 0.1)
    assert kept.silent(4.2, ["b"]) == ["b"]


def test_a_pause_of_our_own_is_nobodys_silence():
    kept = pulse()
    kept.proved("b", 1.0)
    assert kept.silent(1.5, ["b"]) == []
    assert kept.silent(60.0, ["b"]) == []
    assert kept.due(60.5, ["b"]) == ["b"]
    assert kept.silent(61.0, ["b"]) == []


def limits_after(soft, hard):
    """Of a process that starts with these limits of open files."""
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}));"
        "from amble.live.transport.sockets import more_files; more_files();"
        "print(*resource.getrlimit(resource.RLIMIT_NOFILE))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [int(word) for word in done.stdout.split()]


@pytest.mark.skipif(os.name != "posix", reason="there is no such limit")
def test_an_agent_may_have_as_many_open_files_as_its_system_allows():
    """With 1,024, as many idle connections of strangers kept everybody out."""
    assert limits_after(512, 4096) == [4096, 4096]
    assert limits_after(512, 512) == [512, 512]


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="open files are not shown")
def test_a_connection_that_was_given_up_is_cut_off():
    with socket.create_server((HOST, 0)) as listener, socket.create_connection(listener.getsockname()) as near:
        far = listener.accept()[0]
        here, there = ("tls/{}:{}".format(*address) for address in (near.getsockname(), near.getpeername()))
        before = len(os.listdir("/dev/fd"))
        assert not cut_off(here, "tls/127.0.0.1:1")
        assert cut_off(here, there)
        with far:
            assert far.recv(1) == b""
        with pytest.raises(BrokenPipeError):
            near.send(b"-")
        assert len(os.listdir("/dev/fd")) == before - 1  # far's
