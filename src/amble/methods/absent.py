"""A stand-in for the method of a saved run whose class is not here."""

from dataclasses import dataclass, field
from typing import Any

from amble.errors import AmbleError


@dataclass(frozen=True)
class Absent:
    """The method of a saved run whose class is not here: enough to read the run, but not to continue it."""

    label: str
    chosen: dict[str, Any]  # its settings
    rounds: bool
    origin: dict[str, Any] = field(default_factory=dict)

    @property
    def step(self) -> str:
        return "round" if self.rounds else "pair" if self.origin.get("pairs") else "visit"

    @property
    def tokens(self) -> int:
        return int(self.origin.get("tokens", self.chosen.get("tokens", 1)))

    @property
    def hears(self) -> str:
        return str(self.origin.get("hears", "mixed"))

    def refuse(self, what: str) -> AmbleError:
        name = self.origin.get("class", self.label)
        file = self.origin.get("file") or self.origin.get("module")
        return AmbleError(
            f"{what} needs the class {name} of this run's method{f' (it was in {file})' if file else ''}; load the "
            f"run with amble.load_run(path, methods=[{name}])."
        )
