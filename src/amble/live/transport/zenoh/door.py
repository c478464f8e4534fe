"""How a newcomer joins: it connects to its neighbours, before they know it, and shows its invitation at the door.

The door, `amble/RUN/door/B`, is the one key that anybody with a certificate of the run's authority may ask. Only the
signature of what is shown there counts (trust/invitation.py). B then begins a new session, with the newcomer in its
rules: Zenoh's access control cannot be changed while a session lasts.
"""

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from amble.errors import need
from amble.live.transport import Knocked
from amble.live.transport.address import Address, Link
from amble.live.transport.zenoh.answering import REFUSED, refusal
from amble.live.transport.zenoh.configuration import door_key, settings

ANSWER_S = 5.0
AGAIN_S = 2.0
WELCOME = b"welcome"
BUSY = b"\0"
WAITING_MAX, BETWEEN_S = 4, 0.1  # at an agent's door: it has other things to do
REFUSED_S = 60.0

log = logging.getLogger(__name__)


class Answer(NamedTuple):
    """A message at a door."""

    outcome: Literal["welcome", "busy", "refused", "silent"]
    reason: str = ""  # of a refusal


@dataclass
class Door:
    """An agent's own: hands on what is shown there, from a few at a time."""

    key: str
    knocked: Knocked
    waiting: int = 0
    last_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def opened(self, query: Any) -> None:
        now = time.monotonic()
        with self.lock:
            self.waiting += 1
            crowded = self.waiting > WAITING_MAX or now - self.last_s < BETWEEN_S
            self.last_s = self.last_s if crowded else now

        def answer(refusal: str | None) -> None:
            try:
                if refusal is None and not crowded:
                    query.reply(self.key, WELCOME)
                else:
                    query.reply_err(BUSY if crowded else REFUSED + str(refusal).encode())
            except Exception as error:  # the session is closed: it will knock again
                log.debug("a request to join on %s was not answered: %s", self.key, error)
            finally:
                query.drop()
                with self.lock:
                    self.waiting -= 1

        if crowded:
            answer(None)
        else:
            self.knocked(bytes(query.payload or b""), answer)


def knock(address: Address, neighbour: Link, shown: bytes) -> Answer:
    """What the neighbour says."""
    zenoh = need("zenoh", "live")
    wanted: dict[str, Any] = settings(address, only=neighbour)
    try:
        session = zenoh.open(zenoh.Config.from_json5(json.dumps(wanted)))
        try:
            for reply in session.get(door_key(address.run, neighbour.name), payload=shown, timeout=ANSWER_S):
                if reply.ok is not None:
                    welcome = bytes(reply.ok.payload) == WELCOME
                    return Answer("welcome") if welcome else Answer("refused", "its answer is not one of amble")
                if bytes(reply.err.payload) == BUSY:
                    return Answer("busy")
                if (reason := refusal(reply)) is not None:
                    return Answer("refused", reason)
            return Answer("silent")
        finally:
            session.close()
    except zenoh.ZError as error:
        log.debug("the request to join got no answer at %s: %s", neighbour.name, error)
        return Answer("silent")


def knock_at_all(address: Address, shown: bytes, is_up: Callable[[str], bool], ended: threading.Event) -> None:
    """At each neighbour's door until the neighbour is up."""
    waiting = dict.fromkeys(address.neighbours, 0.0)  # and when each is asked again
    while waiting and not ended.wait(AGAIN_S if any(waiting.values()) else 0.0):
        for link, at_s in list(waiting.items()):
            if is_up(link.name):
                del waiting[link]
            elif time.monotonic() >= at_s:
                answer = knock(address, link, shown)
                refused = answer.outcome == "refused"
                waiting[link] = time.monotonic() + (REFUSED_S if refused else AGAIN_S)
                if refused:
                    log.warning("%s does not accept us: %s", link.name, answer.reason)
