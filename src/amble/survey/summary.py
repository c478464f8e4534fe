"""What one site says of its table, and the limits of it."""

from dataclasses import dataclass
from typing import NamedTuple

from amble.data.roles import ROLE_MAX, ROLES
from amble.survey.cells import NUMBER_MAX

FORMAT = 1
LEVELS_MAX = 100  # of one column at one site
ROWS_MAX = 2**53
WHOLE_MAX = 2.0**53  # float64 counts by one up to here
SUM_MAX = 4 * NUMBER_MAX**2 * ROLE_MAX * ROWS_MAX  # no M2 is larger
UNPACKED_MAX = 16 * 2**20  # bytes: a document that unpacks to more is refused

Level = str | int | float


class Tally(NamedTuple):
    """One level or label, how many cells have it, and the sum of their rows' weights."""

    level: Level
    cells: int
    weight: float


@dataclass(frozen=True)
class Summary:
    """One column at one site. `count` cells are described, those of the rows that are used; `missing` cells are missing
    in all rows. Moments are zero where the column has no numbers."""

    name: str
    kind: str  # one of cells.KINDS
    count: int
    missing: int
    weight: float = 0.0  # of the cells that are described: their count where no column has weights
    mean: float = 0.0
    M2: float = 0.0
    min: float = 0.0
    max: float = 0.0
    whole: bool = False  # whether all its numbers are whole
    distinct: int = 0  # how many texts it has; of a target also how many labels
    levels: tuple[Tally, ...] | None = None  # sorted; None where there are too many, or none are counted


@dataclass(frozen=True)
class Document:
    """What one site says about its table."""

    rows: int
    used: int  # rows that are used under the policy `missing`
    missing: str
    total: float  # the sum of the weights of the rows that are used
    exposed: float  # the same, each times its exposure and exp(offset)
    target: Summary
    columns: tuple[Summary, ...]
    event: Summary | None = None
    offset: Summary | None = None
    exposure: Summary | None = None
    weight: Summary | None = None

    @property
    def all(self) -> tuple[Summary, ...]:
        """Every column: the features, then the target and the other roles."""
        roles = (getattr(self, role) for role in ROLES)
        return (*self.columns, self.target, *(summary for summary in roles if summary is not None))
