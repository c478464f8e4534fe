"""One agent of the simulated world: its core while it runs, its disk, its clock, and its faults."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from amble.live.core.effects import Settings
from amble.live.core.protocol import Core


@dataclass
class Node:
    """One agent in the world: its core while it runs, and its disk always."""

    name: str
    value: Any  # its objective
    disk: dict[str, Any] = field(default_factory=dict)
    core: Core | None = None
    life: int = 0  # how often it was started: messages for an earlier life are lost
    frozen: bool = False
    grey: str = ""  # it is up, and hangs, keeps tokens or refuses them
    dead: bool = False
    leaving: bool = False
    leapt_s: float = 0.0
    slow_s: float = 0.0
    settings: Settings | None = None  # of its last start
    wake: int = 0  # the last thing it asked of its clock: only that counts
    postponed: list[Callable[[], None]] = field(default_factory=list)  # what happens once it thaws
    asked: deque[Callable[[None], None]] = field(default_factory=lambda: deque(maxlen=100))  # who waits for its answer

    @property
    def going(self) -> bool:
        return self.dead or self.leaving
