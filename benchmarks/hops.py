"""How long a live hop takes beside a bare question and answer over the same links, in one run.

    python benchmarks/hops.py            # a ring of 8 agents, 3 tokens, next to no computing: WPG with 11 unknowns

A hop is what lies between two visits of a token: an answer, a question, its decoding, a visit, a journal transaction
that is on the disk before the answer goes out, encoding. The bare question has the size of a hop's message and is
answered at once. What the journal's sync costs is measured on its own: the same transaction with and without it.
"""

import queue
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import amble
from amble.live import visits
from amble.live.cluster import Cluster, configure, free_ports, rows_of
from amble.live.effects import Persist, Visit
from amble.live.formats import wire
from amble.live.formats.journal import Journal
from amble.live.formats.shape import Shape
from amble.live.message import Epoch, Token
from amble.live.network.place import Link, Place
from amble.live.network.transport import Transport
from amble.live.trust import identity

SECONDS = 20
QUESTIONS = 2000


def bare_us(folder, size):
    """Median microseconds of a question of this size and an answer at once, over mTLS between two agents."""
    run = "0" * 32
    ports = dict(zip(("one", "two"), free_ports(2), strict=True))
    identity.make_authority(folder / "authority", "bare", 10)
    opened = []
    for name, other in (("one", "two"), ("two", "one")):
        identity.issue(folder / "authority", name, ["127.0.0.1"], folder / name, 10)
        place = Place(
            name, "127.0.0.1", ports[name], (Link(other, "127.0.0.1", ports[other]),), run,
            folder / name / identity.AUTHORITY, folder / name / identity.CERTIFICATE, folder / name / identity.KEY,
        )  # fmt: skip
        up = queue.SimpleQueue()
        opened.append(
            (Transport.open(place, lambda _, __, reply: reply(b"yes"), lambda *peer, up=up: up.put(peer)), up)
        )
    (first, up), (second, _) = opened
    up.get(timeout=30)
    time.sleep(0.5)
    answers, payload, taken = queue.SimpleQueue(), bytes(size), []
    for _ in range(QUESTIONS):
        begin = time.perf_counter()
        first.ask("two", payload, 5, answers.put)
        assert answers.get(timeout=10) == b"yes"
        taken.append(time.perf_counter() - begin)
    first.close()
    second.close()
    return statistics.median(taken) * 1e6


def journal_us(folder, config, problem, sync):
    """Median microseconds of a visit's transaction."""
    kind = visits.make(config.method, config.model.dimension, len(config.peers))
    shape = Shape(config.agent(config.agents[0]).digest, config.agents, config.method.tokens, kind.parcel(0))
    f = problem.objective(0)
    journal = Journal.open(folder / f"{sync}.db", shape, kind, f, config.agents[0])
    journal.connection.execute(f"PRAGMA synchronous = {sync}")
    holder, _, parcel = kind.visit(f, kind.holder(f), kind.share(), kind.parcel(0), 0, 1, True)
    taken = []
    for hop in range(500):
        rows = {"holder": holder}
        visit = Visit(0, Epoch(0, 0), hop, config.agents[1], hop, parcel, parcel)
        begin = time.perf_counter()
        journal.persist(Persist(rows, visit), time.time())
        taken.append(time.perf_counter() - begin)
    journal.close()
    return statistics.median(taken) * 1e6


def main():
    agents, tokens = 8, 3
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=agents, ridge=1e-2)
    config = configure(
        problem, amble.WPG(alpha=0.1, tokens=tokens), amble.networks.ring(agents), {"seconds": SECONDS}, 0, {}
    )
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        with Cluster.make(folder / "bundle", config, rows_of(problem, data.X, data.y)) as cluster:
            cluster.start_all()
            while cluster.running():
                time.sleep(0.5)
            if cluster.failed():
                sys.exit(f"agents failed: {cluster.failed()}")
        times = {}
        for name in config.agents:
            journal = sqlite3.connect(f"file:{folder / 'bundle' / name / 'journal.db'}?mode=ro", uri=True)
            for token, time_s in journal.execute("SELECT token, time_s FROM visits"):
                times.setdefault(token, []).append(time_s)
            journal.close()
        walked = [np.sort(found) for found in times.values()]
        end = min(found[-1] for found in walked)
        steady = [found[(found > end - SECONDS / 2) & (found < end)] for found in walked]
        hops_s = sum(len(found) for found in steady) / (SECONDS / 2)
        hop_us = float(np.median(np.concatenate([np.diff(found) for found in steady]))) * 1e6
        kind = visits.make(config.method, config.model.dimension, agents)
        shape = Shape(config.agent(config.agents[0]).digest, config.agents, tokens, kind.parcel(0))
        message = Token(0, Epoch(0, 0), 1, config.agents[0], kind.parcel(0))
        size = len(wire.encode(shape, message))
        bare = bare_us(folder / "bare", size)
        synced, unsynced = (journal_us(folder, config, problem, sync) for sync in ("FULL", "OFF"))
    print(f"{agents} agents in a ring, {tokens} tokens, {size} B: {hops_s:,.0f} hops/s, median hop {hop_us:,.0f} us")
    print(f"a bare question and answer of that size: {bare:,.0f} us; a hop is {hop_us / bare:.1f} times as long")
    print(f"a visit's journal transaction: {synced:,.0f} us, of which {synced - unsynced:,.0f} us is the disk's sync")


if __name__ == "__main__":
    main()
