"""Which colour and dash each line has: the same for a method in every section."""

from collections.abc import Sequence
from typing import NamedTuple

from amble import methods
from amble.look import COLOURS
from amble.report.sections import Line, Section, lines


class Look(NamedTuple):
    number: int  # of its colour
    turn: int  # how often the colours had begun again
    dotted: bool  # the mean of x, in its method's colour

    @property
    def colour(self) -> str:
        return COLOURS[self.number]


def looks(sections: Sequence[Section]) -> list[list[Look]]:
    """A look for each line of each section, in the order of `lines`."""
    known: dict[tuple[object, ...], int] = {}
    looks_by_section = []
    for section in sections:
        seen: dict[tuple[object, ...], int] = {}
        own: list[Look] = []
        for line in lines(section):
            kind = _kind(line)
            if not line.column_suffix or kind not in seen:
                seen[kind] = seen.get(kind, 0) + 1
            number = known.setdefault((*kind, seen[kind]), len(known))
            own.append(Look(number % len(COLOURS), number // len(COLOURS), bool(line.column_suffix)))
        looks_by_section.append(own)
    return looks_by_section


def _kind(line: Line) -> tuple[object, ...]:
    """The method with its settings but for steps and penalties, which follow the data."""
    method = line.runs[0].method
    settings = {
        key: value for key, value in methods.settings(method).items() if key not in (*methods.positive(method), "rho")
    }
    return method.label, *settings.items()
