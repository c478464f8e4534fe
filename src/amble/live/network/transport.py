"""The links between agents, over Eclipse Zenoh: questions and answers in bytes, and which neighbours are there.

An agent asks its neighbours and is asked by them, and by nobody else but at its door (door.py); nothing is sent that is
not answered. What A asks B has the key `amble/RUN/B/from/A`. B lets only the certificate with the common name A use it
(place.py has all that is allowed), so the sender that B hears of is the certified one. That A is there is said by
`amble/RUN/alive/A`, which likewise only A can say.

`hear`, `peer` and `answered` are called from Zenoh's threads, which also receive: they must return at once, so let them
put what they are given on a queue, and let another thread take it from there. None of them may call `ask` or `close`:
those speak to Zenoh at once, in the caller's thread, for a hand-over to another thread costs more than the question.
"""

import itertools
import json
import logging
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from amble.errors import AmbleError, need, unknown
from amble.live.network.answering import Answered, Awaited, WayBack
from amble.live.network.door import Door, Knocked
from amble.live.network.place import Place, alive_key, ask_key, door_key, settings
from amble.live.network.sending import PART_BYTES, Joiner, Window, parts
from amble.live.network.staying import stay

Reply = Callable[[bytes], None]
Hear = Callable[[str, bytes, Reply], None]
Peer = Callable[[str, bool], None]
Anew = Callable[[], None]

log = logging.getLogger(__name__)


class Transport:
    """One agent's links; made by open()."""

    def __init__(
        self, place: Place, hear: Hear, peer: Peer, knocked: Knocked | None = None, anew: Anew | None = None
    ) -> None:
        self.place = place
        self._hear, self._peer, self._knocked, self._anew = hear, peer, knocked, anew
        self._zenoh = need("zenoh", "live")
        self._session: Any = None
        self._closed = False
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name=f"amble {place.name}", daemon=True)
        self._closing = threading.Lock()
        self._lock = threading.RLock()  # re-entrant: a question that nobody answered may be collected at any moment
        self._up = {link.name: False for link in place.neighbours}
        self._links: dict[tuple[str, str, str], str] = {}  # session, from, to: the name in the certificate
        self._joined: frozenset[str] = frozenset()  # names whose session somebody else has links of, too
        both = [way for name in self._up for way in ((place.name, name), (name, place.name))]
        self._keys = {(one, other): self._zenoh.KeyExpr(ask_key(place.run, other, one)) for one, other in both}
        self._windows = {name: Window() for name in self._up}
        self._joiners = {name: Joiner(place.bytes_max) for name in self._up}
        self._numbers = itertools.count()
        self._waiting = 0  # questions that were heard and are not yet answered

    @classmethod
    def open(
        cls, place: Place, hear: Hear, peer: Peer, knocked: Knocked | None = None, anew: Anew | None = None
    ) -> "Transport":
        """Listen, and dial the neighbours for ever; a neighbour that is not there is not an error, `peer` tells.

        hear(sender, payload, reply): a question; reply(answer) may be called once, from any thread, and a reply that is
        thrown away uncalled tells the asker at once that there is none. peer(name, up): a neighbour came or went.
        knocked(shown, reply): somebody is at the door; reply("") lets it in, reply(words) says why not. anew(): the
        links must be made anew, best in a new process; without it that is done here.
        """
        transport = cls(place, hear, peer, knocked, anew)
        try:
            transport._connect()
            transport._worker.start()
        except transport._zenoh.ZError as error:
            transport.close()
            raise AmbleError(
                f"cannot listen on {place.host} port {place.port} ({_reason(error)}); give a free port and an address "
                "of this machine, and see that the agent does not run already."
            ) from error
        except BaseException:
            transport.close()  # an open session would keep the process from ending
            raise
        return transport

    def _connect(self) -> None:
        run, me = self.place.run, self.place.name
        session = self._zenoh.open(self._zenoh.Config.from_json5(json.dumps(settings(self.place))))
        self._session = session
        session.info.declare_link_events_listener(self._callback(self._linked), history=True)
        for name in self._up:
            session.declare_queryable(self._keys[name, me], self._callback(partial(self._question, name)))
        if self._knocked is not None:
            door = Door(door_key(run, me), self._knocked)
            session.declare_queryable(door.key, self._callback(door.opened))
        for name in self._up:
            seen = self._callback(partial(self._seen, name))
            session.liveliness().declare_subscriber(alive_key(run, name), seen, history=True)
        self._alive = session.liveliness().declare_token(alive_key(run, me))  # last: who sees it may ask

    def _work(self) -> None:
        """Zenoh must not be called from its own callbacks, where it may hold its locks: they leave that to this."""
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                log.exception("a job of the links of %s failed", self.place.name)

    def _later(self, job: Callable[[], None]) -> None:
        if not self._closed:
            self._jobs.put(job)
        else:
            job()  # which sees that, and calls no session

    def _callback(self, function: Callable[[Any], None], drop: Callable[[], None] | None = None) -> Any:
        return self._zenoh.handlers.Callback(function, drop, indirect=False)

    def is_up(self, name: str) -> bool:
        return self._up[name]

    def ask(self, to: str, payload: bytes, timeout_s: float, answered: Answered) -> None:
        """Ask a neighbour, from a thread that is not Zenoh's; no answer is waited for here.

        `answered` is called exactly once: with the answer, or with None if there is none (it is down, refused, went
        away, or was silent for timeout_s; a large question goes in parts, and each has that time).
        """
        if to not in self._up:
            raise unknown("neighbour", to, self._up)
        if len(payload) > self.place.bytes_max:
            raise AmbleError(
                f"a question of {len(payload)} bytes was given, and at most {self.place.bytes_max} may be sent; "
                "raise bytes_max at all agents."
            )
        if len(payload) <= PART_BYTES:
            self._ask(to, b"", payload, timeout_s, answered)
            self._windows[to].send()
            return
        pieces = parts(next(self._numbers), payload)

        def go_on(answer: bytes | None) -> None:
            piece = None if answer is None else next(pieces, None)
            if piece is None:
                answered(answer)
            else:
                self._ask(to, *piece, timeout_s, go_on)
                self._later(self._windows[to].send)

        go_on(b"")

    def _ask(self, to: str, header: bytes, part: bytes, timeout_s: float, answered: Answered) -> None:
        """Lets it wait for room in the window."""
        zenoh, window = self._zenoh, self._windows[to]

        def leave() -> None:
            if window.leave(len(part)) and not self._closed:
                self._later(window.send)

        answer = Awaited(answered, to, partial(self._alone, to), leave)

        def send() -> None:
            session = self._session
            if session is None or self._closed or not self._alone(to):
                answer.end()
                return
            try:
                session.get(
                    self._keys[self.place.name, to],
                    self._callback(answer.take, answer.end),
                    payload=part,
                    attachment=header or None,
                    timeout=timeout_s,
                    consolidation=zenoh.ConsolidationMode.NONE,
                    congestion_control=zenoh.CongestionControl.DROP,
                )
            except zenoh.ZError as error:  # closed meanwhile
                log.debug("a question to %s was not sent: %s", to, error)
                answer.end()

        if not window.enter(len(part), send):
            log.warning("a question to %s was given up: too many others wait", to)
            answered(None)

    def close(self) -> None:
        """Leave: the neighbours see it at once, the port is free, and questions under way are answered with None."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            if self._worker.is_alive():
                self._jobs.put(None)
                self._worker.join()
            self._disconnect()
            for window in self._windows.values():
                window.send()  # which tells those who wait that there is no answer

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            except self._zenoh.ZError as error:
                log.warning("the links were not closed in time: %s", _reason(error))

    def _reconnect(self) -> None:
        """Begin anew, with a session whose number nobody else knows."""
        if self._closed:
            return
        self._disconnect()
        with self._lock:
            self._links.clear()
            self._joined = frozenset()
        for name in self._up:
            self._tell(name, False)
        while not self._closed:
            try:
                self._connect()
                return
            except self._zenoh.ZError as error:
                log.warning("cannot listen again, and will try in a second: %s", _reason(error))
                self._disconnect()
                time.sleep(1.0)

    def _question(self, sender: str, query: Any) -> None:
        stay()
        key = self._keys[sender, self.place.name]
        try:
            with self._lock:
                if self._waiting >= self.place.waiting_max:
                    raise ValueError(f"{self._waiting} others are waiting")
                if not self._alone(sender):
                    raise ValueError("somebody else has joined its session")
                payload = self._joiners[sender].take(bytes(query.attachment or b""), bytes(query.payload or b""))
                self._waiting += payload is not None
        except ValueError as refused:
            log.warning("refused a question of %s: %s", sender, refused)
            query.reply_err(str(refused).encode())
            query.drop()
            return
        if payload is None:
            query.reply(key, b"")
            query.drop()
        else:
            self._hear(sender, payload, WayBack(query, key, self._done, self._later))

    def _done(self) -> None:
        with self._lock:
            self._waiting -= 1

    def _seen(self, name: str, sample: Any) -> None:
        self._tell(name, sample.kind == self._zenoh.SampleKind.PUT)

    def _tell(self, name: str, up: bool) -> None:
        with self._lock:  # also while telling, so that the last that is told is the last that happened
            if self._up[name] != up:
                self._up[name] = up
                self._joiners[name].forget()
                self._peer(name, up)

    def _linked(self, event: Any) -> None:
        """Somebody with a certificate of this run is linked, or no longer; told before anything from there is heard."""
        link, name = event.link, str(event.link.auth_identifier)
        key = (str(link.zid), link.src, link.dst)
        if event.kind == self._zenoh.SampleKind.DELETE:
            self._change_links(key, None)
            return
        self._change_links(key, name)
        if not self.place.insecure and name not in self._up:
            log.warning("%s is certified as %s, who is no neighbour: it is not listened to", link.dst, name)
        if not self._alone(name):
            log.warning("%s has joined the session of a neighbour; all links are made anew", name)
            self._later(self._anew or self._reconnect)

    def _alone(self, name: str) -> bool:
        """Whether all links of this neighbour's session are its own: Zenoh looks at the first certificate only."""
        return name not in self._joined

    def _change_links(self, key: tuple[str, str, str], name: str | None) -> None:
        """Who has joined whom is looked for here, which is seldom, and not at every message."""
        with self._lock:
            self._links.pop(key, None)
            if name is not None:
                self._links[key] = name
            names: dict[str, set[str]] = {}
            for (session, _, _), other in self._links.items():
                names.setdefault(session, set()).add(other)
            self._joined = frozenset(other for them in names.values() if len(them) > 1 for other in them)


def _reason(error: Exception) -> str:
    """What Zenoh says, without the places in its source."""
    return str(error).split(" at /")[0].strip()
