"""What must always be true, whatever fails. The checkers see only what agents do and what is on their disks."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from amble.arrays import Array, Number, norm
from amble.live.chaos.kinds import Trouble
from amble.live.chaos.losses import optimum
from amble.live.chaos.node import Node
from amble.live.chaos.training import Training
from amble.live.core.effects import Ask, Effect, Persist, Reply, Report, Settings, Sight, Visit
from amble.live.core.message import Accepted, Epoch, Question, Token
from amble.live.core.packing import digest
from amble.live.core.parcels import Parcel, Visits
from amble.live.core.visits import GiftToken, Giver

CLOSE = 1e-9
CLOSE_MODEL = {"full": 1e-6, "scalar": 1e-3}  # of real losses: how near the optimum the forms of Relay come in time
CLOSE_LOSS = 0.25  # of the least loss: how near to it a token comes that is the model and takes constant steps
LONG_S = 10.0  # after this long without faults, everything must be right


class Broken(AssertionError):
    """An invariant does not hold."""


class Watched(Protocol):
    """What the checkers see of a world."""

    now: float
    healed_s: float | None
    story: Callable[[str], None] | None
    guests: dict[str, int]
    nodes: dict[str, Node]
    settings: Settings
    training: Training
    trouble: Trouble
    visits: Visits

    def say(self, words: str) -> None: ...


class Checker:
    def __init__(self, world: Watched) -> None:
        self.world = world
        self.visited: dict[tuple[int, Epoch, int], str] = {}
        self.taken: dict[tuple[int, Sight], str] = {}
        self.sent: dict[tuple[str, int, Epoch, int], str] = {}
        self.given: dict[tuple[int, Epoch], dict[str, Any]] = {}
        self.gifts: dict[tuple[Any, int], dict[int, Any]] = {}  # of each generation and agent, by their number
        self.models: dict[int, dict[Epoch, str]] = {}  # digests of what each token was last, where it is the model
        self.passed: dict[int, set[str]] = {}  # and of what it was at any time
        self.optima: dict[tuple[str, ...], Array] = {}
        self.out: dict[tuple[int, Epoch], set[str]] = {}  # who has left it
        self.hops: dict[tuple[int, Epoch], int] = {}
        self.acknowledged: dict[tuple[str, int], Sight] = {}
        self.heard: dict[int, Token] = {}
        self.counted = Counter[str]()
        self.lately: dict[int, list[Epoch]] = {}  # epochs of each token's visits while all was steady, in their order
        self.steady_from_s: float | None = None
        self.stopped_s: float | None = None

    # --- after every step -------------------------------------------------------------------------------------------

    @property
    def loose(self) -> bool:
        """Two agents with one name, or an agent without its journal, may break the rules of single steps; but in the
        end everything must be right."""
        return bool({"copied agent", "lost journal"} & self.world.trouble.done.keys())

    def effect(self, node: Node, effect: Effect) -> None:
        if self.loose and not isinstance(effect, Report):
            return
        if isinstance(effect, Ask) and isinstance(effect.question, Token):
            self._one_destination(node, effect.to, effect.question)
        elif isinstance(effect, Reply) and isinstance(effect.answer, Accepted):
            self._kept_before_it_is_acknowledged(node, effect.question)
        elif isinstance(effect, Report):
            self.counted[effect.kind] += 1
            if effect.kind == "stopped":
                self.stopped_s = self.world.now if self.stopped_s is None else self.stopped_s
            if self.world.story is not None and effect.kind != "visit":
                self.world.say(f"{node.name} {effect.kind}{_where(effect)} {effect.words}")

    def question(self, number: int, message: Question) -> None:
        if isinstance(message, Token):
            self.heard[number] = message

    def restored(self, node: Node) -> None:
        """What is restored from a journal equals what was acknowledged."""
        if self.loose:
            return
        for m in range(self.world.settings.tokens):
            sight, custody = node.disk.get(f"sight/{m}"), node.disk.get(f"custody/{m}")
            before = self.acknowledged.get((node.name, m))
            if before is not None and (sight is None or sight < before):
                raise Broken(f"{node.name} acknowledged token {m} up to {before}, and came back with {sight}")
            if custody is not None and (custody.message.epoch, custody.message.hop) != sight:
                raise Broken(f"{node.name} came back with token {m} of {custody.message[1:3]}, and knows of {sight}")

    def persisted(self, node: Node, effect: Persist) -> None:
        visit = effect.visit
        if visit is None or node.life < 0:
            return
        m, key = visit.token, (visit.token, visit.epoch, visit.hop)
        if self.world.story is not None:
            custody = effect.rows[f"custody/{m}"]
            recounting = ", recounting" if visit.after.recounting else ""
            self.world.say(f"{node.name} visited by{_where(visit)} from {visit.giver}, next {custody.to}{recounting}")
        if self.steady_from_s is not None:
            self.lately.setdefault(m, []).append(visit.epoch)
        if self.loose:
            return
        if key in self.visited:
            raise Broken(f"token {m} was visited twice at hop {visit.hop} of {visit.epoch}: "
                         f"by {self.visited[key]} and {node.name}")  # fmt: skip
        self.visited[key] = node.name
        self._taken_once(node, visit, effect.rows[f"custody/{m}"].given)
        if visit.hop <= self.hops.get(key[:2], -1):
            raise Broken(f"the hops of token {m} do not rise in {visit.epoch}")
        self.hops[key[:2]] = visit.hop
        self._nothing_jumps(visit)
        if isinstance(visit.after.token, GiftToken):
            self._the_account_is_the_sum_of_whole_gifts(node, effect)
            return
        if self.world.training.kind == "model":
            self._the_model_is_one_that_was_passed_on(visit)
            return
        share = effect.rows[f"share/{m}"]
        self.given.setdefault(key[:2], {})[node.name] = share.share
        if share.epoch != visit.epoch:
            del self.given[key[:2]][node.name]
            self.out.setdefault(key[:2], set()).add(node.name)
        self._the_total_is_the_sum_of_the_gifts(visit)

    def _taken_once(self, node: Node, visit: Visit, sight: Sight) -> None:
        """No visit is applied twice, and none to what nobody sent here."""
        key = (visit.token, sight)
        if key in self.taken:
            raise Broken(f"token {visit.token} of {sight} was taken twice: by {self.taken[key]} and {node.name}")
        self.taken[key] = node.name
        to = self.sent.get((visit.giver, visit.token, *sight))
        if visit.giver != node.name and to != node.name:
            raise Broken(f"{node.name} took token {visit.token} of {sight}, which {visit.giver} sent to {to}")

    def _the_account_is_the_sum_of_whole_gifts(self, node: Node, effect: Persist) -> None:
        """Of each agent in it all that it had given at some visit, whatever was lost since: no part of a gift."""
        visit: Any = effect.visit
        account, holder = visit.after.token.account, effect.rows["holder"]
        index = {**self.world.guests, **self.world.settings.indices}[node.name]
        inside, counts = account.inside, account.gifts.sum(axis=0)
        if inside[index]:
            self.gifts.setdefault((account.order, index), {})[int(counts[index])] = holder.agent.given
        gifts = [self.gifts[account.order, i][int(counts[i])] for i in np.flatnonzero(inside).tolist()]
        total, weight = sum(gift.v for gift in gifts), sum(gift.w for gift in gifts)
        sums = account.board.total.sum(axis=0), account.board.weight.sum(axis=0)
        if self.world.visits.method.weigh == "agents":  # their number is the weight
            founders = np.arange(len(inside)) < len(self.world.settings.agents)
            awaited = founders & ~inside & ~account.left & (account.generation[0] == 0)
            total, weight = total + awaited.sum() * self.world.training.start, (inside | awaited).sum()
        if not (_near(total, sums[0]) and _near(weight, sums[1])):
            raise Broken(f"token {visit.token} holds {sums[0]}, weight {sums[1]}, after hop {visit.hop} of "
                         f"{visit.epoch}, and the agents gave {total}, weight {weight}")  # fmt: skip

    def _the_total_is_the_sum_of_the_gifts(self, visit: Visit) -> None:
        """Of all that agents gave it in this epoch; during a recount, the recount's total is."""
        parcel, m = visit.after, visit.token
        shares = self.given[m, visit.epoch].values()
        total = sum(float(share.given[0]) for share in shares)
        weight = float(len(shares))
        if not parcel.recounting:  # their number is the weight
            awaited = set() if visit.epoch.number else set(self.world.settings.agents)
            awaited -= self.given[m, visit.epoch].keys() | self.out.get((m, visit.epoch), set())
            weight, total = weight + len(awaited), total + len(awaited) * self.world.training.start
        token = parcel.token
        sums = (token.total[0], token.counted) if parcel.recounting else (token.account.total[0], token.account.weight)
        if not (_near(total, sums[0]) and _near(weight, sums[1])):
            raise Broken(f"token {m} holds {sums[0]:.6f}, weight {sums[1]:.6f}, after hop {visit.hop} of "
                         f"{visit.epoch}, and the agents gave {total:.6f}, weight {weight:.6f}")  # fmt: skip

    def _the_model_is_one_that_was_passed_on(self, visit: Visit) -> None:
        """Bit for bit: within an epoch the one that the last visit ended with; as one begins, the initial one or that
        of any visit."""
        models = self.models.setdefault(visit.token, {})
        passed = self.passed.setdefault(visit.token, {digest(self.world.visits.parcel(visit.token).token)})
        known = {models[visit.epoch]} if visit.epoch in models else passed
        if digest(visit.before.token) not in known:
            raise Broken(f"token {visit.token} came with a model to hop {visit.hop} of {visit.epoch} that was not "
                         f"passed on: {self.world.visits.estimate(visit.before)}")  # fmt: skip
        models[visit.epoch] = digest(visit.after.token)
        passed.add(models[visit.epoch])

    def _nothing_jumps(self, visit: Visit) -> None:
        """During a recount the model stays as it was."""
        visits = self.world.visits
        if visit.before.recounting and visit.after.recounting and _generation(visit.before) == _generation(visit.after):
            before, after = visits.estimate(visit.before), visits.estimate(visit.after)
            if not np.array_equal(before, after):
                raise Broken(f"the model of token {visit.token} changed during a recount, at hop {visit.hop} of "
                             f"{visit.epoch}: from {before} to {after}")  # fmt: skip

    def _one_destination(self, node: Node, to: str, message: Token) -> None:
        self.world.say(f"{node.name} sends{_where(message)} to {to}")
        key = (node.name, message.token, message.epoch, message.hop)
        if self.sent.setdefault(key, to) != to:
            raise Broken(f"{node.name} sent one and the same token to {self.sent[key]} and to {to}")

    def _kept_before_it_is_acknowledged(self, node: Node, number: int) -> None:
        message = self.heard.pop(number, None)
        if message is None:
            return
        sight = node.disk.get(f"sight/{message.token}")
        if sight is None or (sight.epoch, sight.hop) <= (message.epoch, message.hop):
            raise Broken(f"{node.name} acknowledged hop {message.hop} of token {message.token} before it kept it")
        self.acknowledged[node.name, message.token] = sight

    # --- at the end -------------------------------------------------------------------------------------------------

    def at_the_end(self) -> None:
        """Checked when nothing has failed for long."""
        if sentence := self.wrong():
            raise Broken(sentence)

    def wrong(self) -> str:
        """What is not right yet: one token of each id must walk, or everybody must know that the run has ended; and the
        model is that of the living."""
        world = self.world
        living = [node for node in world.nodes.values() if not node.dead]
        stopped = [node.name for node in living if node.disk.get("stopped")]
        waiting = [node.name for node in living if node.name not in stopped]
        stops = world.settings.hops_max or world.settings.tolerance
        if waiting and (stopped or stops):
            return f"{', '.join(waiting)} still wait, though the run should have ended: {len(stopped)} know that it has"
        long_whole = (self.stopped_s or 0.0) > (world.healed_s or 0.0) + LONG_S
        if stopped and not (world.settings.tolerance and long_whole):
            return ""  # it ended while things failed: the model is that of whoever was there
        if leaving := [node.name for node in living if node.leaving and not stopped]:
            return f"{', '.join(leaving)} should have left by now"
        if stopped:  # maybe while a token was lost, for which the others do not wait
            return next(filter(None, (self._model_wrong(node, living) for node in living)), "")
        return next(filter(None, (self._token_wrong(m, living) for m in range(world.settings.tokens))), "")

    def _model_wrong(self, node: Node, living: list[Node]) -> str:
        """Of an agent, once the run has converged and ended."""
        z, right = node.disk["holder"].z, self._right(living)
        if self._far(z, right, living):
            return f"{node.name} has ended with {z}, and the living agents' data stand for {right}"
        return ""

    def _token_wrong(self, m: int, living: list[Node]) -> str:
        world = self.world
        sights = [node.disk[f"sight/{m}"] for node in living if f"sight/{m}" in node.disk]
        if len(sights) < len(living):
            return f"token {m} has not met {len(living) - len(sights)} of the living"
        newest = max(sights)
        if sights.count(newest) != 1:
            return f"token {m} went out at {newest} from {sights.count(newest)} agents"
        if self.steady_from_s is not None:
            walked = self.lately.get(m, [])
            if not walked and world.now > self.steady_from_s:
                return f"token {m} is lost: nobody has seen it for {world.now - self.steady_from_s:.0f} s"
            if walked != sorted(walked):
                return f"token {m} walks in several epochs at once, while nothing fails: {sorted(set(walked))}"
        right = self._right(living)
        parcel = living[sights.index(newest)].disk[f"custody/{m}"].message.payload
        z = world.visits.estimate(parcel)
        if parcel.recounting or self._far(z, right, living):
            return f"token {m} stands for {z}, and the living agents' data for {right}"
        return ""

    def _far(self, z: Array, right: Array, living: list[Node]) -> bool:
        """Whether z is too far from the model of the living."""
        kind = self.world.training.kind
        if kind == "model":
            here, least = (float(sum(node.value.value(w) for node in living)) for w in (z, right))
            return not here <= (1 + CLOSE_LOSS) * least
        return not norm(z - right) <= CLOSE_MODEL.get(kind, CLOSE) * (1 + norm(right))

    def _right(self, living: list[Node]) -> Array:
        """The model of the living, found without tokens."""
        if self.world.training.kind == "survey":
            return np.asarray(np.mean([node.value.numbers for node in living], axis=0))
        if not self.world.training.loss:
            return np.array([sum(_last(node.disk["holder"].agent) for node in living) / len(living)])
        names = tuple(node.name for node in living)
        if names not in self.optima:
            self.optima[names] = optimum([node.value for node in living], self.world.visits.dimension)
        return self.optima[names]


def _where(what: Token | Report | Visit) -> str:
    """Which token, where on its way."""
    return f" token {what.token} ({what.epoch.number}, {what.epoch.author}) hop {what.hop}" if what.epoch else ""


def _near(one: Number, other: Number) -> bool:
    return bool(np.abs(one - other).max() <= CLOSE * (1 + np.abs(one).max()))


def _generation(parcel: Parcel) -> tuple[float, ...] | None:
    return parcel.token.account.order if isinstance(parcel.token, GiftToken) else None


def _last(agent: Any) -> float:
    """What an agent gave last."""
    return float(agent.given.v[0] if isinstance(agent, Giver) else agent.x[0])
