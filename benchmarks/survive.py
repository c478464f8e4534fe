"""Real agents that are killed, frozen, cut off, filled up: does the run recover, and how soon do tokens walk again?

    python benchmarks/survive.py                      # everything: about ten minutes
    python benchmarks/survive.py kill --seconds 60    # kill -9 of a random agent every second, each started again
    python benchmarks/survive.py death                # two of ten killed for good
    python benchmarks/survive.py tracked              # the same with API-BCD's tracked rule
    python benchmarks/survive.py freeze               # SIGSTOP for five seconds
    python benchmarks/survive.py cut                  # two network namespaces, and no link between them for 5 s
    python benchmarks/survive.py disk                 # one agent's disk full for five seconds
    python benchmarks/survive.py logistic             # kill -9, logistic loss, the full form of Relay, 3 tokens
    python benchmarks/survive.py logistic-scalar      # the same with the scalar form
    python benchmarks/survive.py softmax              # the same with three classes, the full form
    python benchmarks/survive.py grey                 # one agent's disk hangs for 30 s: it is up, and does not work
    python benchmarks/survive.py one-way              # what one agent says to one other is lost for 30 s

Each run ends after a stated time, not when it has converged, and then every agent that is left must have the optimum of
the data that was there, to 1e-6 (in `tracked`: the answer of API-BCD, a penalty method, for these agents). `cut`,
`disk`, `grey` and `one-way` need root (ip netns, mount) and are left out without it.
"""

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

import amble
from amble.live.cluster.cluster import Cluster, configure, rows_of

RIGHT = 1e-6
NAMESPACES = tuple(f"amble-{side}-{os.getpid()}" for side in ("west", "east"))  # others may run this, too
ADDRESSES = ("10.91.7.1", "10.91.7.2")
THIRD, NOWHERE = "10.91.7.3", "02:00:00:00:00:99"  # an address more on the second host, and a card that nobody has


class Apart(Cluster):
    """Agents of each half in a network namespace of their own."""

    @staticmethod
    def half(k):
        return k % 2

    @classmethod
    def hosts(cls, config):
        return [ADDRESSES[cls.half(k)] for k in range(len(config.agents))]

    def start(self, name):
        half = self.half(self.config.agents.index(name))
        with (self.folder / name / "log.txt").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                ["ip", "netns", "exec", NAMESPACES[half], sys.executable, "-m", "amble", "agent",
                 str(self.folder / name), "--leash"],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip


def prepare(
    folder, arguments, agents, tokens, seconds, kind=Cluster, density=0.6, method=None, name="diabetes", timing=None
):
    data = amble.load(name)
    X, y = (data.X[:, 18:26], data.y % 3) if name == "digits" else (data.X, data.y)  # three classes of 8 pixels
    problem = amble.Problem.from_arrays(X, y, agents=agents, ridge=1e-2, task=data.task)
    network = amble.networks.random(agents, density, 3)
    method = method or amble.Relay(tokens=tokens)
    config = configure(
        problem, method, network, {"seconds": seconds}, 0, {"pause_s": arguments.pause, **(timing or {})}
    )
    if issubclass(kind, Apart):
        hosts = zip(config.peers, kind.hosts(config), strict=True)
        peers = tuple(peer._replace(host=host) for peer, host in hosts)
        config = replace(config, peers=peers)
    return problem, kind.create(folder, config, rows_of(problem, X, y))


def ready(cluster):
    """Until every agent has been visited."""
    deadline = time.monotonic() + 60
    while not all(cluster.status(name).visits for name in cluster.config.agents):
        if time.monotonic() > deadline or cluster.failed():
            raise SystemExit(f"the agents did not start: {cluster.failed()}")
        time.sleep(0.1)


def finish(cluster, problem, dead=()):
    """Wait for the end; the largest distance of a living agent's model to the living agents' optimum."""
    deadline = time.monotonic() + 120
    while set(cluster.running()) - set(dead) and time.monotonic() < deadline:
        time.sleep(0.2)
    alive = [k for k, name in enumerate(cluster.config.agents) if name not in dead]
    rest = [problem.objective(k) for k in alive]
    method = cluster.config.method
    if isinstance(method, amble.APIBCD):
        best = penalised(rest, method.tau * method.tokens, np.zeros(problem.dimension))
    else:
        best = amble.Problem.from_objectives(rest, problem.dimension).optimum().w
    models = [cluster.model(cluster.config.agents[k]) for k in alive]
    return max(float(np.linalg.norm(model - best) / np.linalg.norm(best)) for model in models)


def penalised(objectives, penalty, z):
    """Where I-BCD with this penalty ends, and API-BCD's tracked rule with a M-th of it: z is the mean of the x_i."""
    for _ in range(10_000):
        z = np.mean([f.prox(z, penalty, z) for f in objectives], axis=0)
    return z


def walks(cluster):
    """When each token was visited, by all agents' journals: token -> times."""
    times = {}
    for name in cluster.config.agents:
        journal = sqlite3.connect(f"file:{cluster.folder / name / 'journal.db'}?mode=ro", uri=True)
        for token, time_s in journal.execute("SELECT token, time_s FROM visits"):
            times.setdefault(token, []).append(time_s)
        journal.close()
    return {token: np.sort(token_times) for token, token_times in times.items()}


def longest_rest_s(cluster, begin_s, end_s):
    """The longest pause of a token between these two."""
    rests = []
    for times_s in walks(cluster).values():
        inside = times_s[(times_s >= begin_s - 1) & (times_s <= end_s + 30)]
        rests.append(np.diff(inside).max(initial=0.0))
    return max(rests)


def again_after_s(times, kills):
    """The longest time between a kill that stopped a token and the token's next visit; a second one may come while
    the token still waits because of the first, and then the second counts."""
    before = np.searchsorted(kills, times[1:]) - 1  # the last kill before each visit
    during = (before >= 0) & (np.array(kills)[before] > times[:-1]) & (np.diff(times) > 1.0)
    return float((times[1:] - np.array(kills)[before])[during].max(initial=0.0))


def kill(folder, arguments, tokens=2, **options):
    chance = random.Random(arguments.seed)
    problem, cluster = prepare(folder, arguments, 8, tokens, arguments.seconds + arguments.rest, **options)
    with cluster:
        cluster.start_all()
        ready(cluster)
        kills, begin_s = [], time.time()
        while time.time() < begin_s + arguments.seconds:
            name = chance.choice(cluster.config.agents)
            kills.append(time.time())
            cluster.kill(name)
            time.sleep(1)
            cluster.start(name)
        ended_s = time.time()
        distance = finish(cluster, problem)
    walked = walks(cluster)
    hops, again_s = sum(map(len, walked.values())), max(again_after_s(times, kills) for times in walked.values())
    return (
        f"{len(kills)} kills in {arguments.seconds:.0f} s, 8 agents, {hops:,} hops; tokens walk again {again_s:.2f} s "
        "at most after the last kill that stopped them",
        distance,
        longest_rest_s(cluster, begin_s, ended_s),
    )


def logistic(folder, arguments):
    scene, *measured = kill(folder, arguments, 3, name="breast_cancer")
    return f"logistic, full, 3 tokens: {scene}", *measured


def logistic_scalar(folder, arguments):
    method = amble.Relay(tokens=3, form="scalar")
    scene, *measured = kill(folder, arguments, 3, name="breast_cancer", method=method)
    return f"logistic, scalar, 3 tokens: {scene}", *measured


def softmax(folder, arguments):
    scene, *measured = kill(folder, arguments, 2, name="digits")
    return f"softmax, full, 2 tokens: {scene}", *measured


def death(folder, arguments, method=None):
    problem, cluster = prepare(folder, arguments, 10, 2, arguments.rest, method=method)
    dead = cluster.config.agents[3], cluster.config.agents[6]
    with cluster:
        cluster.start_all()
        ready(cluster)
        begin_s = time.time()
        for name in dead:
            cluster.kill(name)
        distance = finish(cluster, problem, dead)
    return "2 of 10 killed for good", distance, longest_rest_s(cluster, begin_s, begin_s + 10)


def tracked(folder, arguments):
    scene, distance, pause_s = death(folder, arguments, amble.APIBCD(tau=0.05, tokens=2, token_rule="tracked"))
    return f"{scene}, API-BCD tracked", distance, pause_s


def freeze(folder, arguments):
    problem, cluster = prepare(folder, arguments, 8, 2, 5 + arguments.rest)
    with cluster:
        cluster.start_all()
        ready(cluster)
        begin_s, process = time.time(), cluster.processes[cluster.config.agents[2]]
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(5)
        os.kill(process.pid, signal.SIGCONT)
        distance = finish(cluster, problem)
    return "one of 8 frozen for 5 s", distance, longest_rest_s(cluster, begin_s, begin_s + 10)


@contextmanager
def two_namespaces():
    """Two network namespaces joined by a pair of links: as good as two machines."""

    def ip(*command, quiet=False):
        subprocess.run(["ip", *command], check=not quiet, capture_output=quiet)

    for name in NAMESPACES:
        ip("netns", "del", name, quiet=True)
    try:
        for name in NAMESPACES:
            ip("netns", "add", name)
        ip(
            "link",
            "add",
            "amble0",
            "netns",
            NAMESPACES[0],
            "type",
            "veth",
            "peer",
            "name",
            "amble1",
            "netns",
            NAMESPACES[1],
        )
        for k, name in enumerate(NAMESPACES):
            ip("-n", name, "addr", "add", f"{ADDRESSES[k]}/24", "dev", f"amble{k}")
            ip("-n", name, "link", "set", f"amble{k}", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield lambda state: ip("-n", NAMESPACES[0], "link", "set", "amble0", state)
    finally:
        for name in NAMESPACES:
            ip("netns", "del", name, quiet=True)


def cut(folder, arguments):
    with two_namespaces() as link:
        problem, cluster = prepare(folder, arguments, 8, 2, 5 + arguments.rest, Apart)
        with cluster:
            cluster.start_all()
            ready(cluster)
            begin_s = time.time()
            link("down")
            time.sleep(5)
            link("up")
            distance = finish(cluster, problem)
    return "8 agents on two hosts, 5 s apart", distance, longest_rest_s(cluster, begin_s, begin_s + 10)


def disk(folder, arguments):
    problem, cluster = prepare(folder, arguments, 8, 2, 5 + arguments.rest)
    small = cluster.folder / cluster.config.agents[1]
    kept = Path(tempfile.mkdtemp()) / "kept"
    shutil.copytree(small, kept)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "tmpfs", str(small)], check=True)
    try:
        for file in kept.iterdir():
            shutil.copy2(file, small)
        with cluster:
            cluster.start_all()
            ready(cluster)
            begin_s = time.time()
            filler = small / "filler"
            with filler.open("wb", buffering=0) as filled:
                try:
                    while True:
                        filled.write(bytes(4096))
                except OSError:
                    pass
            time.sleep(5)
            filler.unlink()
            distance = finish(cluster, problem)
        pause_s = longest_rest_s(cluster, begin_s, begin_s + 10)
    finally:
        subprocess.run(["umount", str(small)], check=False)
    return "one of 8 with a full disk for 5 s", distance, pause_s


@contextmanager
def small_disk(folder):
    """The folder on a file system of its own, which can be made to hang."""
    place = Path(tempfile.mkdtemp())
    image, kept = place / "disk", place / "kept"
    shutil.copytree(folder, kept)
    with image.open("wb") as file:
        file.truncate(64 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(folder)], check=True)
    try:
        for file in kept.iterdir():
            shutil.copy2(file, folder)
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=False)
        shutil.rmtree(place)


def hops_per_s(cluster, begin_s, for_s):
    """In words: in the three seconds before something failed, and while it did."""
    times = np.concatenate(list(walks(cluster).values()))
    before = ((times >= begin_s - 3) & (times < begin_s)).sum() / 3
    during = ((times >= begin_s) & (times < begin_s + for_s)).sum() / for_s
    return f"{before:.0f} hops/s before, {during:.0f} during"


def doubted(cluster, name):
    """Which neighbours said in their status that it does not work."""
    return sorted(other for other in cluster.config.agents if name in cluster.status(other).doubts)


def grey(folder, arguments):
    problem, cluster = prepare(folder, arguments, 8, 2, arguments.grey + arguments.rest, timing={"stall_s": 3.0})
    name = cluster.config.agents[1]
    with small_disk(cluster.folder / name), cluster:
        cluster.start_all()
        ready(cluster)
        time.sleep(3)
        begin_s = time.time()
        subprocess.run(["fsfreeze", "-f", str(cluster.folder / name)], check=True)
        try:
            time.sleep(arguments.grey)
            named = doubted(cluster, name)
        finally:
            subprocess.run(["fsfreeze", "-u", str(cluster.folder / name)], check=True)
        distance = finish(cluster, problem)
        rates = hops_per_s(cluster, begin_s, arguments.grey)
        pause_s = longest_rest_s(cluster, begin_s, begin_s + arguments.grey)
    scene = f"the disk of one of 8 hangs for {arguments.grey:.0f} s: {rates}, doubted by {len(named)} neighbours"
    return scene, distance, pause_s


class OneApart(Apart):
    """The first agent on a host of its own, and with an address of its own who has the first token after it."""

    @staticmethod
    def half(k):
        return int(k > 0)

    @classmethod
    def hosts(cls, config):
        after = config.next[0][config.agents[0]]
        hosts = zip(config.agents, super().hosts(config), strict=True)
        return [THIRD if name == after else host for name, host in hosts]


def one_way(folder, arguments):
    """What the first agent sends to the next on a token's way goes to a card that nobody has; the way back is open."""
    with two_namespaces():
        subprocess.run(["ip", "-n", NAMESPACES[1], "addr", "add", f"{THIRD}/24", "dev", "amble1"], check=True)
        problem, cluster = prepare(
            folder, arguments, 5, 2, arguments.grey + arguments.rest, OneApart, density=1.0, timing={"stall_s": 3.0}
        )
        neighbour = ["ip", "-n", NAMESPACES[0], "neigh"]
        with cluster:
            cluster.start_all()
            ready(cluster)
            time.sleep(3)
            begin_s = time.time()
            to = [THIRD, "lladdr", NOWHERE, "dev", "amble0", "nud", "permanent"]
            subprocess.run([*neighbour, "replace", *to], check=True)
            time.sleep(arguments.grey)
            subprocess.run([*neighbour, "del", THIRD, "dev", "amble0"], check=True)
            distance = finish(cluster, problem)
        rates = hops_per_s(cluster, begin_s, arguments.grey)
        pause_s = longest_rest_s(cluster, begin_s, begin_s + arguments.grey)
    return f"one link of 5 agents dead one way for {arguments.grey:.0f} s: {rates}", distance, pause_s


SCENES = {
    "kill": kill, "death": death, "tracked": tracked, "freeze": freeze, "cut": cut, "disk": disk, "logistic": logistic,
    "logistic-scalar": logistic_scalar, "softmax": softmax, "grey": grey, "one-way": one_way,
}  # fmt: skip
ROOT = ("cut", "disk", "grey", "one-way")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", choices=[*SCENES, []], help=", ".join(SCENES) + "; all by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long agents are killed")
    parser.add_argument("--grey", type=float, default=30.0, help="how long an agent or a link does not work")
    parser.add_argument("--seed", type=int, default=1, help="which agents are killed")
    parser.add_argument("--rest", type=float, default=25.0, help="how many seconds a run has to recover")
    parser.add_argument("--pause", type=float, default=0.0, help="by how many seconds each visit takes longer")
    arguments = parser.parse_args()
    wrong = 0
    for name in arguments.scenes or SCENES:
        if name in ROOT and os.geteuid() != 0:
            print(f"{name:15} left out: it needs root")
            continue
        with tempfile.TemporaryDirectory() as folder:
            scene, distance, pause_s = SCENES[name](Path(folder) / "bundle", arguments)
        fine = distance <= RIGHT
        wrong += not fine
        print(f"{name:15} {scene}: distance to the optimum {distance:.1e} ({'right' if fine else 'WRONG'}); "
              f"the longest pause of a token was {pause_s:.2f} s", flush=True)  # fmt: skip
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
