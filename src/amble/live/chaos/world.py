"""A simulated network with disks and clocks. One seed reproduces everything. Only the agents are real. The world
delivers their messages, late or twice or not at all, keeps their disks while they are down, and starts them again from
these. After so many faults (kinds.py) nothing fails any more, and the run has to recover. checkers.py checks what must
be true; it knows nothing about the protocol.
"""

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from amble.live.chaos.checkers import Broken, Checker
from amble.live.chaos.endings import StagedChecker, survey_wrong
from amble.live.chaos.kinds import Faults, Trouble
from amble.live.chaos.links import Link, Links, listed
from amble.live.chaos.node import Node
from amble.live.chaos.staged import NAMES, StagedCore, fits, is_token
from amble.live.chaos.training import TOLERANCE, Training
from amble.live.core.effects import Ask, Persist, Reply, Report, Settings, Wake
from amble.live.core.message import Answer, Question, Refused, Token
from amble.live.core.packing import Packing
from amble.live.core.protocol import Core
from amble.live.core.short import ShortPacking

LOOK_S = 1.0  # between two checks whether the run has recovered
QUIET_PACE = 5.0  # factor on message times while the world waits for agents' patience, so that few visits happen
ROOM = 2
LEAVE_S = 5.0
STALL_S = 2.0


class World:
    """`make_core`, `make_visits` and `reorder` (of effects) are where a test plants a bug; what is trained, and by how
    many agents, follows from the seed, unless it is given."""

    def __init__(
        self,
        seed: int,
        faults: Faults | None = None,
        make_core: Callable[..., Core] = Core,
        make_visits: Any = None,
        reorder: Callable[[list[Any]], list[Any]] = list,
        story: Callable[[str], None] | None = None,
        trained: str = "",
        agents: int = 0,
    ) -> None:
        self.chance = chance = random.Random(seed)
        self.reorder, self.story = reorder, story
        self.make_core: Callable[..., Any] = make_core
        count, tokens = chance.randint(4, 7), chance.randint(1, 3)
        count = agents or count
        names = tuple(f"a{k}" for k in range(count))
        ring = list(zip(names, names[1:] + names[:1], strict=True))
        self.links = Links([
            pair for pair in itertools.combinations(names, 2)
            if pair in ring or pair[::-1] in ring or chance.random() < 0.4
        ])  # fmt: skip
        stop = chance.choice(({}, {}, {}, {"hops_max": tokens * chance.randint(50, 500)}, {"tolerance": TOLERANCE}))
        self.ways = dict(ring)
        self.guests: dict[str, int] = {}  # agents that joined later, and their indices
        self.settings = Settings(
            names, tokens, seed, patience_s=1.0, stall_s=STALL_S, silence_s=12.0, tell_s=0.05, room=ROOM, **stop
        )
        self.training = Training(chance, self.settings, trained, make_visits)
        self.settings, self.visits, staged = self.training.settings, self.training.visits, self.training.staged
        self.packing = ShortPacking(Packing(self.visits.parcel(0)), self.visits.short)
        if staged:
            self.make_core = partial(StagedCore, make_core=make_core)
        self.nodes = {name: Node(name, self.training.objective()) for name in names}
        self.clones: dict[str, Node] = {}  # of agents that were copied, while the copy runs
        self.now, self.serial, self.events = 0.0, itertools.count(1), list[tuple[float, int, Callable[[], None]]]()
        self.waiting: dict[int, tuple[str, Callable[[Answer | None], None]]] = {}
        self.healed_s: float | None = None
        self.trouble = Trouble(self, faults or Faults(), chance)
        self.checker: Any = StagedChecker(self) if staged else Checker(self)
        if staged:
            self.trouble.wait_for(chance.choice(NAMES))

    # --- running ----------------------------------------------------------------------------------------------------

    def run(self) -> Counter[str]:
        """Runs with faults, then without; raises checkers.Broken if a check fails. Returns the faults by kind."""
        for name in self.nodes:
            self.at(self.trouble.start_s(), partial(self.begin, name))
        self.at(self.trouble.faults.moment_s, self.trouble.moment)
        while self.trouble.left > 0:
            self.step()
        self.heal()
        self._come_right()
        if self.settings.result:
            self._end()
        return self.trouble.done

    def _come_right(self) -> None:
        """The run must recover in bounded time, and stay so."""
        faults = self.trouble.faults
        end_s = self.now + faults.healed_s
        self.trouble.pace = QUIET_PACE
        self.until(self.now + faults.quiet_s)
        self.trouble.pace = 1.0
        while self.checker.wrong():
            if self.now >= end_s:
                self.checker.at_the_end()
            self.until(self.now + LOOK_S)
        self.checker.steady_from_s = self.now
        self.until(self.now + faults.steady_s)
        self.checker.at_the_end()

    def _end(self) -> None:
        """Ends a survey, if nobody has: all must have the same sums."""
        name = self.chance.choice([name for name, node in self.nodes.items() if node.core is not None])
        self.tell(name, self.nodes[name].life, lambda core, now: core.halt(now, "seconds", "it is time"))
        end_s = self.now + self.trouble.faults.healed_s
        while sentence := survey_wrong(self):
            if self.now >= end_s:
                raise Broken(sentence)
            self.until(self.now + LOOK_S)

    def until(self, time_s: float) -> None:
        while self.events and self.events[0][0] <= time_s:
            self.step()
        self.now = time_s

    def at(self, in_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self.events, (self.now + in_s, next(self.serial), action))

    def step(self) -> None:
        self.now, _, action = heapq.heappop(self.events)
        action()

    def say(self, sentence: str) -> None:
        if self.story is not None:
            self.story(f"{self.now:9.3f}  {sentence}")

    # --- agents -----------------------------------------------------------------------------------------------------

    def begin(self, name: str) -> None:
        node = self.nodes[name]
        node.dead = node.dead or "left" in node.disk  # it crashed after it had left, and before it could say so
        if node.dead or node.core:
            return
        node.life += 1
        node.leapt_s = self.chance.uniform(-1000, 1000) - self.now  # a machine that restarts also restarts its clock
        near = self.links.near(name)
        self.say(f"{name} starts: life {node.life}")
        guests = {guest: index for guest, index in self.guests.items() if guest == name or guest in near}
        settings = replace(self.settings, guests=guests, next=(dict(self.ways),) * self.settings.tokens)
        node.core = self.make_core(name, near, settings, self.visits, node.value, rows=dict(node.disk))
        node.settings = settings
        self.checker.restored(node)
        self.carry_out(node, node.core.start(self.clock(node)))
        if node.leaving:
            self.leave(name)
        for other in near:
            self.notice(name, other, self.chance.uniform(0.05, 0.4))
            self.notice(other, name, self.chance.uniform(0.05, 0.4))

    def kill(self, name: str) -> None:
        node = self.nodes[name]
        self.say(f"{name} {'dies' if node.dead else 'crashes'}")
        while node.asked:  # the link breaks, and with it what was asked over it
            self.at(self.chance.uniform(0.002, 0.05), partial(node.asked.popleft(), None))
        node.core, node.frozen, node.grey, node.postponed = None, False, "", []
        for other in self.links.near(name):
            self.notice(other, name, self.chance.uniform(0.002, 0.05))

    def leave(self, name: str) -> None:
        """Asks the agent to leave; it ends when it says that it has left, or else after a while."""
        self.say(f"{name} is asked to leave")
        self.nodes[name].leaving = True
        self.tell(name, self.nodes[name].life, lambda core, now: core.leave(now, LEAVE_S))

    def join(self, near: tuple[str, ...]) -> None:
        """Adds an agent; its neighbours restart with it. It is inserted between two of them on a walk, if possible."""
        name, index = f"a{len(self.nodes)}", len(self.nodes)
        self.say(f"{name} joins {', '.join(near)}")
        self.nodes[name], self.guests[name] = Node(name, self.training.objective()), index
        self.links.pairs += [(other, name) for other in near]
        for before in near:
            if self.ways.get(before) in near:
                self.ways[before], self.ways[name] = name, self.ways[before]
                break
        for other in near:
            if self.nodes[other].core is not None:
                self.kill(other)
            self.begin(other)
        self.begin(name)

    def freeze(self, name: str, noticed_s: float) -> None:
        self.say(f"{name} freezes")
        self.nodes[name].frozen = True
        for other in self.links.near(name):
            self.notice(other, name, noticed_s)

    def thaw(self, name: str, life: int) -> None:
        node = self.nodes[name]
        if node.life != life or not node.frozen:
            return
        self.say(f"{name} thaws")
        node.frozen, waiting, node.postponed = False, node.postponed, []
        for act in waiting:
            act()
        for other in self.links.near(name):
            self.notice(other, name, self.chance.uniform(0.05, 0.4))

    def turn_grey(self, name: str, grey: str) -> None:
        """The agent seems to be up, and nobody is told otherwise."""
        self.say(f"{name} {grey}")
        self.nodes[name].grey = grey

    def recover(self, name: str) -> None:
        node = self.nodes[name]
        if node.grey:
            self.say(f"{name} {node.grey} no longer")
            node.grey, waiting, node.postponed = "", node.postponed, []
            for act in waiting:
                act()

    def clone(self, name: str, journal: bool, noticed_s: float) -> None:
        """A copy of its folder is started elsewhere. A message may reach either of them, until neighbours notice."""
        node = self.nodes[name]
        self.say(f"{name} is copied, {'with' if journal else 'without'} its journal")
        copy = self.clones[name] = Node(name, node.value, dict(node.disk) if journal else {}, life=-1)
        copy.core = self.make_core(
            name, self.links.near(name), node.settings or self.settings, self.visits, node.value, rows=dict(copy.disk)
        )
        self.carry_out(copy, copy.core.start(self.clock(copy)))
        for other in self.links.near(name):
            self.tell_node(copy, partial(_met, name=other))

        def notice() -> None:
            if self.clones.get(name) is copy:
                self.links.refused.add(name)
                for other in self.links.near(name):
                    self.report(other, name, up=False)

        self.at(noticed_s, notice)

    def end_clone(self, name: str) -> None:
        if copy := self.clones.pop(name, None):
            self.say(f"the copy of {name} ends")
            copy.core = None
            self.links.refused.discard(name)
            for other in self.links.near(name):
                self.notice(other, name, self.chance.uniform(0.05, 0.4))

    def clock(self, node: Node) -> float:
        return self.now + node.leapt_s

    def tell(self, name: str, life: int, act: Callable[[Core, float], Any]) -> None:
        """Something happens to an agent: now, when it thaws, or never."""
        node = self.clones.get(name) if life < 0 else self.nodes[name]
        if node is not None and node.life == life:
            self.tell_node(node, act)

    def tell_node(self, node: Node, act: Callable[[Core, float], Any]) -> None:
        if node.core is None:
            return
        if node.frozen or node.grey == "hangs":
            life = node.life
            node.postponed.append(lambda: self.tell(node.name, life, act))
            return
        self.carry_out(node, act(node.core, self.clock(node)))

    def carry_out(self, node: Node, effects: list[Any]) -> None:
        """One effect after another; a crash may come between any two, and in the middle of a write."""
        for effect in self.reorder(effects):
            if node.life >= 0 and self.trouble.happens("between"):
                self.trouble.crash(node.name)
            if node.core is None:
                return
            kind = type(effect)
            if kind is Wake:
                self.wake(node, effect.at_s)
                continue
            self.checker.effect(node, effect)
            if kind is Persist:
                self.write(node, effect)
            elif kind is Ask:
                self.ask(node, effect)
            elif kind is Reply:
                self.reply(node, effect)
            elif kind is Report and effect.kind == "entered":
                self.trouble.reached(effect.words)
            elif kind is Report and effect.kind in ("left", "unfit") and node.life >= 0:
                node.dead = True
                self.kill(node.name)

    def write(self, node: Node, effect: Persist) -> None:
        torn = node.life >= 0 and self.trouble.happens("torn")
        if not torn or self.chance.random() < 0.5:
            node.disk.update(effect.rows)
            self.checker.persisted(node, effect)
        if torn:
            self.trouble.crash(node.name, "crash while writing")

    def wake(self, node: Node, at_s: float) -> None:
        node.wake, life = next(self.serial), node.life
        this = node.wake

        def ring() -> None:
            if node.wake == this:
                self.tell(node.name, life, lambda core, now: core.tick(now))

        self.at(max(0.0, at_s - self.clock(node)) + 1e-4, ring)

    # --- the network ------------------------------------------------------------------------------------------------

    def travel(self, kind: str, deliver: Callable[[], None]) -> None:
        for delay_s in self.trouble.fate(kind):
            self.at(delay_s, deliver)

    def ask(self, node: Node, ask: Ask) -> None:
        life, answered = node.life, [False]

        def answer(reply: Answer | None) -> None:
            if not answered[0]:
                answered[0] = True
                self.tell(node.name, life, lambda core, now: core.answered(now, ask.number, reply))

        def deliver() -> None:
            if self.links.whole(node.name, ask.to):
                self.open(ask.to, node.name, ask.question, answer)

        self.nodes[ask.to].asked.append(answer)
        if not (node.grey == "keeps" and is_token(ask.question)):
            self.travel("question", deliver)
        self.at(self.trouble.faults.answer_s + node.slow_s, lambda: answer(None))

    def open(self, name: str, sender: str, question: Question, answer: Callable[[Answer | None], None]) -> None:
        node = self.nodes[name]
        if name in self.clones and self.chance.random() < 0.5:
            node = self.clones[name]
        if node.core is None:
            return
        if node.grey == "refuses" and is_token(question):
            answer(Refused("it refuses"))
            return
        if isinstance(question, Token):  # as the bytes of a message
            packed = self.packing.pack(question.payload)
            data = memoryview(packed if isinstance(packed, bytes) else packed.tobytes())
            question = question._replace(payload=self.packing.unpack(data, finite=True))
        number, life = next(self.serial), node.life
        self.checker.question(number, question)
        self.waiting[number] = (sender, answer)

        def hear() -> None:
            self.tell(name, life, lambda core, now: core.heard(now, number, question))

        if node.slow_s:
            self.at(node.slow_s, hear)
        else:
            hear()

    def reply(self, node: Node, reply: Reply) -> None:
        sender, answer = self.waiting.pop(reply.question)

        def deliver() -> None:
            if self.links.whole(node.name, sender):
                answer(reply.answer)

        self.travel("answer", deliver)

    def notice(self, name: str, other: str, in_s: float) -> None:
        """After a while an agent learns whether a neighbour can be reached."""

        def look() -> None:
            node = self.nodes[other]
            there = node.core is not None and not node.frozen
            self.report(name, other, there and self.links.whole(name, other) and self.links.whole(other, name))

        self.at(in_s, look)

    def report(self, name: str, other: str, up: bool) -> None:
        self.tell(name, self.nodes[name].life, lambda core, now: core.peer(now, other, up))

    def cut(self, links: list[Link], noticed_s: float) -> None:
        self.say(f"cut: {listed(links)}")
        self.links.cuts |= set(links)
        self.seen(links, noticed_s)

    def rejoin(self, links: list[Link], noticed_s: float) -> None:
        self.say(f"rejoined: {listed(links)}")
        self.links.cuts -= set(links) - self.links.lost
        self.seen(links, noticed_s)

    def one_way(self, name: str, other: str, noticed_s: float | None) -> None:
        self.say(f"what {name} says does not reach {other}")
        self.links.dead_ends.add((name, other))
        if noticed_s is not None:
            self.seen([(name, other)], noticed_s)

    def both_ways(self, name: str, other: str) -> None:
        self.say(f"what {name} says reaches {other} again")
        self.links.dead_ends.discard((name, other))
        self.seen([(name, other)], 0.1)

    def seen(self, links: list[Link], in_s: float) -> None:
        for one, other in links:
            self.notice(one, other, in_s)
            self.notice(other, one, in_s)

    def connected(self, without: str = "") -> bool:
        """Whether the living agents, except one, reach each other over links that are not lost for good."""
        there = [name for name, node in self.nodes.items() if not node.going and name != without]
        return self.links.connected(there) and self.links.connected(filter(self.stays, there))

    def stays(self, name: str) -> bool:
        """Whether others can count on this agent: it neither dies, nor leaves, nor is unfit for the agreement."""
        unfit = self.training.staged and not fits(self.settings, self.guests.get(name, 0))
        return not self.nodes[name].going and not unfit

    def heal(self) -> None:
        """Everything works from now on; only the dead stay dead, and a lost link lost."""
        self.say("all heals")
        self.healed_s = self.now
        self.rejoin(sorted(self.links.cuts), 0.1)
        self.links.dead_ends.clear()
        for name in list(self.clones):
            self.end_clone(name)
        for node in self.nodes.values():
            node.slow_s = 0.0
            self.recover(node.name)
            if node.frozen:
                self.thaw(node.name, node.life)
            self.begin(node.name)
            for other in self.links.near(node.name):
                self.notice(node.name, other, 0.5)


def _met(core: Any, now: float, name: str) -> list[Any]:
    met: list[Any] = core.peer(now, name, True)
    return met
