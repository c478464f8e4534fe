"""How a newcomer is announced: it dials its neighbours, before they know of it, and shows its invitation at the door.

The door, `amble/RUN/door/B`, is the one key that anybody with a certificate of the run's authority may ask. What is
said there is believed for its signature only (trust/invitation.py). B then begins a new session, with the newcomer in
its rules: Zenoh's access control cannot be changed while a session lasts.
"""

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from amble.errors import need
from amble.live.network.place import Link, Place, door_key, settings

ANSWER_S = 5.0
AGAIN_S = 2.0
WELCOME = b"welcome"
WAITING_MAX = 4

Knocked = Callable[[bytes, Callable[[str], None]], None]  # what is shown, and how to answer: "" is welcome

log = logging.getLogger(__name__)


@dataclass
class Door:
    """An agent's own: hands on what is shown there, from a few at a time."""

    key: str
    knocked: Knocked
    waiting: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def opened(self, query: Any) -> None:
        with self.lock:
            self.waiting += 1
            crowded = self.waiting > WAITING_MAX

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
            answer("others are at the door: knock again")
        else:
            self.knocked(bytes(query.payload or b""), answer)


def knock(place: Place, neighbour: Link, shown: bytes) -> str | None:
    """What the neighbour says: "" for welcome, or why not; None where nobody answers."""
    zenoh = need("zenoh", "live")
    wanted: dict[str, Any] = settings(place, only=neighbour)
    try:
        session = zenoh.open(zenoh.Config.from_json5(json.dumps(wanted)))
    except zenoh.ZError:
        return None
    try:
        for reply in session.get(door_key(place.run, neighbour.name), payload=shown, timeout=ANSWER_S):
            if reply.ok is not None:
                return "" if bytes(reply.ok.payload) == WELCOME else "it gave no answer of amble's"
            return bytes(reply.err.payload[:500]).decode(errors="replace")
        return None
    finally:
        session.close()


def knock_at_all(place: Place, shown: bytes, is_up: Callable[[str], bool], ended: threading.Event) -> None:
    """At each neighbour's door until it has opened, or the neighbour is up."""
    waiting = {link.name: link for link in place.neighbours}
    told: set[tuple[str, str]] = set()
    while waiting and not ended.is_set():
        for name, link in list(waiting.items()):
            answer = "" if is_up(name) else knock(place, link, shown)
            if answer == "":
                del waiting[name]
            elif answer is not None and (name, answer) not in told:
                told.add((name, answer))
                log.warning("%s does not let us in: %s", name, answer)
        ended.wait(AGAIN_S)
