"""How long a live hop takes beside a bare Zenoh query of the same size over the same links, in one run.

    python benchmarks/hops.py            # a ring of 8 agents, next to no computing: WPG with 11 unknowns
    python benchmarks/hops.py --tokens 3 --rounds 5
    python benchmarks/hops.py --ratio    # as rows of the table of all benchmarks

One token alone shows how long a hop takes; three tokens load both cores, and show what a hop costs.

A hop is what lies between two visits of a token: a question, its decoding, a visit, a journal transaction that is on
the disk before the answer goes out, encoding. It is held against three things, all with Zenoh as amble sets it up
(mTLS, access control) and nothing of amble's around it:

    lone    one query between two processes that have nothing else to do, from asking to the answer
    ring    as many processes in a ring and as many queries walking as the run has agents and tokens; each is answered
            at once and asked of the next. This has the run's load, so the two share the cores alike.
    synced  the same ring, where each query is written over an old one in a file, and is on the disk (fdatasync), before
            it is answered: the least that a hop can cost that survives a power failure

The rounds alternate between the live ring and the bare ones, because others may use the machine: compare within a
round. At the end are the medians of the rounds' ratios.
CPU time is that of all processes together, by the kernel's count. A hop has one journal transaction; what that takes is
measured on its own, with and without the disk's sync.
"""

import argparse
import contextlib
import itertools
import json
import os
import queue
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure import parser, ratio_of, table

import amble
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.cluster.ports import free_ports
from amble.live.core import visits
from amble.live.core.effects import Custody, Persist, Share, Sight, Visit
from amble.live.core.message import Epoch, Token
from amble.live.formats import wire
from amble.live.formats.shape import Shape
from amble.live.journal.journal import Journal
from amble.live.transport.address import Address, Link
from amble.live.transport.zenoh.configuration import ask_key, settings
from amble.live.trust import identity

AGENTS, TOKENS = 8, (1, 3)
START_S, MEASURE_S = 4.0, 8.0
FILE_BYTES, PAGE_BYTES = 2**20, 4096  # of a bare agent that syncs
QUERIES, TRANSACTIONS = 2000, 500
PING = 255
RUN = "0" * 32


class Pace(NamedTuple):
    """What was measured of a ring."""

    hops_s: float
    hop_us: float  # the median
    cpu_us: float  # a hop


def cpu_s(pids):
    """CPU seconds that processes have used, all their threads."""
    total = 0.0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def measured(pids, times_of):
    """Wait for the start, measure; `times_of` gives each token's times once the processes have ended."""
    time.sleep(START_S)
    begin_s, begin_cpu_s = time.time(), cpu_s(pids)
    time.sleep(MEASURE_S)
    end_s, end_cpu_s = time.time(), cpu_s(pids)
    walked = [np.sort(times) for times in times_of()]
    steady = [times[(times > begin_s) & (times < end_s)] for times in walked]
    hops = sum(map(len, steady))
    median_s = float(np.median(np.concatenate([np.diff(times) for times in steady])))
    return Pace(hops / (end_s - begin_s), median_s * 1e6, (end_cpu_s - begin_cpu_s) / hops * 1e6)


def live(folder, config, rows):
    """The ring as amble runs it."""
    with Cluster.create(folder, config, rows) as cluster:

        def times():
            while cluster.running():
                time.sleep(0.2)
            if cluster.failed():
                sys.exit(f"agents failed: {cluster.failed()}")
            figures = {}
            for name in config.agents:
                address = f"file:{folder / name / 'journal.db'}?mode=ro"
                with contextlib.closing(sqlite3.connect(address, uri=True)) as journal:
                    for token, time_s in journal.execute("SELECT token, time_s FROM visits"):
                        figures.setdefault(token, []).append(time_s)
            return figures.values()

        cluster.start_all()
        return measured([process.pid for process in cluster.processes.values()], times)


class Bare:
    """One agent's end of the bare links: a Zenoh session as amble sets it up."""

    def __init__(self, folder, names, ports, me, later=False):
        import zenoh

        self.zenoh, self.later, name = zenoh, later, names[me]
        near = {(me + 1) % len(names), (me - 1) % len(names)}
        address = Address(
            name, "127.0.0.1", ports[me], tuple(Link(names[k], "127.0.0.1", ports[k]) for k in near), RUN,
            folder / name / identity.AUTHORITY, folder / name / identity.CERTIFICATE, folder / name / identity.KEY,
        )  # fmt: skip
        self.session = zenoh.open(zenoh.Config.from_json5(json.dumps(settings(address))))
        self.heard = queue.SimpleQueue()
        self.asked = ask_key(RUN, name, names[me - 1])
        self.asking = ask_key(RUN, names[(me + 1) % len(names)], name)
        self.session.declare_queryable(self.asked, self.callback(self.hear))

    def callback(self, function):
        return self.zenoh.handlers.Callback(function, indirect=False)

    def hear(self, query):
        payload = bytes(query.payload)
        at_once = payload[0] == PING or not self.later
        if at_once:
            self.reply(query)
        self.heard.put((payload, None if at_once else query))

    def reply(self, query):
        query.reply(self.asked, b"yes")
        query.drop()

    def ask(self, payload, answered):
        self.session.get(
            self.asking, answered, payload=payload, timeout=10.0,
            consolidation=self.zenoh.ConsolidationMode.NONE, congestion_control=self.zenoh.CongestionControl.DROP,
        )  # fmt: skip


class Disk:
    """A file as large as it will be: what is written over its pages changes no size, so that a sync costs least."""

    def __init__(self, path):
        self.file, self.pages = os.open(path, os.O_RDWR | os.O_CREAT), itertools.cycle(range(FILE_BYTES // PAGE_BYTES))
        os.pwrite(self.file, bytes(FILE_BYTES), 0)
        os.fsync(self.file)

    def keep(self, payload):
        os.pwrite(self.file, payload.ljust(PAGE_BYTES, b"\0"), next(self.pages) * PAGE_BYTES)
        os.fdatasync(self.file)


def bare_agent(folder, names, ports, me, size, tokens, synced):
    """The whole of a process of a bare ring: once all are told to begin, it passes on what it hears."""
    bare, times, there = Bare(folder, names, ports, me, synced), {}, threading.Event()
    disk = Disk(folder / f"{names[me]}.pages") if synced else None
    ping = bare.callback(lambda reply: there.set() if reply.ok else None)
    while not there.wait(0.2):
        bare.ask(bytes([PING]), ping)
    print("there", flush=True)
    sys.stdin.readline()
    ignored = bare.callback(lambda _: None)
    end_s = time.monotonic() + START_S + MEASURE_S + 1.0
    if me < tokens:
        bare.heard.put((bytes([me]) * size, None))
    while (left_s := end_s - time.monotonic()) > 0:
        with contextlib.suppress(queue.Empty):
            heard, query = bare.heard.get(timeout=left_s)
            if heard[0] == PING:
                continue
            times.setdefault(heard[0], []).append(time.time())
            if disk:
                disk.keep(heard)
            if query:
                bare.reply(query)
            bare.ask(heard, ignored)
    print(json.dumps(times), flush=True)
    time.sleep(1.0)
    bare.session.close()


def start_bare(folder, names, ports, me, size, tokens=0, synced=False):
    arguments = json.dumps([str(folder), names, ports, me, size, tokens, synced])
    command = [sys.executable, __file__, "--bare", arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def bare_ring(folder, names, size, tokens, synced):
    """The same ring with nothing but Zenoh, and the disk."""
    ports = free_ports(len(names))
    started = [start_bare(folder, names, ports, me, size, tokens, synced) for me in range(len(names))]
    for process in started:
        process.stdout.readline()
    for process in started:
        process.stdin.write("begin\n")
        process.stdin.flush()

    def times():
        figures = {}
        for process in started:
            for token, times_s in json.loads(process.communicate()[0].splitlines()[-1]).items():
                figures.setdefault(token, []).extend(times_s)
        return figures.values()

    return measured([process.pid for process in started], times)


def lone_us(folder, names, size):
    """Median microseconds of a query, from asking to the answer, between two processes with nothing else to do."""
    ports, answers, payload, taken = free_ports(2), queue.SimpleQueue(), bytes([PING]) * size, []
    first, second = Bare(folder, names[:2], ports, 0), start_bare(folder, names[:2], ports, 1, size)
    second.stdout.readline()
    answered = first.callback(lambda reply: answers.put(bytes(reply.ok.payload)))
    for _ in range(QUERIES):
        begin = time.perf_counter()
        first.ask(payload, answered)
        assert answers.get(timeout=10) == b"yes"
        taken.append(time.perf_counter() - begin)
    second.kill()
    second.communicate()
    first.session.close()
    return statistics.median(taken) * 1e6


def journal_us(path, shape, kind, f, sync):
    """Median microseconds, by the clock and of CPU time, of a visit's transaction with all its rows."""
    me, sender = shape.agents[:2]
    journal = Journal.open(path, shape, kind, f, me)
    journal.connection.execute(f"PRAGMA synchronous = {sync}")
    epoch, taken = Epoch(0, 0), []
    for hop in range(TRANSACTIONS):
        m = hop % shape.tokens
        holder, share, parcel = kind.visit(f, kind.holder(f), kind.share(), kind.parcel(m), 0, 1, True)
        custody = Custody(Token(m, epoch, hop, me, parcel), sender, sender, Sight(epoch, hop), True)
        rows = {"holder": holder, f"share/{m}": Share(epoch, share), f"sight/{m}": Sight(epoch, hop)}
        visit = Visit(m, epoch, hop, sender, hop, parcel, parcel)
        begin, begin_cpu = time.perf_counter(), time.thread_time()
        journal.persist(Persist(rows | {f"custody/{m}": custody}, visit), time.time())
        taken.append((time.perf_counter() - begin, time.thread_time() - begin_cpu))
    journal.close()
    return np.median(taken, axis=0) * 1e6


def line(*cells):
    print("| " + " | ".join(cell if isinstance(cell, str) else f"{cell:,.0f}" for cell in cells) + " |", flush=True)


class Run:
    """What the rounds of so many tokens have in common."""

    def __init__(self, folder, problem, rows, tokens):
        self.folder, self.rows, self.tokens, self.f = folder, rows, tokens, problem.objective(0)
        method = amble.WPG(alpha=0.1, tokens=tokens)
        stop = {"seconds": START_S + MEASURE_S + 2.0}
        self.config = configure(problem, method, amble.networks.ring(AGENTS), stop, 0, {})
        self.kind = visits.visits_for(method, self.config.model.dimension, AGENTS)
        first = self.config.agents[0]
        self.shape = Shape(self.config.agent(first).digest, self.config.agents, tokens, self.kind.parcel(0))
        self.size = len(wire.encode(self.shape, Token(0, Epoch(0, 0), 1, first, self.kind.parcel(0))))
        self.ratios = []

    def journal_us(self, number, sync):
        return journal_us(self.folder / f"{self.tokens}-{number}{sync}.db", self.shape, self.kind, self.f, sync)

    def round(self, number):
        names = list(self.config.agents)
        lone = lone_us(self.folder, names, self.size)
        bare, synced = (bare_ring(self.folder, names, self.size, self.tokens, kept) for kept in (False, True))
        hop = live(self.folder / f"live{self.tokens}-{number}", self.config, self.rows)
        journal, unsynced = (self.journal_us(number, sync) for sync in ("FULL", "OFF"))

        def ratios(pace):
            return [pace.hop_us / lone, pace.hop_us / bare.hop_us, bare.hops_s / pace.hops_s, pace.cpu_us / bare.cpu_us]

        def row(what, pace):
            line("", what, *pace, *(f"{ratio:.1f}" for ratio in ratios(pace)))

        line(f"{number}: {self.tokens}", "a lone bare query", "", lone, "", "1", "", "", "")
        row("the bare ring", bare)
        row("the synced ring", synced)
        row("the live ring", hop)
        line("", "a journal transaction on its own", "", *journal, f"{journal[0] / lone:.1f}", "", "", "")
        line("", "... without the disk's sync", "", *unsynced, f"{unsynced[0] / lone:.1f}", "", "", "")
        self.ratios.append([ratios(synced), ratios(hop)])

    def pair(self, number):
        """The live ring and the bare one, one after the other."""
        rings = [
            lambda: live(self.folder / f"live{self.tokens}-{number}", self.config, self.rows),
            lambda: bare_ring(self.folder, list(self.config.agents), self.size, self.tokens, False),
        ]
        paces = [ring() for ring in rings[:: 1 if number % 2 else -1]]
        return paces[:: 1 if number % 2 else -1]

    def summary(self):
        for what, ratios in zip(("synced", "live"), np.median(self.ratios, axis=0), strict=True):
            _, wait, pace, cpu = ratios
            tokens = f"{self.tokens} token{'s' * (self.tokens > 1)}, {self.size} B"
            print(f"{tokens}: a hop of the {what} ring takes {wait:.1f} times as long as one of the bare ring, and "
                  f"{cpu:.1f} times its CPU time; {pace:.1f} times fewer hops are made")  # fmt: skip


@contextlib.contextmanager
def prepared(tokens):
    """A Run for each number of tokens, in a folder that is deleted at the end."""
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=AGENTS, ridge=1e-2)
    with tempfile.TemporaryDirectory() as folder_name:
        folder = Path(folder_name)
        runs = [Run(folder, problem, rows_of(problem, data.X, data.y), count) for count in tokens]
        identity.make_authority(folder / "authority", "bare", 10)
        for name in runs[0].config.agents:
            identity.issue(folder / "authority", name, ["127.0.0.1"], folder / name, 9)
        yield runs


def ratio(rounds, tokens):
    with prepared(tokens) as runs:
        paces = [[run.pair(number) for run in runs] for number in range(1, rounds + 1)]
    for count, pairs in zip(tokens, zip(*paces, strict=True), strict=True):
        size = f"{AGENTS} agents, {count} token{'s' * (count > 1)}"
        for what, field in (("a live hop, by the clock", "hop_us"), ("CPU time of a live hop", "cpu_us")):
            costs = [(getattr(own, field) / 1e6, getattr(bare, field) / 1e6) for own, bare in pairs]
            yield ratio_of(f"{what} ({size})", "a bare Zenoh ring", costs, "us")


def main(rounds, tokens):
    print(f"{AGENTS} agents in a ring, {os.cpu_count()} cores\n")
    line("round: tokens", "what", "hops/s", "median us", "CPU us a hop",
         "to lone", "to bare ring", "hops/s to bare", "CPU to bare")  # fmt: skip
    print("|---" * 9 + "|")
    with prepared(tokens) as runs:
        for number in range(1, rounds + 1):
            for run in runs:
                run.round(number)
    print()
    for run in runs:
        run.summary()


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--tokens", type=int, nargs="+", default=TOKENS)
    options.add_argument("--ratio", action="store_true")
    options.add_argument("--bare", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.bare:
        folder, *others = json.loads(arguments.bare)
        bare_agent(Path(folder), *others)
    elif arguments.ratio:
        table(ratio(arguments.rounds, arguments.tokens), arguments.json)
    else:
        main(arguments.rounds, arguments.tokens)
