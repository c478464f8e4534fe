"""Questions of any size over links that must never be full.

Zenoh breaks a link for good if a neighbour freezes while more is on its way there than its queue holds (the link is
closed twice, and the second time it is the new one). So a large question goes out in parts, each after the one before
was answered, and no more than a window's worth of bytes is on its way to a neighbour: the rest waits here.
"""

import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator

PART_BYTES = 2**17
WINDOW_BYTES = 2 * PART_BYTES  # together with the answers, less than Zenoh's queue of 16 batches of 48 kB
LEAST_COST = 2**12  # of a small question: its answer may be larger
WAITING_MAX = 1024
UNFINISHED_MAX = 4  # large questions of one neighbour that are coming in
HEADER = struct.Struct("<QII")
PROBE = b"?"  # the header of a question that asks nothing (pulse.py)


def parts(number: int, payload: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The parts of a question, each with the header that says where it belongs; a small one needs no header."""
    if len(payload) <= PART_BYTES:
        yield b"", payload
        return
    count = -(-len(payload) // PART_BYTES)
    for i in range(count):
        yield HEADER.pack(number, i, count), payload[i * PART_BYTES : (i + 1) * PART_BYTES]


class Joiner:
    """Puts one neighbour's parts together again."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._unfinished: dict[int, list[bytes]] = {}

    def forget(self) -> None:
        """The neighbour came or went: what it had begun is not continued."""
        self._unfinished.clear()

    def take(self, header: bytes, part: bytes) -> bytes | None:
        """The whole payload, with its last part; None before that. An impossible part is a ValueError with the
        reason."""
        if not header:
            if len(part) > self.bytes_max:
                raise ValueError(f"it has more than {self.bytes_max} bytes")
            return part
        if len(header) != HEADER.size:
            raise ValueError("its header is not one of amble")
        number, i, count = HEADER.unpack(header)
        if len(part) > self.bytes_max or (count - 1) * PART_BYTES >= self.bytes_max:
            raise ValueError(f"it has more than {self.bytes_max} bytes")
        if i == 0:
            self._unfinished[number] = []
            while len(self._unfinished) > UNFINISHED_MAX:
                del self._unfinished[next(iter(self._unfinished))]  # the oldest, which its sender has abandoned
        parts = self._unfinished.get(number, [])
        if len(parts) != i or i >= count or (i < count - 1 and len(part) != PART_BYTES):
            self._unfinished.pop(number, None)
            raise ValueError("its parts do not follow each other")
        parts.append(part)
        if i < count - 1:
            return None
        whole = b"".join(self._unfinished.pop(number))
        if len(whole) > self.bytes_max:
            raise ValueError(f"it has more than {self.bytes_max} bytes")
        return whole


class Window:
    """Lets so many bytes be on their way to one neighbour, and the next ones when there is room again."""

    def __init__(self) -> None:
        self._free = WINDOW_BYTES
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._lock = threading.Lock()

    def enter(self, size: int, send: Callable[[], None]) -> bool:
        """Let `send` wait for room; False if too many wait already."""
        with self._lock:
            if len(self._waiting) >= WAITING_MAX:
                return False
            self._waiting.append((max(size, LEAST_COST), send))
        return True

    def leave(self, size: int) -> bool:
        """A part of this size was answered, or never will be; returns whether others wait for room."""
        with self._lock:
            self._free += max(size, LEAST_COST)
            return bool(self._waiting)

    def send(self) -> None:
        """Send what there is room for."""
        while True:
            with self._lock:
                if not self._waiting or self._waiting[0][0] > self._free:
                    return
                cost, send = self._waiting.popleft()
                self._free -= cost
            send()
