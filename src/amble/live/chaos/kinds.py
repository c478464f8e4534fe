"""What fails, and how often: probabilities that only the world's seed decides.

The world (world.py) knows how a link is cut or an agent killed; this says when. Every seed has its own mixture, because
faults of one kind hide those of another: if all links are always cut, no acknowledgement is ever lost.
"""

from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from amble.live.core.stages import CLOSING, OPENING, TRAINING

NAMES = (OPENING, TRAINING, CLOSING)
MOMENTS = (
    "crash", "death", "leave", "join", "freeze", "cut", "lose_link", "leap", "slow", "false_report", "grey", "one_way",
    "clone", "amnesia",
)  # fmt: skip
MUCH = (0.0, 0.3, 1.0, 3.0)  # of the chances below, in one seed
COPIED = 0.3  # of the seeds have copied agents


@dataclass(frozen=True)
class Faults:
    """How the world fails; chances are of each message or each moment, times in virtual seconds."""

    loss: float = 0.04
    double: float = 0.04
    late: float = 0.06  # a message that takes up to `late_max_s`, so that others overtake it
    between: float = 0.0025  # an agent crashes between two of its effects
    torn: float = 0.005  # it crashes while it writes: all of the transaction is kept, or none of it
    crash: float = 0.15
    death: float = 0.02
    leave: float = 0.02
    join: float = 0.03
    freeze: float = 0.1
    cut: float = 0.08
    lose_link: float = 0.02  # a link between two that live is cut and stays so
    leap: float = 0.1
    slow: float = 0.1
    false_report: float = 0.1  # a neighbour that is well is reported to be down
    grey: float = 0.06  # an agent that is up hangs, keeps tokens or refuses them
    one_way: float = 0.06  # a link is dead in one direction
    clone: float = 0.04  # an agent's folder is copied, and the copy started, too
    amnesia: float = 0.04  # an agent crashes and loses its journal
    late_start: float = 0.1  # an agent starts seconds after the others
    moment_s: float = 0.25
    delay_s: tuple[float, float] = (0.01, 0.05)
    late_max_s: float = 3.0
    back_s: tuple[float, float] = (0.1, 6.0)  # how long a crash, freeze or cut lasts
    lease_s: float = 0.5
    answer_s: float = 600.0  # how long an answer is waited for; in half of the seeds not even half a second
    faults: int = 1000  # then the faults end
    deaths: int = 2  # and departures
    quiet_s: float = 15.0  # what agents still have to notice when nothing fails any more
    healed_s: float = 60.0  # within this time everything must be right ...
    steady_s: float = 2.0  # ... and stay so

    def mixed(self, chance: Random) -> "Faults":
        """This seed's mixture."""
        much: dict[str, Any] = {
            kind: getattr(self, kind) * chance.choice(MUCH) for kind in (*MOMENTS, "between", "torn")
        }
        messages = {kind: getattr(self, kind) * chance.choice((0.5, 1.0, 2.0)) for kind in ("loss", "double", "late")}
        doubled = chance.random() < COPIED  # which suspends the checks of single steps
        much["clone"] *= doubled
        much["amnesia"] *= doubled
        answer_s = chance.choice((self.answer_s, 0.4))
        last_s = self.back_s[1] * chance.choice((0.2, 0.5, 1.0))
        return replace(self, **much, **messages, back_s=(self.back_s[0], last_s), answer_s=answer_s)


class Trouble:
    """Causes the faults, and counts them."""

    def __init__(self, world: Any, faults: Faults, chance: Random) -> None:
        self.world, self.chance = world, chance
        self.faults = faults.mixed(chance)
        self.on, self.done = True, Counter[str]()
        self.left = faults.faults
        self.pace = 1.0  # how many times as long messages take
        self.stage = ""  # that the faults begin with, in a world of stages
        self.by_stage = Counter[tuple[str, str]]()  # faults by the stage that the first agent was in, and their kind
        self.now_in = OPENING

    def wait_for(self, stage: str) -> None:
        """The faults begin when the first agent has reached this stage, and are fewer, so that some are in each."""
        self.stage, self.on, self.left = stage, False, min(self.left, self.chance.randint(20, 150))

    def reached(self, stage: str) -> None:
        self.now_in = max(self.now_in, stage, key=NAMES.index)
        if stage == self.stage and not self.on and self.left > 0:
            self.on = True
            self.moment()

    def count(self, kind: str) -> None:
        self.done[kind] += 1
        self.by_stage[self.now_in, kind] += 1
        self.left -= 1
        self.on = self.on and self.left > 0

    def happens(self, kind: str) -> bool:
        return self.on and self.chance.random() < getattr(self.faults, kind)

    def fate(self, kind: str) -> list[float]:
        """How long each copy of a message is on its way; no copy: it is lost."""
        delays_s = [self.chance.uniform(*self.faults.delay_s) * self.pace]
        if self.happens("loss"):
            self.count(f"{kind} lost")
            return []
        if self.happens("double"):
            self.count(f"{kind} doubled")
            delays_s.append(self.chance.uniform(*self.faults.delay_s))
        if self.happens("late"):
            self.count(f"{kind} late")
            delays_s[-1] = self.chance.uniform(0, self.faults.late_max_s)
        return delays_s

    def start_s(self) -> float:
        """When an agent starts; some do so long after the others."""
        if self.happens("late_start"):
            self.count("late start")
            return self.chance.uniform(3, 10)
        return self.chance.uniform(0, 0.3)

    def back_s(self) -> float:
        """How long it takes until something comes back."""
        return self.chance.uniform(*self.faults.back_s)

    def moment(self) -> None:
        """From time to time, causes a fault."""
        if self.on:
            name = self.chance.choice(list(self.world.nodes))
            for kind in MOMENTS:
                if self.happens(kind):
                    getattr(self, kind)(name)
            self.world.at(self.faults.moment_s * self.chance.uniform(0.2, 1.8), self.moment)

    # --- one kind each ----------------------------------------------------------------------------------------------

    def crash(self, name: str, kind: str = "crash") -> None:
        if self.world.nodes[name].core is not None:
            self.count(kind)
            self.world.kill(name)
            self.world.at(self.back_s(), lambda: self.world.begin(name))

    def death(self, name: str) -> None:
        if self._may_go(name):
            self.count("death")
            self.world.nodes[name].dead = True
            self.world.kill(name)

    def leave(self, name: str) -> None:
        if self.world.visits.removes and self._may_go(name):
            self.count("departure")
            self.world.leave(name)

    def _may_go(self, name: str) -> bool:
        gone = [node.name for node in self.world.nodes.values() if node.going]
        if len(gone) >= self.faults.deaths or name in gone:
            return False
        return bool(self.world.connected(without=name))

    def join(self, name: str) -> None:
        """One more agent, linked to this one and to others."""
        others = [other for other in self.world.nodes if self.world.stays(other)]
        if len(self.world.guests) < self.world.settings.room and name in others:
            near = {name, *self.chance.sample(others, min(len(others), self.chance.randint(1, 3)))}
            self.count("newcomer")
            self.world.join(tuple(sorted(near)))

    def freeze(self, name: str) -> None:
        node = self.world.nodes[name]
        if node.core is not None and not node.frozen:
            self.count("freeze")
            life = node.life
            self.world.freeze(name, self.faults.lease_s)
            self.world.at(self.back_s(), lambda: self.world.thaw(name, life))

    def cut(self, name: str) -> None:
        """Some agents are cut off from the rest."""
        side = {other for other in self.world.nodes if self.chance.random() < 0.5} | {name}
        links = [link for link in self.world.links.pairs if (link[0] in side) != (link[1] in side)]
        links = [link for link in links if link not in self.world.links.cuts]
        if links:
            self.count("cut")
            self.world.cut(links, self.faults.lease_s)
            self.world.at(self.back_s(), lambda: self.world.rejoin(links, self.chance.uniform(0.05, 0.4)))

    def lose_link(self, name: str) -> None:
        """One link for good, and only one: the living agents can still reach each other."""
        near = [link for link in self.world.links.pairs if name in link and link not in self.world.links.cuts]
        if near and not self.world.links.lost:
            link = self.chance.choice(near)
            self.world.links.lost = {link}
            if not self.world.connected():
                self.world.links.lost = set()
                return
            self.count("link lost")
            self.world.cut([link], self.faults.lease_s)

    def leap(self, name: str) -> None:
        self.count("leap")
        self.world.nodes[name].leapt_s += self.chance.uniform(0, 5)

    def slow(self, name: str) -> None:
        self.count("slow")
        self.world.nodes[name].slow_s = self.chance.choice([0.0, 0.0, 0.1, 0.5])

    def false_report(self, name: str) -> None:
        """It recovers after a while, which may be longer than the agents' patience."""
        self.count("false report")
        other = self.chance.choice(self.world.links.near(name))
        self.world.report(name, other, up=False)
        self.world.notice(name, other, self.back_s())

    def grey(self, name: str) -> None:
        node = self.world.nodes[name]
        if node.core is not None and not node.frozen and not node.grey:
            kind = self.chance.choice(("hangs", "keeps", "refuses"))
            self.count(f"agent that {kind}")
            self.world.turn_grey(name, kind)
            self.world.at(self.back_s() * self.chance.choice((1, 1, 10)), lambda: self.world.recover(name))

    def one_way(self, name: str) -> None:
        """Messages to one neighbour are lost, but not those from it; sometimes this is noticed."""
        other = self.chance.choice(self.world.links.near(name))
        if (name, other) not in self.world.links.dead_ends:
            self.count("one-way link")
            self.world.one_way(name, other, self.faults.lease_s if self.chance.random() < 0.5 else None)
            self.world.at(self.back_s(), lambda: self.world.both_ways(name, other))

    def clone(self, name: str) -> None:
        node = self.world.nodes[name]
        if node.core is not None and not node.going and not self.world.clones:
            self.count("copied agent")
            self.world.clone(name, self.chance.random() < 0.5, self.faults.lease_s * self.chance.uniform(1, 3))
            self.world.at(self.back_s(), lambda: self.world.end_clone(name))

    def amnesia(self, name: str) -> None:
        """A damaged journal was deleted, as its sentence says."""
        node = self.world.nodes[name]
        if node.core is not None and not node.going:
            self.count("lost journal")
            self.world.kill(name)
            node.disk.clear()
            self.world.at(self.back_s(), lambda: self.world.begin(name))
