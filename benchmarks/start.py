"""How soon many agents on one machine are up, and what they take of its memory.

    python benchmarks/start.py                # 50 agents, and two
    python benchmarks/start.py --agents 20
    python benchmarks/start.py --ratio        # 8 agents beside 8 bare processes with NumPy and a Zenoh session

Memory is read from /proc: what a process has to itself and its share of what it has in common with others (PSS; the sum
over agents is what the machine gives), and all that it touches (RSS). An agent imports no jax, matplotlib or
scikit-learn; the command fails if one does.

Python's bytecode of amble is written first, as pip does with a package that it installs: NumPy and Zenoh have theirs,
and a clone has none where PYTHONDONTWRITEBYTECODE is set. Without it, an agent takes twice the CPU time to start.
"""

import compileall
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from measure import parser, ratio_of, table

import amble
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.cluster.ports import free_ports

HEAVY = ("jaxlib", "matplotlib", "sklearn", "torch")
DEGREE = 4
BARE = """import sys, numpy, zenoh
listen = '{mode: "peer", listen: {endpoints: ["tcp/127.0.0.1:%s"]}, scouting: {multicast: {enabled: false}}}'
session = zenoh.open(zenoh.Config.from_json5(listen % sys.argv[1]))
print("up", flush=True)
sys.stdin.read()
session.close()"""


class Figures(NamedTuple):
    """Until all agents listen, are linked and have been visited; megabytes of each."""

    up_s: float
    linked_s: float
    visited_s: float
    pss_mb: float
    rss_mb: float


def memory_mb(pid):
    """PSS and RSS in MB."""
    figures = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        key, _, value = line.partition(":")
        figures[key] = int(value.split()[0]) / 1000
    return figures["Pss"], figures["Rss"]


def wait_until(condition, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not happen within {seconds} s")
        time.sleep(0.02)


def listens(port):
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def measure(agents, folder):
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=agents, ridge=1e-2)
    network = amble.networks.ring(agents) if agents < 8 else amble.networks.random(agents, DEGREE / (agents - 1), 0)
    config = configure(problem, amble.Relay(tokens=2), network, {"hops": 10**9}, 0, {"patience_s": 0.5 * agents})
    with Cluster.create(folder / str(agents), config, rows_of(problem, data.X, data.y)) as cluster:
        begin = time.monotonic()
        cluster.start_all()
        waiting = {peer.port for peer in config.peers}

        def all_listen():
            waiting.difference_update([port for port in waiting if listens(port)])
            return not waiting

        wait_until(all_listen, "that all agents listen")
        up_s = time.monotonic() - begin
        names = config.agents
        links = {name: len(config.agent(name).neighbours) for name in names}
        wait_until(lambda: all(len(cluster.status(n).up) == links[n] for n in names), "that all are linked")
        linked_s = time.monotonic() - begin
        wait_until(lambda: all(cluster.status(name).visits for name in names), "that all are visited")
        visited_s = time.monotonic() - begin
        sizes = [memory_mb(cluster.processes[name].pid) for name in names]
        for name in names:
            maps = Path(f"/proc/{cluster.processes[name].pid}/maps").read_text()
            if heavy := [module for module in HEAVY if module in maps]:
                sys.exit(f"{name} has loaded {', '.join(heavy)}")
    return Figures(up_s, linked_s, visited_s, *(sum(column) / agents for column in zip(*sizes, strict=True)))


def bare(count):
    """As many processes that import NumPy and listen with Zenoh, without TLS: seconds until all listen, PSS of each."""
    begin = time.monotonic()
    command = [sys.executable, "-c", BARE]
    started = [
        subprocess.Popen([*command, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for port in free_ports(count)
    ]
    for process in started:
        process.stdout.readline()
    up_s = time.monotonic() - begin
    sizes = [memory_mb(process.pid)[0] for process in started]
    for process in started:
        process.communicate()
    return up_s, sum(sizes) / count


def ratio(agents=8, repeats=3):
    pairs = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder_name:
            pairs.append((measure(agents, Path(folder_name)), bare(agents)))
    reference = f"{agents} bare processes with NumPy and Zenoh"
    times, sizes = ([(own[k], other[n]) for own, other in pairs] for k, n in ((0, 0), (3, 1)))
    yield ratio_of(f"until {agents} agents listen, by the clock", reference, times, "s")
    yield ratio_of(f"memory of an agent, of {agents}", reference, sizes, "MB")


def main():
    options = parser(__doc__)
    options.add_argument("--agents", type=int, default=50)
    options.add_argument("--ratio", action="store_true")
    asked = options.parse_args()
    compileall.compile_dir(Path(amble.__file__).parent, quiet=1)
    if asked.ratio:
        table(ratio(), asked.json)
        return
    with tempfile.TemporaryDirectory() as folder_name:
        for agents in (2, asked.agents):
            up_s, linked_s, visited_s, pss, rss = measure(agents, Path(folder_name))
            times = f"listen after {up_s:.1f} s, are linked after {linked_s:.1f} s and visited after {visited_s:.1f} s"
            print(f"{agents} agents: all {times}; {agents * pss:,.0f} MB, {pss:.0f} MB per agent (RSS {rss:.0f} MB)")


if __name__ == "__main__":
    main()
