"""The stages of one agent, one after the other: those that have ended, and the one under way."""

import logging
from pathlib import Path

from amble.errors import AmbleError
from amble.live.agent.stages import Course, Plan, Stage, open_stage, remove
from amble.live.core.packing import digest
from amble.live.settings.agent_config import AgentConfig

log = logging.getLogger("amble.live")


class Sequence:
    """It begins with the first stage, and goes on where the journals of earlier processes have ended."""

    def __init__(self, config: AgentConfig, folder: Path, course: Course) -> None:
        self.config, self.folder, self.course = config, folder, course
        self.stages: tuple[Stage, ...] = ()
        self.refused = ""  # why the agents could not agree, once they could not
        self.enter(course.first())
        self.advance()

    def enter(self, plan: Plan) -> None:
        """The next stage begins, or goes on from its journal."""
        stage = open_stage(plan, self.config, self.folder)
        if stage.journal.has_other_data(digest(plan.objective)):
            log.warning("the data of %s are not those of its earlier visits; it goes on with these, and a replay of "
                        "the earlier visits will differ", self.config.name)  # fmt: skip
        self.stages = (*self.stages, stage)

    def advance(self) -> list[Stage]:
        """Where a stage has ended with a result, the next one is entered; or entered again, if the result is another
        one by now. Those that were entered."""
        entered: list[Stage] = []
        k = 0
        while k < len(self.stages) and (ending := self.stages[k].core.ending) is not None:
            stage, following = self.stages[k], self.stages[k + 1 :]
            k += 1
            if ending.order == stage.order:
                continue
            stage.order, self.refused, plan = ending.order, "", None
            try:
                plan = self.course.after(stage.name, ending)
            except AmbleError as error:  # the same at all agents; they still have to be told how the stage ended
                self.refused = str(error)
            if plan is not None and following and following[0].shape.digest == plan.digest:
                following[0].order = None  # two have ended the stage with the same numbers, so what follows goes on
                continue
            for later in following:
                later.journal.close()
                remove(later.journal.path)
            self.stages = self.stages[:k]
            if plan is not None:
                self.enter(plan)
                entered.append(self.stages[-1])
        return entered
