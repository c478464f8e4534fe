"""The driver of one agent: it carries out the protocol's effects, with a transport, a journal and a clock.

One thread does everything that changes the agent. The transport's threads only put what they hear on a queue.
"""

import contextlib
import logging
import math
import queue
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from amble.errors import AmbleError
from amble.live import status
from amble.live.agent import refusing, requests, saying, showing
from amble.live.agent.keeping import Keeping
from amble.live.agent.stages import LiveCourse, Stage, open_stage, stage_of, void_stage
from amble.live.agent.undecoded import Undecoded
from amble.live.core.effects import Ask, Effect, Persist, Reply, Report, Wake
from amble.live.core.message import Accepted, Answer, Refused, Stop, Token
from amble.live.core.parcels import Visits
from amble.live.core.protocol import Core
from amble.live.core.stages import CLOSING, OPENING, TRAINING, Stages, Steps
from amble.live.formats import wire
from amble.live.formats.shape import Shape
from amble.live.journal.journal import Event, Journal, line_of
from amble.live.seldom import Seldom
from amble.live.settings.agent_config import AgentConfig
from amble.live.transport import Open, SendAnswer, Transport
from amble.live.transport.address import Address
from amble.progress import Flag

ANSWER_S = 600.0  # how long to wait for an answer: a visit may take long; the protocol avoids silent neighbours
STATUS_S = 0.5
LINGER_S = 3.0  # after the end, and the patience: so that neighbours hear of it, even if they come back just then
MISSED_S = 5.0  # after the start, log which neighbours are missing
SOON_S = 0.05  # until inputs that nobody waits for are handled
KEEP_S, IDLE_S = 1.0, 60.0  # between two writes of the time in the run: with a visit, and without one
NAMES = {OPENING: "the opening survey", TRAINING: "the training", CLOSING: "the closing survey"}

log = logging.getLogger("amble.live")

Input = Callable[[float], Steps[Stage]]  # at a time


class Node:
    """One agent of a run, from its start to its end."""

    def __init__(self, config: AgentConfig, folder: Path, course: LiveCourse, ending: Flag) -> None:
        self.config, self.folder, self.course, self.ending = config, folder, course, ending
        self.sequence: Stages[Stage] = Stages(course, lambda plan: open_stage(plan, config, folder), void_stage)
        self.inputs: queue.SimpleQueue[Input] = queue.SimpleQueue()
        self.thanks: deque[Input] = deque()  # inputs that need not wake the thread
        self.undecoded = Undecoded()
        self.replies: dict[int, SendAnswer] = {}
        self.heard = 0
        before = status.read(folder)
        self.bytes = before.bytes  # heard, including before a restart
        self.begun_s = time.monotonic()
        self.gauge = saying.Gauge(self.begun_s)
        for event in self.journal.events(status.EVENTS_MAX):
            self.gauge.told(event)
        self.gauge.counts = self.journal.counts() | Counter(before.counts)  # which knows of events that were dropped
        before_s = self.journal.elapsed_s()
        # the start of the run here: when a token first came from another agent, shifted by the time that this agent was
        # down; the system's clock has no effect, and an agent that is alone waits
        self.joined_s = math.inf if before_s is None else self.begun_s - before_s
        self.elapsed_kept_s = -math.inf
        self.made = 0  # visits of this process
        self.status_s = self.begun_s
        self.visit_s = self.begun_s  # since when the agent is busy
        self.waited_s = 0.0  # how long the visiting token waited for that
        self.missed = self.core.ending is not None  # whether missing neighbours were logged, if any are missing
        self.seldom = Seldom()
        self.keeping = Keeping(ending)
        self.restarts = False  # whether the links must be set up again, which needs a new process
        self.doubled: Callable[[], dict[str, str]] = dict  # names that two agents have
        self.stopped_s: float | None = None

    # --- stages -----------------------------------------------------------------------------------------------------

    @property
    def stages(self) -> tuple[Stage, ...]:
        return self.sequence.all

    @property
    def stage(self) -> Stage:
        return self.sequence.last

    @property
    def core(self) -> Core:
        return self.stage.core

    @property
    def shape(self) -> Shape:
        return self.stage.shape

    @property
    def journal(self) -> Journal:
        return self.stage.journal

    @property
    def visits(self) -> Visits:
        return self.stage.plan.visits

    def _do(self, steps: Steps[Stage], transport: Transport) -> None:
        """All effects; and what has ended leads to the next stage."""
        for stage, effects in steps:
            self._collect(effects, transport, stage)
        self.keeping.flush()
        if steps := self.sequence.follow(time.monotonic()):
            log.info("%s begins", NAMES[self.stage.name])
            self.joined_s, self.missed, self.stopped_s = math.inf, True, None
            self.gauge.z = {}
            self._do(steps, transport)

    # --- from the transport's threads --------------------------------------------------------------------------------

    def hear(self, sender: str, data: bytes, reply: SendAnswer) -> None:
        """Only the outside is checked here: two threads that take turns to decode cost more than the work."""
        stage, heard_s = stage_of(self.stages, data), time.monotonic()
        try:
            wire.check_outside(stage.shape, data)
            self.undecoded.add(stage.shape, len(data))
        except wire.Refusal as refusal:
            if isinstance(refusal, wire.AnotherRun) and self.course.awaits(stage.name):
                self.inputs.put(lambda now: self.sequence.strange(now, sender))
            else:
                self._refuse(stage, sender, reply, refusal)
        else:
            self.inputs.put(lambda now: self._heard(now, sender, data, reply, heard_s))

    def _refuse(self, stage: Stage, sender: str, reply: SendAnswer, refusal: wire.Refusal) -> None:
        refusing.say("a message", sender, refusal, self.seldom)
        reply(wire.encode(stage.shape, Refused(str(refusal))))

    def peer(self, name: str, up: bool) -> None:
        log.info("%s is %s", name, "up" if up else "down")
        self.inputs.put(lambda now: self.sequence.peer(now, name, up))

    def answered(self, ask: Ask, data: bytes | None, stage: Stage | None = None) -> None:
        stage = stage or self.stage
        try:
            if data == stage.accepted:
                answer: Answer | None = Accepted()
            else:
                answer = None if data is None else wire.decode_answer(stage.shape, data)
        except wire.Refusal as refusal:
            refusing.say("an answer", ask.to, refusal, self.seldom)
            answer = None
        if isinstance(answer, Accepted) and not isinstance(ask.question, Stop):
            self.thanks.append(lambda now: self.sequence.note(now, stage, ask.number, answer))
            return
        self.inputs.put(lambda now: self.sequence.answered(now, stage, ask.number, answer))

    def restart(self) -> None:
        self.restarts = True
        self.wake()

    def wake(self) -> None:
        """So that the one thread looks at once whether it has to end."""
        self.inputs.put(self.sequence.tick)

    def knocked(self, shown: bytes, answer: Callable[[str | None], None]) -> None:
        self.inputs.put(lambda _: self._let_in(shown, answer))

    # --- the one thread ---------------------------------------------------------------------------------------------

    def _heard(self, now: float, sender: str, data: bytes, reply: SendAnswer, heard_s: float) -> Steps[Stage]:
        self.undecoded.take(len(data))
        stage = stage_of(self.stages, data)
        try:
            question = wire.decode_question(stage.shape, data, sender)
        except wire.Refusal as refusal:
            if isinstance(refusal, wire.AnotherRun) and self.course.awaits(stage.name):
                return self.sequence.strange(now, sender)
            self._refuse(stage, sender, reply, refusal)
            return []
        self.waited_s = now - heard_s
        self.heard += 1
        self.bytes += len(data)
        self.replies[self.heard] = reply
        return self.sequence.heard(now, stage, self.heard, question)

    def _let_in(self, shown: bytes, answer: Callable[[str | None], None]) -> Steps[Stage]:
        self.restarts = refusing.let_in(self.config, self.folder, shown, answer, self.seldom) or self.restarts
        return []

    def run(self, open_links: Open, address: Address, invitation: bytes | None = None, patient: bool = False) -> None:
        """Until the run ends, this agent has left it, or `ending` is set.

        A newcomer shows its invitation to its neighbours. With `patient`, an address that is in use is tried again.
        """
        try:
            transport = self._listen(open_links, address, patient)
        except AmbleError:
            self.close_journals()
            raise
        if invitation is not None:
            transport.announce(invitation)
        self.doubled = transport.doubled
        if not patient:
            self._say_started()
        try:
            self._do(self.sequence.start(time.monotonic()), transport)
            while not self._finished():
                now = time.monotonic()
                act = self._next_input(max(0.0, min(self.status_s, *(stage.wake_s for stage in self.stages)) - now))
                now = time.monotonic()
                self._do(self._together(self._steps(act), now, transport), transport)
                limit_s = self.config.stop.seconds
                if limit_s and self.stage.name == TRAINING and now - self.joined_s > limit_s:
                    self._do(self.sequence.halt(now, "seconds", f"{limit_s:g} s are over"), transport)
                if now >= self.status_s:
                    self.status_s = now + STATUS_S
                    self._write_status()
                    self._keep_elapsed(now, IDLE_S)
                    if not self.missed and now - self.begun_s > MISSED_S:
                        self.missed = True
                        refusing.say_missing(self.config, self.core)
                    self._obey(now, transport)
        finally:
            transport.close()
            if "holder" in self.core.rows:
                self._write_status(ended=not self.restarts)
            self._keep_elapsed(time.monotonic(), 0.0)
            self.close_journals()

    def close_journals(self) -> None:
        for stage in self.stages:
            stage.journal.close()

    def _listen(self, open_links: Open, address: Address, patient: bool) -> Transport:
        while True:
            try:
                transport = open_links(address, self.hear, self.peer, self.knocked, self.restart)
                log.info("%s listens on %s port %d", address.name, address.host, address.port)
                return transport
            except AmbleError as error:
                if not patient or self.ending.wait(1.0):
                    raise
                log.warning("%s The agent tries again.", error)

    def _say_started(self) -> None:
        """In the journal too, so that a record tells until when an agent was down."""
        if self.core.ending is None:
            with contextlib.suppress(AmbleError):  # a visit waits for a full disk; this does not
                self.journal.event(started := Report("start"), time_s := time.time())
                self.gauge.told(Event.of(started, time_s))

    def _elapsed_s(self, now: float, every_s: float) -> float | None:
        """How long the run has lasted here, if it is time to store that again; else None."""
        if self.joined_s == math.inf or now - self.elapsed_kept_s < every_s:
            return None
        self.elapsed_kept_s = now
        return now - self.joined_s

    def _keep_elapsed(self, now: float, every_s: float) -> None:
        elapsed_s = self._elapsed_s(now, every_s)
        if elapsed_s is not None:
            with contextlib.suppress(AmbleError):  # a visit waits for a full disk; this does not
                self.journal.keep_elapsed(elapsed_s)

    def _obey(self, now: float, transport: Transport) -> None:
        """What a person asks for."""
        if asked := requests.take_stop(self.folder, self.gauge.process):
            self._do(self.sequence.halt(now, "asked", f"it was asked to end, at {self.config.name}"), transport)
        elif asked is not None and self.seldom("stop", now) is not None:
            log.warning("%s is a request to another process, so it was removed, and the run goes on; to end it, use "
                        "amble stop", self.folder / requests.STOP)  # fmt: skip
        asked_before = self.core.departure.leave_by_s < math.inf
        if self.visits.removes and not asked_before and (within_s := requests.leave_within_s(self.folder)) is not None:
            self._do(self.sequence.leave(time.monotonic(), within_s), transport)

    def _next_input(self, wait_s: float) -> Input:
        if self.core.state.asked:
            wait_s = min(wait_s, SOON_S)
        try:
            return self.inputs.get(timeout=wait_s)
        except queue.Empty:
            for stage in self.stages:
                stage.wake_s = max(stage.wake_s, time.monotonic() + 1e-3)
            return self.sequence.tick

    def _together(self, steps: Steps[Stage], begun_s: float, transport: Transport) -> Steps[Stage]:
        """The steps of an input, and of those that came meanwhile, as long as one transaction for all is faster.

        A visit that takes long, or pauses, is stored on its own; and so is the end of a stage, which others follow.
        """
        while self.keeping.worthwhile(begun_s) and not self.inputs.empty() and not self.config.timing.pause_s:
            for stage, effects in steps:
                self._collect(effects, transport, stage)
            if self.stage.name != TRAINING or self.core.ending:
                return []
            steps = self._steps(self.inputs.get())
        return steps

    def _steps(self, act: Input) -> Steps[Stage]:
        """Of an input; answers first, which may be about a token that is back with this input."""
        self.visit_s = now = time.monotonic()
        while self.thanks:
            self.thanks.popleft()(now)
        return act(now)

    def _finished(self) -> bool:
        if self.ending.is_set() or self.restarts or self.core.left or self.sequence.unfit:
            return True
        if self.core.ending is None:
            return False
        now, linger_s = time.monotonic(), self.config.timing.patience_s + LINGER_S
        if self.stopped_s is None:
            self.stopped_s = now
        waiting = (
            now - self.core.neighbours.down_s.get(name, now) < linger_s
            for name in self.core.neighbours.names
            if not self.core.end.knows(name)
        )
        return not any(waiting) or now - self.stopped_s > linger_s

    def _collect(self, effects: list[Effect], transport: Transport, stage: Stage) -> None:
        """What is said to others waits until all that was collected is stored."""
        for effect in effects:
            if isinstance(effect, Persist):
                self._persist(effect, stage)
            elif isinstance(effect, Reply):
                accepted = isinstance(effect.answer, Accepted)
                said = stage.accepted if accepted else wire.encode(stage.shape, effect.answer)
                self.keeping.then(partial(self.replies.pop(effect.question), said))
            elif isinstance(effect, Ask):
                # a token goes on before its sender is told: the next agent waits for it, and the sender for nothing
                handed = isinstance(effect.question, Token)
                self.keeping.then(partial(self._ask, effect, transport, stage), first=handed)
            elif isinstance(effect, Wake):
                stage.wake_s = effect.at_s
            elif isinstance(effect, Report) and effect.kind in refusing.TOLD:
                self._report(effect, stage)

    def _ask(self, ask: Ask, transport: Transport, stage: Stage) -> None:
        question = wire.encode(stage.shape, ask.question)
        transport.ask(ask.to, question, ANSWER_S, lambda data: self.answered(ask, data, stage))

    def _report(self, report: Report, stage: Stage) -> None:
        said = refusing.logged(report, stage.core, self.seldom)
        if said is None:
            return
        self.keeping.flush()  # so that what is stored, and what is said, keeps its order
        self.keeping.kept(partial(stage.journal.event, said, time_s := time.time()))
        self.gauge.told(Event.of(said, time_s))

    def _persist(self, effect: Persist, stage: Stage) -> None:
        elapsed_s = None
        if effect.visit is not None:  # the pause blocks this thread, as a visit that takes long to compute does
            self.made += 1
            self.gauge.visited(effect.visit.token, effect.rows["holder"].z)
            if self.joined_s == math.inf and effect.visit.giver != self.config.name:
                self.joined_s = time.monotonic()
            if pause_s := stage.pause_s(effect.visit, self.config.timing.pause_s):
                self.ending.wait(max(0.0, self.visit_s + pause_s - time.monotonic()))
            elapsed_s = self._elapsed_s(time.monotonic(), KEEP_S)
        if effect.visit is None:
            self.keeping.put(stage, effect.rows, None, None)
        else:
            times = (time.time(), self.waited_s, time.monotonic() - self.visit_s)
            self.keeping.put(stage, effect.rows, line_of(effect.visit, *times), elapsed_s)
            to = effect.rows[f"custody/{effect.visit.token}"].to
            self.keeping.then(partial(self.gauge.kept, effect.visit, to, *times))
        self.visit_s, self.waited_s = time.monotonic(), 0.0

    @property
    def trained(self) -> Core | None:
        """The protocol of the training, once that has begun."""
        return next((stage.core for stage in self.stages if stage.name == TRAINING), None)

    def model(self) -> Any:
        """The model that this agent may show, or None."""
        if self.course.final is not None:  # also of an agent that came after the training
            return self.course.final
        return None if self.trained is None else showing.model_of(self.trained)

    def _write_status(self, ended: bool = False) -> None:
        w, now = self.model(), time.monotonic()
        joined, known = self.joined_s < math.inf, dict[str, Any]()
        known |= {"bytes": self.bytes, "doubled": self.doubled()}
        known["stage"] = self.stage.name if self.config.surveyed else ""
        known["missing"] = (self.trained or self.core).missing
        if self.stage.name == CLOSING:
            awaited = set(self.core.settings.names_at(self.core.settings.awaited))
            known["silent"] = tuple(name for name in self.core.missing if name in awaited)
        said = saying.status_of(
            self.core, self.gauge, now, joined=joined, ended=ended, made=self.made, model=w is not None, **known
        )
        try:
            showing.write(self.folder, self.course, said, w, ended)
        except OSError as error:
            log.warning("status.json cannot be written (%s); the run goes on", error.strerror)
