"""A real agent that hears a million messages made to harm it: `python tests/fuzz_agent.py --messages 1000000`.

Each goes the way of a message from the network: through the driver (live/node.py) with the sender that a certificate
would prove, the decoder, the protocol, the journal, and back. Only Zenoh is left out. Some are bytes made wrong
(fuzz_wire.py); most are whole messages with numbers that no honest agent would send, so that many are taken. What the
agent asks its neighbours is answered as badly. Stop is heard now and then, and ends an agent: then another one begins.
"""

import argparse
import collections
import json
import logging
import os
import random
import re
import resource
import shutil
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from amble.arrays import named_leaves, tree_map
from amble.live.agent.node import Node
from amble.live.agent.stages import Training
from amble.live.core.message import (
    EPOCHS_MAX,
    HOPS_MAX,
    Accepted,
    Ending,
    Epoch,
    Found,
    Leaving,
    Passed,
    Refused,
    Seek,
    Stop,
    Token,
)
from amble.live.core.packing import flat
from amble.live.core.visits import GiftToken
from amble.live.formats import wire
from config_samples import X, Y, made
from fuzz_wire import mutated

ME, NEAR, AFAR = "a", ("b", "c", "d"), "e"
METHODS = (
    {"name": "Relay", "tokens": 3},
    {"name": "I-BCD", "tokens": 2, "tau": 1.0},
    {"name": "API-BCD", "tokens": 2, "tau": 1.0, "token_rule": "tracked"},
    {"name": "PW-ADMM", "tokens": 2, "beta": 1.0},
)
LINKS = [[ME, name] for name in NEAR] + [["b", "e"], ["c", "e"]]
NAMES = (ME, *NEAR, AFAR)
NUMBERS = (0.0, -0.0, 1.0, -1.0, 5e-324, 1e-300, 1e9, 2.0**53, 1e154, 1e300, -1e308, 1.7e308)
LIFE = 4000  # messages that an agent hears before another takes its place: none has a journal that grows forever
MOURNED = 20  # messages that are still heard after the end
CHECK = 200  # messages between two honest tokens


class Refusals(logging.Handler):
    """What the agent logs."""

    def __init__(self):
        super().__init__()
        self.count, self.last = 0, ""

    def emit(self, record):
        self.count += record.levelno >= logging.WARNING
        self.last = record.getMessage()


class Agent:
    """A driver whose transport is this test."""

    def __init__(self, folder, method):
        links = {"links": LINKS, "stop": {"hops": 10**9}}
        agents = [{"name": name, "host": "10.0.0.1", "port": 7000 + k} for k, name in enumerate(NAMES)]
        self.config = made(method=method, agents=agents, timing={"patience_s": 0.5, "silence_s": 5.0}, **links).agent(
            ME
        )
        folder.mkdir()
        self.node = Node(self.config, folder, Training(self.config, self.config.objective(X, Y)), threading.Event())
        self.node.seldom.every_s = 0.0  # so that each refusal is logged, and can be looked for
        self.asks, self.now, self.folder = [], 0.0, folder
        self.do(self.node.sequence.start)
        for name in NEAR:
            self.node.peer(name, True)
        self.work()

    def ask(self, to, data, _timeout_s, answered):  # what the driver asks of its transport
        assert len(data) <= self.node.shape.bytes_max
        self.asks.append((to, answered))

    def do(self, act):
        self.node._do(act(self.now), self)

    def work(self):
        while self.node.thanks or not self.node.inputs.empty():
            self.do(self.node.thanks.popleft() if self.node.thanks else self.node.inputs.get())

    def hear(self, sender, data):
        """The one answer that came back."""
        back = []
        self.node.hear(sender, data, back.append)
        self.work()
        assert len(back) == 1, "every question gets an answer, and one only"
        return wire.decode_answer(self.node.shape, back[0])

    def end(self):
        self.node.journal.close()
        shutil.rmtree(self.folder)


class Fuzz:
    def __init__(self, seed, folder):
        self.chance, self.folder = random.Random(seed), folder
        self.rng = np.random.default_rng(seed)
        self.counts, self.log, self.births = collections.Counter(), Refusals(), 0
        self.agent = self.born()

    def born(self):
        self.births += 1
        self.lived = self.mourned = 0
        return Agent(self.folder / str(self.births), METHODS[self.births % len(METHODS)])

    # --- what is said -----------------------------------------------------------------------------------------------

    def number(self):
        return self.chance.choice(NUMBERS)

    def count(self, known, most):
        """Around what the agent knows, or at the bounds, or beyond them."""
        near = (known - 1, known, known, known + 1, known + 2, 0, 1)
        return max(0, self.chance.choice(near if self.chance.random() < 0.995 else (most - 1, most, most + 1, 2**53)))

    def place(self, m):
        """An epoch and a hop."""
        sight = self.agent.node.core.rows.get(f"sight/{m}")
        epoch, hop = sight or (Epoch(0, 0), 0)
        author = self.chance.choice((epoch.author, self.chance.randrange(len(NAMES)), self.chance.randrange(9)))
        return Epoch(self.count(epoch.number, EPOCHS_MAX), author), self.count(hop, HOPS_MAX)

    def parcel(self, m):
        """The last that the agent sent or a new one, with a few leaves or all numbers made wrong."""
        custody = self.agent.node.core.rows.get(f"custody/{m}")
        parcel = custody.message.payload if custody and self.chance.random() < 0.7 else self.agent.node.visits.parcel(m)
        kind = self.chance.randrange(20)
        if kind < 8:
            return parcel
        if kind == 8:
            return tree_map(lambda leaf: np.full(np.shape(leaf), self.number()), parcel)
        if kind < 12:
            return tree_map(lambda leaf: leaf + self.rng.normal(size=np.shape(leaf)), parcel)
        name = self.chance.choice(("members", "since", "calm", "buried", "met", "token", "token", "token"))
        part = getattr(parcel, name)
        if name == "token":
            return parcel._replace(token=self.token(part))
        value = self.number() if self.chance.random() < 0.5 else float(self.chance.randrange(-2, 9))
        return parcel._replace(**{name: np.full(np.shape(part), value)})

    def token(self, token):
        """Plausible numbers too, so that it is visited: an insider can always do this."""
        scale, full = 10.0 ** self.chance.choice((-300, -3, 0, 3, 100, 160)), self.chance.random() < 0.2
        with np.errstate(all="ignore"):
            wild = tree_map(lambda leaf: np.full(np.shape(leaf), self.number()) if full else leaf * scale, token)
        if not isinstance(token, GiftToken):
            return wild
        kept, account = token.account, wild.account
        if self.chance.random() < 0.9:  # the counts as they were: then it reaches the protocol
            board = account.board._replace(version=kept.board.version)
            account = kept._replace(z=account.z, board=board)
        return wild._replace(m=token.m, account=account)

    def question(self, sender):
        m = self.chance.randrange(self.agent.config.method.tokens)
        kind = self.chance.random()
        if kind < 0.6:
            return Token(m, *self.place(m), sender, self.parcel(m))
        if kind < 0.75:
            return Passed(m, *self.place(m), sender)
        if kind < 0.9:
            return Seek(self.chance.choice((m, m, self.chance.randrange(2**33))), sender)
        if kind < 0.902 or self.agent.node.core.stopped:
            return Stop(Ending("hops", self.chance.choice(("", "over", "x" * 500, "ü" * 500))), sender)
        return self.chance.choice((Seek(m, sender), Leaving(sender)))

    def answer(self):
        m = self.chance.randrange(3)
        refused = [Refused("no"), Refused("x" * 500)]
        return self.chance.choice([Accepted(), Accepted(), *refused, Found(m, *self.place(0))])

    def data(self, sender):
        shape = self.agent.node.shape
        data = wire.encode(shape, self.question(self.chance.choice(NAMES) if self.chance.random() < 0.03 else sender))
        return mutated(self.chance, shape, data) if self.chance.random() < 0.35 else data

    # --- what is checked --------------------------------------------------------------------------------------------

    def run(self, messages_count):
        logger = logging.getLogger("amble.live")
        logger.addHandler(self.log)
        propagate, logger.propagate = logger.propagate, False
        try:
            for k in range(messages_count):
                self.one()
                if k % CHECK == CHECK - 1 and not self.agent.node.core.stopped:
                    self.honest()
                if self.agent.node.core.stopped:
                    self.mourned += 1
                if self.lived >= LIFE or self.mourned > MOURNED:
                    self.agent.end()
                    self.agent = self.born()
        finally:
            logger.removeHandler(self.log)
            logger.propagate = propagate
            self.agent.end()
        return self.counts

    def one(self):
        agent, core, sender = self.agent, self.agent.node.core, self.chance.choice(NEAR)
        self.lived += 1
        agent.now += self.chance.choice((0.0, 0.001, 0.01, 1.0))
        logged, ended, visits = self.log.count, bool(core.stopped), float(core.rows["holder"].visits)
        data = self.data(sender)
        try:
            found = wire.decode_question(agent.node.shape, data, sender)
        except wire.Refusal:
            found = None
        answer = agent.hear(sender, data)
        if found is None:
            assert isinstance(answer, Refused)
            assert self.log.count > logged, "a refusal is in the log"
            assert self.log.last.startswith(f"refused a message from {sender}: ")
        visited = ", visited" if float(core.rows["holder"].visits) > visits else ""
        self.counts[f"{type(found).__name__ if found else 'not decoded'}: {type(answer).__name__}{visited}"] += 1
        if isinstance(answer, Refused):
            assert 0 < len(answer.reason) <= 500
            assert answer.reason.isprintable()
        if core.stopped and not ended:
            words = "a neighbour says so" if isinstance(found, Stop) else re.sub(r"[\d,]+", "_", core.stopped)
            self.counts[f"ended: {words}"[:60]] += 1
        self.answer_some()
        if self.lived % 10 == 0:
            self.bounded()

    def answer_some(self):
        """Questions of the agent: answered badly, late, or not at all; and neighbours come and go."""
        agent = self.agent
        while agent.asks and (len(agent.asks) > 8 or self.chance.random() < 0.7):
            _, answered = agent.asks.pop(self.chance.randrange(len(agent.asks)))
            data = wire.encode(agent.node.shape, self.answer())
            kind = self.chance.random()
            answered(None if kind < 0.2 else mutated(self.chance, agent.node.shape, data) if kind < 0.3 else data)
            agent.work()
        if self.chance.random() < 0.05:
            agent.node.peer(self.chance.choice(NEAR), self.chance.random() < 0.8)
            agent.work()
        if self.chance.random() < 0.1:
            agent.do(agent.node.sequence.tick)

    def bounded(self):
        core, tokens = self.agent.node.core, self.agent.config.method.tokens
        assert len(core.rows) <= 3 + 3 * tokens
        assert len(core.custodian.errands) == len(core.custodian.seen_s) == tokens
        assert len(core.state.asked) <= 16 + 8 * tokens
        assert len(core.neighbours.watch) <= tokens * len(NEAR)
        assert not self.agent.node.replies
        for name, row in core.rows.items():
            if name == "holder":
                assert np.isfinite(flat(row)).all()
            elif name.startswith("custody"):
                assert np.isfinite(flat(row.message.payload)).all()

    def honest(self):
        """After all that, a token of a neighbour is visited as the method has it, and the journal holds it."""
        agent, core = self.agent, self.agent.node.core
        m, name = self.chance.randrange(agent.config.method.tokens), self.chance.choice(NEAR)
        for near in NEAR:
            agent.node.peer(near, True)
        agent.work()
        if core.stopped:
            return
        sight = core.rows.get(f"sight/{m}")
        epoch, hop = sight or (Epoch(0, 0), 0)
        epoch = Epoch(min(epoch.number + 1, EPOCHS_MAX), len(NAMES) - 1)
        message = Token(m, epoch, min(hop, HOPS_MAX - 2), name, agent.node.visits.parcel(m))
        share = core.rows.get(f"share/{m}")
        own, fresh = core.rows["holder"], share is None or share.epoch != epoch
        given = share.share if share else agent.node.visits.share()
        right = core._outcome(message.token, (own, given, message.payload, core.index, message.hop + 1, fresh))
        answer = agent.hear(name, wire.encode(agent.node.shape, message))
        if right is None:  # an insider's numbers are in the model, and it says so
            assert isinstance(answer, Refused)
            assert core.stopped
            self.counts["honest: the model was spoilt before, and the run ends"] += 1
        elif sight is not None and (message.epoch, message.hop) < sight:
            assert answer == Accepted()  # an insider has been at the last epoch or hop
            self.counts["honest: nothing can be newer than what was heard before"] += 1
        else:
            assert answer == Accepted()
            holder, _, parcel = right
            assert_equal(core.rows["holder"], holder)
            assert_equal(core.rows[f"custody/{m}"].message.payload, parcel)
            kept = agent.node.journal.load()
            assert kept.keys() == core.rows.keys()
            assert_equal(kept["holder"], holder)
            assert kept[f"sight/{m}"] == core.rows[f"sight/{m}"] == (epoch, message.hop + 1)
            self.counts["honest: visited, and in the journal"] += 1
        agent.node._write_status()
        assert json.loads((agent.folder / "status.json").read_text())["name"] == ME


def assert_equal(one, other):
    for name, leaf in named_leaves(one, "").items():
        np.testing.assert_array_equal(leaf, named_leaves(other, "")[name], err_msg=name)


def memory():
    """What this process has in memory now, in KiB; the most that it ever had, where there is no /proc."""
    now = Path("/proc/self/statm")
    if not now.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(now.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    fast = "/dev/shm" if Path("/dev/shm").is_dir() else None  # the disk's sync is not what is tried
    with tempfile.TemporaryDirectory(dir=fast) as place:
        (Path(place) / "warm").mkdir()
        Fuzz(given.seed + 1, Path(place) / "warm").run(5_000)  # what Python and NumPy allocate once
        before, start_s, start_cpu_s = memory(), time.perf_counter(), time.process_time()
        fuzz = Fuzz(given.seed, Path(place))
        counts = fuzz.run(given.messages)
        seconds, cpu_s = time.perf_counter() - start_s, time.process_time() - start_cpu_s
        memory_end = memory()
    for words, number in counts.most_common():
        print(f"{number:>9,}  {words}")  # noqa: T201
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = (memory_end - before) / 1024
    print(  # noqa: T201
        f"{given.messages:,} messages to {fuzz.births:,} agents in {seconds:.0f} s ({cpu_s:.0f} s of CPU); "
        f"memory {before / 1024:.1f} MiB, at the end {grown:+.1f} MiB, at most {most / 1024:.1f} MiB"
    )


if __name__ == "__main__":
    main()
