"""What a live hop costs an agent besides Zenoh and the disk's sync, on a machine that is not quiet.

    python benchmarks/driver.py              # one token, and three
    python benchmarks/driver.py --profile    # and where the bytecodes are

The agents of hops.py as drivers with journals in one process; what one asks is heard by the next at once. Bytecodes and
calls of Python functions are counts: other work on the machine does not change them. CPU time is the least of a
twentieth of the hops, because other work makes all of them slower.
"""

import collections
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from measure import parser

import amble
from amble.live.agent.node import Node
from amble.live.agent.stages import Training
from amble.live.cluster.cluster import configure

AGENTS, TOKENS = 8, (1, 3)
WARM, HOPS, COUNTED, SHOWN = 300, 1500, 48, 25
NEVER = {"patience_s": 100.0, "silence_s": 1000.0}  # counting is slow, and no agent is to ask why


class Ring:
    """The drivers, and the questions on their way."""

    def __init__(self, folder, tokens):
        data = amble.load("diabetes")
        problem = amble.Problem.from_arrays(data.X, data.y, agents=AGENTS, ridge=1e-2)
        method, network = amble.WPG(alpha=0.1, tokens=tokens), amble.networks.ring(AGENTS)
        config = configure(problem, method, network, {"hops": 10**12}, 0, NEVER)
        self.asked, self.nodes = collections.deque(), {}
        for k, name in enumerate(config.agents):
            own = config.agent(name)
            (folder / name).mkdir()
            node = Node(own, folder / name, Training(own, problem.objective(k)), threading.Event())
            node.journal.connection.execute("PRAGMA synchronous = OFF")
            self.nodes[name] = node, End(self.asked, name)
        for node, end in self.nodes.values():
            node._do(node.sequence.start(time.monotonic()), end)
        for node, end in self.nodes.values():
            for link in node.config.neighbours:
                node.peer(link.name, True)
            self.work(node, end)

    def work(self, node, end):
        while not node.inputs.empty():
            act, now = node.inputs.get(), time.monotonic()
            node._do(node._together(node._steps(act), now, end), end)

    def hop(self):
        sender, to, data, answered = self.asked.popleft()
        (node, end), said = self.nodes[to], []
        node.hear(sender, data, said.append)
        self.work(node, end)
        answered(said[0])

    def close(self):
        for node, _ in self.nodes.values():
            node.close_journals()


class End:
    """What a driver asks of its transport."""

    def __init__(self, asked, name):
        self.asked, self.name = asked, name

    def ask(self, to, data, _timeout_s, answered):
        self.asked.append((self.name, to, data, answered))


def cpu_us(ring):
    taken = []
    for _ in range(HOPS):
        begin = time.thread_time()
        ring.hop()
        taken.append(time.thread_time() - begin)
    return np.percentile(taken, 5) * 1e6


def counts(ring):
    """Bytecodes by function, and calls, of a hop."""
    bytecodes, calls = collections.Counter(), 0

    def traced(frame, event, _):
        nonlocal calls
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        calls += event == "call"
        code = frame.f_code
        bytecodes[f"{Path(code.co_filename).name} {code.co_qualname}"] += event == "opcode"
        return traced

    sys.settrace(traced)
    for _ in range(COUNTED):
        ring.hop()
    sys.settrace(None)
    return bytecodes, calls / COUNTED


def main(profile):
    for tokens in TOKENS:
        with tempfile.TemporaryDirectory() as folder:
            ring = Ring(Path(folder), tokens)
            for _ in range(WARM):
                ring.hop()
            taken_us, (bytecodes, calls) = cpu_us(ring), counts(ring)
            ring.close()
        whole = bytecodes.total() / COUNTED
        print(f"{tokens} token{'s' * (tokens > 1)}: {whole:,.0f} bytecodes and {calls:.0f} calls of Python functions "
              f"per hop, {taken_us:.0f} us of CPU time")  # fmt: skip
        for name, count in bytecodes.most_common(SHOWN if profile else 0):
            print(f"    {count / COUNTED:5.0f}  {name}")


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--profile", action="store_true")
    main(options.parse_args().profile)
