"""What stages must have ended with, once nothing has failed for long: the same at all agents, and exact sums."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from amble.arrays import Array
from amble.live.chaos.checkers import CLOSE, CLOSE_MODEL, LONG_S, Broken, Watched
from amble.live.chaos.losses import optimum
from amble.live.chaos.node import Node
from amble.live.chaos.staged import NAMES, document, sums
from amble.live.core.effects import Effect, Persist, Report
from amble.live.core.message import Ending, Question
from amble.live.core.stages import CLOSING, OPENING, TRAINING, Result


def wrong_ending(endings: Mapping[str, Ending | None], what: str) -> str:
    """What is wrong with how agents, by their names, have ended a stage: all must have, and with the same result."""
    waiting = [name for name, ending in endings.items() if ending is None]
    if waiting:
        return f"{', '.join(waiting)} still wait, though {what} should have ended"
    if len({(ending.order, ending.result) for ending in endings.values() if ending}) > 1:
        orders = {name: ending.order for name, ending in endings.items() if ending}
        return f"{what} has ended with several results: {orders}"
    causes = {ending.cause for ending in endings.values() if ending}
    return f"{what} has ended as {causes}" if causes & {"lost", "diverged"} else ""


def wrong_documents(result: Result, places: int) -> str:
    """Each agent's document is there once, at its place, if the agent is inside, and not if it is not."""
    right = sum((document(k, places) for k in np.flatnonzero(result.inside).tolist()), np.zeros(places))
    if np.array_equal(result.numbers, right):
        return ""
    return f"the survey has {result.numbers}, and those inside gave {right}"


def survey_wrong(world: Watched) -> str:
    """What is wrong with the sums that a survey has ended with."""
    living = {name: node for name, node in world.nodes.items() if not node.dead}
    endings = {name: node.disk.get("stopped") for name, node in living.items()}
    if sentence := wrong_ending(endings, "the survey"):
        return sentence
    ending: Any = next(iter(endings.values()))
    result = Result.of(ending, world.settings.size)
    indices = {**world.guests, **world.settings.indices}
    there = np.isin(np.arange(world.settings.size), [indices[name] for name in living])
    if not world.settings.tolerance and not np.array_equal(result.inside, there):  # it ended when nothing failed
        return f"the survey has {result.inside}, and {there} are there"
    return wrong_documents(result, world.settings.size)


class StagedChecker:
    """Checks a world of runs in three stages."""

    def __init__(self, world: Watched) -> None:
        self.world, self.counted, self.visited = world, Counter[str](), Counter[str]()
        self.ended_s: dict[tuple[str, tuple[int, ...]], float] = {}  # when each result of a stage was first known
        self.steady_from_s: float | None = None

    def effect(self, node: Node, effect: Effect) -> None:
        if isinstance(effect, Report):
            self.counted[effect.kind] += 1
            if effect.kind != "visit":
                self.world.say(f"{node.name} {effect.kind} {effect.token} {effect.words}")

    def question(self, number: int, message: Question) -> None: ...
    def restored(self, node: Node) -> None: ...

    def persisted(self, node: Node, effect: Persist) -> None:
        for whole, row in effect.rows.items():
            digest, _, key = whole.rpartition(":")
            if key == "stopped" and row is not None:
                self.ended_s.setdefault((digest.split()[0], row.order), self.world.now)
                self.world.say(f"{node.name} has ended {digest}: {row.cause}, {row.order}")
        if effect.visit is not None and node.life >= 0:
            digest = next(iter(effect.rows)).rpartition(":")[0]
            self.visited[digest.split()[0]] += 1
            self.world.say(f"{node.name} visited by token {effect.visit.token} {effect.visit.epoch} hop "
                           f"{effect.visit.hop} of {digest} from {effect.visit.giver}")  # fmt: skip

    def at_the_end(self) -> None:
        if sentence := self.wrong():
            raise Broken(sentence)

    def wrong(self) -> str:
        """What is not right yet."""
        living = [node for node in self.world.nodes.values() if not node.dead]
        if leaving := [node.name for node in living if node.leaving and not self._over(node)]:
            return f"{', '.join(leaving)} should have left by now"
        results: dict[str, Result] = {}
        late: dict[str, bool] = {}  # whether it ended long after all faults had ended
        for k, name in enumerate(NAMES):
            endings = {node.name: _ending(node, k) for node in living}
            if sentence := wrong_ending(endings, name):
                return sentence
            ending: Any = next(iter(endings.values()))
            results[name] = Result.of(ending, self.world.settings.size)
            late[name] = self.ended_s[name, ending.order] > (self.world.healed_s or 0.0) + LONG_S
        return self._results_wrong(results, late, living)

    def _over(self, node: Node) -> bool:
        return all(_ending(node, k) is not None for k in range(len(NAMES)))

    def _results_wrong(self, results: Mapping[str, Result], late: Mapping[str, bool], living: Sequence[Node]) -> str:
        places = self.world.settings.size
        opening, training, closing = (results[name] for name in NAMES)
        if sentence := wrong_documents(opening, places):
            return sentence
        indices = {**self.world.guests, **self.world.settings.indices}
        there = np.isin(np.arange(places), [indices[node.name] for node in living])
        for name, result in ((OPENING, opening), (TRAINING, training)):
            if late[name] and not np.array_equal(result.inside, there):
                return f"{name} has {result.inside}, and {there} are there"
        values = [node.value for node in self.world.nodes.values()]  # by their indices
        if sentence := self._model_wrong(training, values):
            return sentence
        inside = closing.inside & training.inside
        if late[CLOSING] and (training.inside & there & ~inside).any():
            return f"closing lacks some that are in the model and there: {training.inside & there & ~inside}"
        right = sum((sums(values[k], training.numbers, k, places) for k in np.flatnonzero(inside).tolist()),
                    np.zeros(len(closing.numbers)))  # fmt: skip
        near = np.abs(closing.numbers - right) <= CLOSE * (1 + np.abs(right))
        if not near.all() or not np.array_equal(closing.numbers[:places], right[:places]):
            return f"closing has {closing.numbers}, and those inside gave {right}"
        return ""

    def _model_wrong(self, training: Result, values: Sequence[Any]) -> str:
        world, rows = self.world, [values[k] for k in np.flatnonzero(training.inside).tolist()]
        if not rows:
            return "nobody is in the model"
        if training.recounting or (world.training.loss and world.settings.hops_max):
            return ""  # which its file says; or it may have ended before it converged
        right, near = self._right(rows), CLOSE
        if world.training.loss:
            near = CLOSE_MODEL[world.training.kind]
        if not np.linalg.norm(training.numbers - right) <= near * (1 + np.linalg.norm(right)):
            return f"the model is {training.numbers}, and the data inside stand for {right}"
        return ""

    def _right(self, rows: Sequence[Any]) -> Array:
        if self.world.training.loss:
            return np.asarray(optimum(rows, self.world.visits.dimension))
        return np.array([np.mean(rows) + 1.0])  # chaos/tally.py, with settle=1


def _ending(node: Node, k: int) -> Ending | None:
    """How an agent has ended its k-th stage."""
    core: Any = node.core
    return core.stages.all[k].core.ending if core is not None and k < len(core.stages.all) else None
