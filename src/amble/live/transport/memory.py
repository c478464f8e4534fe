"""A transport within one process, for tests of agents that need no network.

All agents of a `Memory` reach each other. Each has a thread that calls it, as Zenoh's threads do, so what holds for one
transport (tests/test_transport_contract.py) holds for the other.
"""

import heapq
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable

from amble.errors import AmbleError, unknown
from amble.live.transport import ANSWER_BYTES, Answered, Hear, Knocked, Peer, Restart, Transport
from amble.live.transport.address import Address

AGAIN_S = 0.05  # between two knocks at a door

log = logging.getLogger(__name__)


class Memory:
    """Where agents find each other, by run and name."""

    def __init__(self) -> None:
        self.agents: dict[tuple[str, str], MemoryTransport] = {}
        self.lock = threading.RLock()

    def open(
        self,
        address: Address,
        hear: Hear,
        peer: Peer,
        knocked: Knocked | None = None,
        restart: Restart | None = None,  # noqa: ARG002 - links within a process never have to be made again
    ) -> Transport:
        """See transport.Open."""
        transport = MemoryTransport(self, address, hear, peer, knocked)
        with self.lock:
            if any(other.address.host == address.host and other.address.port == address.port for other in self.here()):
                raise AmbleError(f"cannot listen on {address.host} port {address.port}; another agent listens there.")
            self.agents[address.run, address.name] = transport
            transport.start()
            for other in transport.linked():
                transport.notice(other.address.name, True)
                other.notice(address.name, True)
        return transport

    def here(self) -> list["MemoryTransport"]:
        return list(self.agents.values())


class MemoryTransport:
    """One agent's links; made by Memory.open."""

    def __init__(self, memory: Memory, address: Address, hear: Hear, peer: Peer, knocked: Knocked | None) -> None:
        self.address, self._memory = address, memory
        self._hear, self._peer, self._knocked = hear, peer, knocked
        self._up = {link.name: False for link in address.neighbours}
        self._asked: dict[int, tuple[str, Answered]] = {}  # questions under way
        self._waiting = 0  # questions that were heard and are not yet answered
        self._numbers, self._closed = itertools.count(), False
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []
        self._lock = threading.RLock()
        self._thread = threading.Thread(target=self._work, name=f"amble {address.name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def linked(self) -> list["MemoryTransport"]:
        """The open neighbours of this agent that also have it as a neighbour."""
        them = [self._memory.agents.get((self.address.run, name)) for name in self._up]
        return [other for other in them if other is not None and self.address.name in other._up]

    def is_up(self, name: str) -> bool:
        return self._up[name]

    def notice(self, name: str, up: bool) -> None:
        """A neighbour came or went."""
        with self._lock:
            if self._up[name] == up:
                return
            self._up[name] = up
            self._jobs.put(lambda: self._peer(name, up))
            for number in [number for number, (to, _) in self._asked.items() if to == name]:
                self._end(number, None)

    def ask(self, to: str, payload: bytes, timeout_s: float, answered: Answered) -> None:
        if to not in self._up:
            raise unknown("neighbour", to, self._up)
        self.address.check_size(payload)
        with self._lock:
            number = next(self._numbers)
            self._asked[number] = (to, answered)
            other = self._memory.agents.get((self.address.run, to)) if self._up[to] and not self._closed else None
        if other is None:
            self._end(number, None)
            return
        self._alarm(timeout_s, lambda: self._end(number, None))
        reply = MemoryReply(lambda answer: self._end(number, answer), other._done)
        other._jobs.put(lambda: other._take(self.address.name, payload, reply))

    def _take(self, sender: str, payload: bytes, reply: "MemoryReply") -> None:
        with self._lock:
            self._waiting += 1
            refused = self._waiting > self.address.waiting_max or len(payload) > self.address.bytes_max
        if refused:
            log.warning("refused a question from %s: it is too large, or %d others are waiting", sender, self._waiting)
        else:
            self._hear(sender, payload, reply)

    def _done(self) -> None:
        with self._lock:
            self._waiting -= 1

    def _end(self, number: int, answer: bytes | None) -> None:
        """A question was answered, or will never be; only the first call counts."""
        with self._lock:
            _, answered = self._asked.pop(number, ("", None))
        if answered is None:
            return
        if self._closed:  # the thread has ended, or will
            answered(answer)
        else:
            self._jobs.put(lambda: answered(answer))

    def announce(self, shown: bytes) -> None:
        self._jobs.put(lambda: self._knock(shown))

    def _knock(self, shown: bytes) -> None:
        waiting = [name for name, up in self._up.items() if not up]
        for name in waiting:
            if other := self._memory.agents.get((self.address.run, name)):
                other._be_shown(shown)
        if waiting and not self._closed:
            self._alarm(AGAIN_S, lambda: self._knock(shown))

    def _be_shown(self, shown: bytes) -> None:
        if (knocked := self._knocked) is not None:
            self._jobs.put(lambda: knocked(shown, lambda _: None))  # whether it was let in shows when it is up

    def doubled(self) -> dict[str, str]:
        return {}  # nobody can listen where another does

    def close(self) -> None:
        with self._memory.lock:
            if self._closed:
                return
            self._closed = True
            linked = self.linked()
            del self._memory.agents[self.address.run, self.address.name]
            for other in linked:
                other.notice(self.address.name, False)
        for number in list(self._asked):
            self._end(number, None)
        self._jobs.put(None)
        self._thread.join()

    def _alarm(self, in_s: float, act: Callable[[], None]) -> None:
        with self._lock:
            heapq.heappush(self._alarms, (time.monotonic() + in_s, next(self._numbers), act))
        self._jobs.put(lambda: None)  # so that the thread looks at it

    def _work(self) -> None:
        while True:
            with self._lock:
                wait_s = max(0.0, self._alarms[0][0] - time.monotonic()) if self._alarms else None
                act = heapq.heappop(self._alarms)[2] if wait_s == 0.0 else None
            if act is None:
                try:
                    act = self._jobs.get(timeout=wait_s)
                except queue.Empty:
                    continue
                if act is None:
                    return
            act()


class MemoryReply:
    """Sends the answer back; if it is dropped without a call, the asker learns that there is no answer."""

    def __init__(self, end: Callable[[bytes | None], None], done: Callable[[], None]) -> None:
        self._end: Callable[[bytes | None], None] | None = end
        self._done = done

    def __call__(self, payload: bytes) -> None:
        if len(payload) > ANSWER_BYTES:
            raise AmbleError(f"an answer of {len(payload)} bytes was given; give at most {ANSWER_BYTES}.")
        self._tell(payload)

    def __del__(self) -> None:
        self._tell(None)

    def _tell(self, payload: bytes | None) -> None:
        end, self._end = self._end, None
        if end is not None:
            end(payload)
            self._done()
