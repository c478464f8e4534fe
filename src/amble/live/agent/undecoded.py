"""How much was heard and not yet decoded. It has a bound, so that no neighbour can fill an agent's memory."""

import threading

from amble.live.formats.shape import Shape
from amble.live.formats.wire import Refusal

EACH_BYTES = 1024  # of a message in the queue, besides its own bytes
LEAST_BYTES = 2**24  # about 16,000 small messages
TIMES = 4  # each token is waiting once, and may have been issued again


class Undecoded:
    """Any thread may add and take away."""

    def __init__(self) -> None:
        self.bytes = 0
        self.alone = threading.Lock()

    def add(self, shape: Shape, size: int) -> None:
        """One more message; or a refusal: a sender that means well asks again later."""
        most = max(LEAST_BYTES, TIMES * shape.tokens * (shape.bytes_max + EACH_BYTES))
        with self.alone:
            if self.bytes + size + EACH_BYTES > most:
                raise Refusal("too many messages wait here; send it again later")
            self.bytes += size + EACH_BYTES

    def take(self, size: int) -> None:
        with self.alone:
            self.bytes -= size + EACH_BYTES
