"""The two ends of a question: the answer that is sent, and the answer that is awaited."""

import logging
import threading
from collections.abc import Callable
from typing import Any

from amble.errors import AmbleError
from amble.live.core.message import printable
from amble.live.transport import ANSWER_BYTES, Answered
from amble.live.transport.zenoh.staying import stay

REFUSED, REFUSED_BYTES = (
    b"\1",
    500,
)  # the first byte of an agent's own refusal: Zenoh answers a time-out with a word, too

log = logging.getLogger(__name__)


def refusal(reply: Any) -> str | None:
    """Why the other agent refuses, fit for a log; None if this is Zenoh's own error, such as a time-out."""
    said = bytes(reply.err.payload)
    if not said.startswith(REFUSED):
        return None
    return printable(said[len(REFUSED) : REFUSED_BYTES].decode(errors="replace"))


class WayBack:
    """The way back to the asker."""

    def __init__(self, query: Any, key: Any, done: Callable[[], None], later: Callable[[Any], None]) -> None:
        self._query, self._key, self._done, self._later = query, key, done, later

    def __call__(self, payload: bytes) -> None:
        if len(payload) > ANSWER_BYTES:
            raise AmbleError(f"an answer of {len(payload)} bytes was given; give at most {ANSWER_BYTES}.")
        query, self._query = self._query, None
        if query is None:
            return
        try:
            query.reply(self._key, payload)
        except Exception as error:  # the session is closed: the asker sees that by itself
            log.debug("an answer on %s was not sent: %s", self._key, error)
        finally:
            query.drop()
            self._done()

    def __del__(self) -> None:
        if self._query is not None:
            self._later(self._query.drop)
            self._done()


class Awaited:
    """Calls `answered` once: at the first answer, or when no more can come. `proved`: there is an answer; `leave`: no
    more can come."""

    def __init__(
        self,
        answered: Answered,
        to: str,
        trusted: Callable[[], bool],
        proved: Callable[[], None],
        leave: Callable[[], None],
    ) -> None:
        self._answered: Answered | None = answered
        self._to, self._trusted, self._proved, self._leave = to, trusted, proved, leave
        self._lock = threading.Lock()

    def take(self, reply: Any) -> None:
        stay()
        if reply.ok is None:
            said = refusal(reply)
            log.info("%s gave no answer: %s", self._to, "its time is over" if said is None else said)
        elif len(reply.ok.payload) > ANSWER_BYTES or not self._trusted():
            log.warning("refused an answer from %s: it is too large, or another agent has joined its session", self._to)
        else:
            self._proved()
            self._tell(bytes(reply.ok.payload))

    def end(self) -> None:
        self._leave()
        self._tell(None)

    def _tell(self, payload: bytes | None) -> None:
        with self._lock:
            answered, self._answered = self._answered, None
        if answered is not None:
            answered(payload)
