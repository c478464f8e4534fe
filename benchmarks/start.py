"""How soon many agents on one machine are up, and what they take of its memory.

    python benchmarks/start.py                # 50 agents, and two
    python benchmarks/start.py --agents 20

Memory is read from /proc: what a process has to itself and its share of what it has in common with others (PSS; the sum
over agents is what the machine gives), and all that it touches (RSS). An agent imports no jax, matplotlib or
scikit-learn; the command fails if one does.
"""

import argparse
import socket
import sys
import tempfile
import time
from pathlib import Path

import amble
from amble.live.cluster.cluster import Cluster, configure, rows_of

HEAVY = ("jaxlib", "matplotlib", "sklearn", "torch")
DEGREE = 4


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
    pss, rss = (sum(column) for column in zip(*sizes, strict=True))
    times = f"all listen after {up_s:.1f} s, are linked after {linked_s:.1f} s and visited after {visited_s:.1f} s"
    print(f"{agents} agents: {times}; {pss:,.0f} MB in all, {pss / agents:.0f} MB an agent (RSS {rss / agents:.0f} MB)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", type=int, default=50)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder_name:
        for agents in (2, asked.agents):
            measure(agents, Path(folder_name))


if __name__ == "__main__":
    main()
