"""What must hold, whatever fails. Looks at what agents do and what their disks hold, and at nothing inside them."""

from collections import Counter
from typing import Any

from amble.live.effects import Ask, Persist, Reply, Report, Sight
from amble.live.message import Accepted, Epoch, Token

CLOSE = 1e-9
LONG_S = 10.0  # a world that has been whole for so long has no excuse


class Broken(AssertionError):
    """An invariant does not hold."""


class Checker:
    def __init__(self, world: Any) -> None:
        self.world = world
        self.visited: dict[tuple[int, Epoch, int], str] = {}
        self.taken: dict[tuple[int, Sight], str] = {}
        self.sent: dict[tuple[str, int, Epoch, int], str] = {}
        self.given: dict[tuple[int, Epoch], dict[str, Any]] = {}
        self.out: dict[tuple[int, Epoch], set[str]] = {}  # who has left it
        self.hops: dict[tuple[int, Epoch], int] = {}
        self.acknowledged: dict[tuple[str, int], Sight] = {}
        self.heard: dict[int, Token] = {}
        self.counted = Counter[str]()
        self.lately: dict[int, list[Epoch]] = {}  # epochs of each token's visits while all was steady, in their order
        self.steady_from_s: float | None = None
        self.stopped_s: float | None = None

    # --- after every step -------------------------------------------------------------------------------------------

    def effect(self, node: Any, effect: Any) -> None:
        if isinstance(effect, Ask) and isinstance(effect.question, Token):
            self._one_destination(node, effect.to, effect.question)
        elif isinstance(effect, Reply) and isinstance(effect.answer, Accepted):
            self._kept_before_it_is_acknowledged(node, effect.question)
        elif isinstance(effect, Report):
            self.counted[effect.kind] += 1
            if effect.kind == "stopped":
                self.stopped_s = self.world.now if self.stopped_s is None else self.stopped_s
            if self.world.story is not None and effect.kind != "visit":
                self.world.say(f"{node.name} {effect.kind}{_place(effect)} {effect.words}")

    def question(self, number: int, message: Any) -> None:
        if isinstance(message, Token):
            self.heard[number] = message

    def restored(self, node: Any) -> None:
        """What is restored from a journal equals what was acknowledged."""
        for m in range(self.world.settings.tokens):
            sight, custody = node.disk.get(f"sight/{m}"), node.disk.get(f"custody/{m}")
            before = self.acknowledged.get((node.name, m))
            if before is not None and (sight is None or sight < before):
                raise Broken(f"{node.name} acknowledged token {m} up to {before}, and came back with {sight}")
            if custody is not None and (custody.message.epoch, custody.message.hop) != sight:
                raise Broken(f"{node.name} came back with token {m} of {custody.message[1:3]}, and knows of {sight}")

    def persisted(self, node: Any, effect: Persist) -> None:
        visit = effect.visit
        if visit is None:
            return
        m, key = visit.token, (visit.token, visit.epoch, visit.hop)
        if self.world.story is not None:
            custody = effect.rows[f"custody/{m}"]
            recounting = ", recounting" if visit.after.recounting else ""
            self.world.say(f"{node.name} visited by{_place(visit)} from {visit.giver}, next {custody.to}{recounting}")
        if key in self.visited:
            raise Broken(f"token {m} was visited twice at hop {visit.hop} of {visit.epoch}: "
                         f"by {self.visited[key]} and {node.name}")  # fmt: skip
        self.visited[key] = node.name
        self._taken_once(node, visit, effect.rows[f"custody/{m}"].given)
        if visit.hop <= self.hops.get(key[:2], -1):
            raise Broken(f"the hops of token {m} do not rise in {visit.epoch}")
        self.hops[key[:2]] = visit.hop
        if self.steady_from_s is not None:
            self.lately.setdefault(m, []).append(visit.epoch)
        share = effect.rows[f"share/{m}"]
        self.given.setdefault(key[:2], {})[node.name] = share.share
        if share.epoch != visit.epoch:
            del self.given[key[:2]][node.name]
            self.out.setdefault(key[:2], set()).add(node.name)
        self._the_total_is_the_sum_of_the_gifts(visit)
        self._nothing_jumps(visit)

    def _taken_once(self, node: Any, visit: Any, given: Sight) -> None:
        """No visit is applied twice, and none to what nobody sent here."""
        key = (visit.token, given)
        if key in self.taken:
            raise Broken(f"token {visit.token} of {given} was taken twice: by {self.taken[key]} and {node.name}")
        self.taken[key] = node.name
        to = self.sent.get((visit.giver, visit.token, *given))
        if visit.giver != node.name and to != node.name:
            raise Broken(f"{node.name} took token {visit.token} of {given}, which {visit.giver} sent to {to}")

    def _the_total_is_the_sum_of_the_gifts(self, visit: Any) -> None:
        """Of all that agents gave it in this epoch; while a recount goes on, the recount's total is."""
        parcel, m = visit.after, visit.token
        shares = [_gift(share) for share in self.given[m, visit.epoch].values()]
        total, weight = sum(gift[0] for gift in shares), sum(gift[1] for gift in shares)
        if self.world.visits.method.weigh == "agents" and not parcel.recounting:  # their number is the weight
            awaited = set() if visit.epoch.number else set(self.world.settings.agents)
            awaited -= self.given[m, visit.epoch].keys() | self.out.get((m, visit.epoch), set())
            weight = (len(shares) + len(awaited)) / _parts(parcel)
        held = (float(parcel.total[0]), float(parcel.weight)) if parcel.recounting else _account(parcel, m)
        if not (abs(total - held[0]) <= CLOSE and abs(weight - held[1]) <= CLOSE):
            raise Broken(f"token {m} holds {held[0]:.6f}, weight {held[1]:.6f}, after hop {visit.hop} of "
                         f"{visit.epoch}, and the agents gave {total:.6f}, weight {weight:.6f}")  # fmt: skip

    def _nothing_jumps(self, visit: Any) -> None:
        """While a recount goes on, estimates are read from the account as it was."""
        m, before, after = visit.token, visit.before, visit.after
        if after.recounting and _account(after, m) != _account(before, m):
            raise Broken(f"the account of token {m} changed during a recount, at hop {visit.hop} of {visit.epoch}")

    def _one_destination(self, node: Any, to: str, message: Token) -> None:
        self.world.say(f"{node.name} sends{_place(message)} to {to}")
        key = (node.name, message.token, message.epoch, message.hop)
        if self.sent.setdefault(key, to) != to:
            raise Broken(f"{node.name} sent one and the same token to {self.sent[key]} and to {to}")

    def _kept_before_it_is_acknowledged(self, node: Any, number: int) -> None:
        message = self.heard.pop(number, None)
        if message is None:
            return
        sight = node.disk.get(f"sight/{message.token}")
        if sight is None or (sight.epoch, sight.hop) <= (message.epoch, message.hop):
            raise Broken(f"{node.name} acknowledged hop {message.hop} of token {message.token} before it kept it")
        self.acknowledged[node.name, message.token] = sight

    # --- at the end -------------------------------------------------------------------------------------------------

    def at_the_end(self) -> None:
        """The world has been whole for long."""
        if words := self.wrong():
            raise Broken(words)

    def wrong(self) -> str:
        """What has not come right yet: one token of each id walks, or everybody knows that the run has ended; and the
        model is that of the living."""
        world = self.world
        living = [node for node in world.nodes.values() if not node.dead]
        stopped = [node.name for node in living if node.disk.get("stopped")]
        waiting = [node.name for node in living if node.name not in stopped]
        stops = world.settings.hops_max or world.settings.tolerance
        if waiting and (stopped or stops):
            return f"{', '.join(waiting)} still wait, though the run should have ended: {len(stopped)} know that it has"
        if stopped and not (world.settings.tolerance and self.stopped_s > world.healed_s + LONG_S):
            return ""  # it ended while things failed: the model is that of whoever was there
        if leaving := [node.name for node in living if node.leaving and not stopped]:
            return f"{', '.join(leaving)} should have left by now"
        return next(filter(None, (self._token_wrong(m, living) for m in range(world.settings.tokens))), "")

    def _token_wrong(self, m: int, living: list[Any]) -> str:
        world = self.world
        sights = [node.disk[f"sight/{m}"] for node in living if f"sight/{m}" in node.disk]
        if not sights and self.stopped_s is not None:
            return ""  # it died with its first agent, and the run ended without it: its ledger is empty
        if len(sights) < len(living):
            return f"token {m} has not met {len(living) - len(sights)} of the living"
        newest = max(sights)
        if sights.count(newest) != 1:
            return f"token {m} went out at {newest} from {sights.count(newest)} agents"
        if self.steady_from_s is not None and not self.stopped_s:
            walked = self.lately.get(m, [])
            if not walked and world.now > self.steady_from_s:
                return f"token {m} is lost: nobody has seen it for {world.now - self.steady_from_s:.0f} s"
            if walked != sorted(walked):
                return f"token {m} walks in several epochs at once, while nothing fails: {sorted(set(walked))}"
        right = sum(_last(node.disk["holder"].agent) for node in living) / len(living)
        parcel = living[sights.index(newest)].disk[f"custody/{m}"].message.payload
        z = float(world.visits.estimate(parcel)[0])
        if parcel.recounting or abs(z - right) > CLOSE:
            return f"token {m} stands for {z:.10f}, and the living agents' data for {right:.10f}"
        return ""


def _place(what: Any) -> str:
    """Which token, where on its way."""
    return f" token {what.token} ({what.epoch.number}, {what.epoch.author}) hop {what.hop}" if what.epoch else ""


def _account(parcel: Any, m: int) -> tuple[float, float]:
    """What token m is read from: its ledger on a board, or a token that is an account of its own."""
    if hasattr(parcel.token, "board"):
        return float(parcel.token.board.total[m, 0]), float(parcel.token.board.weight[m])
    return float(parcel.token.total[0]), float(parcel.token.weight)


def _parts(parcel: Any) -> int:
    """How many tokens share one account."""
    return len(parcel.token.board.version) if hasattr(parcel.token, "board") else 1


def _gift(share: Any) -> tuple[float, float]:
    """All that an agent gave a token."""
    return (float(share.given[0]), 0.0) if hasattr(share, "given") else (float(share.total[0]), float(share.weight))


def _last(agent: Any) -> float:
    """What an agent gave last."""
    return float(agent.given.v[0] if hasattr(agent, "given") else agent.x[0])
