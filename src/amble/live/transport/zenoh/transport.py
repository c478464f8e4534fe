"""The links between agents, over Eclipse Zenoh: questions and answers in bytes, and which neighbours are there.

An agent asks its neighbours and is asked by them, and by nobody else but at its door (door.py); nothing is sent that is
not answered. What A asks B has the key `amble/RUN/B/from/A`. B lets only the certificate with the common name A use it
(configuration.py has all that is allowed), so the sender that B hears of is the certified one. A announces itself by
`amble/RUN/alive/A`, which only A can do. A neighbour is up if it announces itself, has a link (links.py), answers
(pulse.py), and exists only once.

What Zenoh calls runs in its threads. `ask` and `close` speak to Zenoh at once, in the caller's thread: a hand-over to
another thread costs more than the question.
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
from amble.live.seldom import Seldom, more
from amble.live.transport import Answered, Hear, Knocked, Peer, Restart
from amble.live.transport.address import Address
from amble.live.transport.sockets import check_free
from amble.live.transport.zenoh.answering import REFUSED, Awaited, WayBack, refusal
from amble.live.transport.zenoh.configuration import alive_key, ask_key, door_key, settings
from amble.live.transport.zenoh.door import Door, knock_at_all
from amble.live.transport.zenoh.links import End, Links
from amble.live.transport.zenoh.pulse import SLACK_S, Pulse
from amble.live.transport.zenoh.sending import PART_BYTES, PROBE, Joiner, Window, parts
from amble.live.transport.zenoh.sockets import cut_off
from amble.live.transport.zenoh.staying import stay

GONE_S = 1.0  # for Zenoh to close a link that it has given up
AGAIN_S = 60.0  # until a doubled name is logged again

log = logging.getLogger(__name__)


class ZenohTransport:
    """One agent's links; made by open()."""

    def __init__(
        self, address: Address, hear: Hear, peer: Peer, knocked: Knocked | None = None, restart: Restart | None = None
    ) -> None:
        self.address = address
        self._hear, self._peer, self._knocked, self._restart = hear, peer, knocked, restart
        self._zenoh = need("zenoh", "live")
        self._session: Any = None
        self._closed, self._ended = False, threading.Event()
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._worker = threading.Thread(target=self._work, name=f"amble {address.name}", daemon=True)
        self._closing = threading.Lock()
        self._lock = threading.RLock()  # re-entrant: a question that nobody answered may be collected at any moment
        self._up = {link.name: False for link in address.neighbours}
        self._alive_said = dict(self._up)  # what each neighbour says of itself
        self._links = Links(address.lease_s + SLACK_S)
        self._pulse = Pulse(self._up, address.lease_s, time.monotonic())
        self._gone: dict[End, float] = {}  # links that Zenoh has given up, and when
        self._refused: dict[str, str] = {}  # by whom we are, and why
        self._said_s: dict[str, float] = {}  # what was said when, so that it is not said too often
        both = [way for name in self._up for way in ((address.name, name), (name, address.name))]
        self._keys = {(one, other): self._zenoh.KeyExpr(ask_key(address.run, other, one)) for one, other in both}
        self._windows = {name: Window() for name in self._up}
        self._joiners = {name: Joiner(address.bytes_max) for name in self._up}
        self._numbers = itertools.count()
        self._seldom = Seldom()
        self._waiting = 0  # questions that were heard and are not yet answered

    @classmethod
    def open(
        cls, address: Address, hear: Hear, peer: Peer, knocked: Knocked | None = None, restart: Restart | None = None
    ) -> "ZenohTransport":
        """See transport.Open."""
        transport = cls(address, hear, peer, knocked, restart)
        try:
            transport._connect()
            transport._worker.start()
        except transport._zenoh.ZError as error:
            transport.close()
            check_free(address.host, address.port)
            raise AmbleError(
                f"cannot listen on {address.host} port {address.port} ({_reason(error)}); see to its certificate and "
                "key."
            ) from error
        except BaseException:
            transport.close()  # an open session would keep the process from ending
            raise
        return transport

    def _connect(self) -> None:
        run, me = self.address.run, self.address.name
        session = self._zenoh.open(self._zenoh.Config.from_json5(json.dumps(settings(self.address))))
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
        beat_s = time.monotonic()
        while True:
            try:
                wait_s = beat_s - time.monotonic()
                if wait_s > 0:
                    job = self._jobs.get(timeout=wait_s)
                else:
                    beat_s, job = time.monotonic() + self._pulse.tick_s, self._beat
            except queue.Empty:
                continue
            if job is None:
                return
            try:
                job()
            except Exception:
                log.exception("a job of the links of %s failed", self.address.name)

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
        """From a thread that is not Zenoh's. A large question goes in parts, and each has timeout_s."""
        if to not in self._up:
            raise unknown("neighbour", to, self._up)
        self.address.check_size(payload)
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

        asked_s = time.monotonic()
        answer = Awaited(answered, to, partial(self._alone, to), lambda: self._pulse.proved(to, asked_s), leave)

        def send() -> None:
            nonlocal asked_s
            session = self._session
            if session is None or self._closed or not self._alone(to):
                answer.end()
                return
            asked_s = time.monotonic()
            try:
                session.get(
                    self._keys[self.address.name, to],
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
            log.warning("a question to %s was dropped: too many others wait", to)
            answered(None)

    def close(self) -> None:
        self._ended.set()
        with self._closing:
            if self._closed:
                return
            self._closed = True
            if self._worker.is_alive():
                self._jobs.put(None)
                self._worker.join()
            self._disconnect()
            for window in self._windows.values():
                window.send()  # which tells the waiting callers that there is no answer

    def _disconnect(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            try:
                session.close()
            except self._zenoh.ZError as error:
                log.warning("the links were not closed in time: %s", _reason(error))

    def _reconnect(self) -> None:
        """Start again, with a session whose number nobody else knows."""
        if self._closed:
            return
        self._disconnect()
        self._links.clear()
        for name in self._up:
            self._alive_said[name] = False
            self._review(name)
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
        key, header = self._keys[sender, self.address.name], bytes(query.attachment or b"")
        if not self._alone(sender):
            self._refuse(sender, query)
            return
        if header == PROBE:
            query.reply(key, b"")
            query.drop()
            return
        try:
            with self._lock:
                if self._waiting >= self.address.waiting_max:
                    raise ValueError(f"{self._waiting} others are waiting")
                payload = self._joiners[sender].take(header, bytes(query.payload or b""))
                self._waiting += payload is not None
        except ValueError as refused:
            if (left_out := self._seldom((sender, type(refused)), time.monotonic())) is not None:
                log.warning("refused a question from %s: %s%s", sender, refused, more(left_out))
            query.reply_err(REFUSED + str(refused).encode())
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

    def _refuse(self, sender: str, query: Any) -> None:
        """A name that exists twice is told so. Before that is certain, and to agents that joined a session, nothing is
        sent."""
        sentence = self._links.doubled(time.monotonic()).get(sender)
        if sentence:
            query.reply_err(REFUSED + sentence.encode())
        query.drop()

    def _seen(self, name: str, sample: Any) -> None:
        self._alive_said[name] = sample.kind == self._zenoh.SampleKind.PUT
        self._refused.pop(name, None)
        self._pulse.begin(name, time.monotonic())
        self._review(name)

    def _review(self, name: str) -> None:
        """Tell whether a neighbour is up, where that has changed."""
        with self._lock:  # also while telling, so that the last that is told is the last that happened
            linked = self.address.insecure or self._links.linked(name)
            up = self._alive_said[name] and linked and self._pulse.answers(name) and self._alone(name)
            if self._up[name] != up:
                self._up[name] = up
                self._joiners[name].forget()
                self._peer(name, up)

    def _linked(self, event: Any) -> None:
        """An agent with a certificate of this run is linked, or no longer; called before any of its messages."""
        link, name, now = event.link, str(event.link.auth_identifier), time.monotonic()
        end, there = End(str(link.zid), link.src, link.dst), event.kind == self._zenoh.SampleKind.PUT
        if there:  # the addresses of one that is gone may be used again
            self._gone = {gone: at_s for gone, at_s in list(self._gone.items()) if gone[1:] != end[1:]}
        else:
            self._gone[end] = now
        self._links.change(now, end, name if there else None)
        if there and not self.address.insecure and name not in self._up:
            log.warning("%s has the certificate of %s, which is not a neighbour: it is ignored", link.dst, name)
        if there and self._links.joined(name):
            log.warning("%s has joined the session of a neighbour; all links are set up again", name)
            self._later(self._restart or self._reconnect)
        if name in self._up:
            self._pulse.begin(name, now)
            self._review(name)

    def _alone(self, name: str) -> bool:
        """Whether all links under this neighbour's name are of one session, and all links of that session its own."""
        return not (self._links.joined(name) or (self._links.twice(name) and not self.address.insecure))

    def announce(self, shown: bytes) -> None:
        known = (self.address, shown, self.is_up, self._ended)
        threading.Thread(target=knock_at_all, args=known, daemon=True).start()

    def doubled(self) -> dict[str, str]:
        said_of_us = [(self.address.name, sentence) for sentence in list(self._refused.values())]
        return dict(said_of_us) | self._links.doubled(time.monotonic())

    def _beat(self) -> None:
        """A few times per lease: checks who answers, which names exist twice, and which links are dead."""
        now = time.monotonic()
        for end in [end for end, since_s in list(self._gone.items()) if now - since_s > GONE_S]:
            if self._gone.pop(end, None) is not None and cut_off(end.here, end.there):
                log.info("the connection with %s, which no longer answered, is closed", end.there)
        for name, sentence in self._links.doubled(now).items():
            self._say(name, sentence)
        linked = [name for name, there in self._alive_said.items() if there and self._alone(name)]
        for name in self._pulse.silent(now, linked):
            log.warning("%s has a link, but has not answered for %g s", name, self._pulse.limit_s)
            self._review(name)
        for name in self._pulse.due(now, linked):
            self._probe(name)

    def _probe(self, name: str) -> None:
        session, asked_s = self._session, time.monotonic()
        if session is None or self._closed:
            return

        def answered(reply: Any) -> None:
            stay()
            if reply.ok is None:
                if (said := refusal(reply)) is None:
                    return  # nobody answered in time, which _beat sees by itself
                self._pulse.refuses(name)
                self._refused[name] = said
                self._say(f"refused by {name}", f"{name} ignores us: {said}")
            else:
                self._refused.pop(name, None)
                self._pulse.proved(name, asked_s)
                self._pulse.speaks(name)
            self._review(name)

        session.get(
            self._keys[self.address.name, name],
            self._callback(answered),
            attachment=PROBE,
            timeout=self._pulse.limit_s,
            consolidation=self._zenoh.ConsolidationMode.NONE,
            congestion_control=self._zenoh.CongestionControl.DROP,
            priority=self._zenoh.Priority.INTERACTIVE_HIGH,
        )

    def _say(self, about: str, sentence: str) -> None:
        """Logs an error, but not repeatedly."""
        now = time.monotonic()
        if now - self._said_s.get(about, -AGAIN_S) >= AGAIN_S:
            self._said_s[about] = now
            log.error("%s", sentence)


def _reason(error: Exception) -> str:
    """What Zenoh says, without the places in its source."""
    return str(error).split(" at /")[0].strip()
