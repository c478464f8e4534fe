"""How a newcomer is announced: it dials its neighbours, before they know of it, and shows its invitation at the door.

The door, `amble/RUN/door/B`, is the one key that anybody with a certificate of the run's authority may ask. What is
said there is believed for its signature only (trust/invitation.py). B then begins a new session, with the newcomer in
its rules: Zenoh's access control cannot be changed while a session lasts.
"""

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from amble.errors import need
from amble.live.network.place import Link, Place, door_key, settings

ANSWER_S = 5.0
AGAIN_S = 2.0
WELCOME = b"welcome"
WAITING_MAX, BETWEEN_S = 4, 0.1  # at an agent's door: it has other things to do
REFUSED_S = 60.0
CROWDED = "others are at the door: knock again"

Knocked = Callable[[bytes, Callable[[str], None]], None]  # what is shown, and how to answer: "" is welcome

log = logging.getLogger(__name__)


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

        def answer(refusal: str) -> None:
            try:
                if refusal:
                    query.reply_err(refusal.encode())
                else:
                    query.reply(self.key, WELCOME)
            except Exception as error:  # the session is closed: it will knock again
                log.debug("a knock on %s was not answered: %s", self.key, error)
            finally:
                query.drop()
                with self.lock:
                    self.waiting -= 1

        if crowded:
            answer(CROWDED)
        else:
            self.knocked(bytes(query.payload or b""), answer)


def knock(place: Place, neighbour: Link, shown: bytes) -> str | None:
    """What the neighbour says: "" for welcome, or why not; None where nobody answers."""
    zenoh = need("zenoh", "live")
    wanted: dict[str, Any] = settings(place, only=neighbour)
    try:
        session = zenoh.open(zenoh.Config.from_json5(json.dumps(wanted)))
        try:
            for reply in session.get(door_key(place.run, neighbour.name), payload=shown, timeout=ANSWER_S):
                if reply.ok is not None:
                    return "" if bytes(reply.ok.payload) == WELCOME else "it gave no answer of amble's"
                return bytes(reply.err.payload)[:500].decode(errors="replace")
            return None
        finally:
            session.close()
    except zenoh.ZError as error:
        log.debug("nobody opened at %s: %s", neighbour.name, error)
        return None


def knock_at_all(place: Place, shown: bytes, is_up: Callable[[str], bool], ended: threading.Event) -> None:
    """At each neighbour's door until the neighbour is up."""
    waiting = dict.fromkeys(place.neighbours, 0.0)  # and when each is asked again
    while waiting and not ended.wait(AGAIN_S if any(waiting.values()) else 0.0):
        for link, at_s in list(waiting.items()):
            if is_up(link.name):
                del waiting[link]
            elif time.monotonic() >= at_s:
                answer = knock(place, link, shown)
                waiting[link] = time.monotonic() + (AGAIN_S if answer in (None, "", CROWDED) else REFUSED_S)
                if answer and answer != CROWDED:
                    log.warning("%s does not let us in: %s", link.name, answer)
