"""Claim: a sentence that the runs test, the verdict on it, and the small table of numbers that decides it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    HELD = "held"
    IN_PART = "held in part"
    FAILED = "did not hold"
    UNDECIDED = "undecided"


def overall(verdicts: Iterable[Verdict]) -> Verdict:
    """Held: in every case. In part: in some. Did not hold: in none, and it failed in at least one. Else undecided."""
    each = set(verdicts)
    if each == {Verdict.HELD}:
        return Verdict.HELD
    if each & {Verdict.HELD, Verdict.IN_PART}:
        return Verdict.IN_PART
    return Verdict.FAILED if Verdict.FAILED in each else Verdict.UNDECIDED


class Cell(NamedTuple):
    """What was needed, or infinity where it was not reached within `limit`; nan where there is nothing to measure."""

    value: float
    limit: float = float("inf")  # how far the runs went, as far as they count


class Row(NamedTuple):
    """One method's line of the table."""

    name: str
    cells: tuple[Cell, ...]
    claimed: bool = False  # whether the claim is about this method; the others are its baselines


@dataclass(frozen=True)
class Claim:
    """`measure` says what the cells are: a column of a history (time_s, comm_units, bytes), "share" (0.5 is shown as
    50 %) or "number"."""

    text: str
    verdict: Verdict
    measure: str = "number"
    columns: tuple[str, ...] = ()  # one heading for each cell of a row
    rows: tuple[Row, ...] = ()
    verdicts: tuple[Verdict, ...] = ()  # one for each column, or for the last ones
    left_out: int = 0  # baselines that are not in the table because at every level others are as good or better


def by_claim(columns: Sequence[Sequence[Claim]]) -> dict[str, list[Verdict | None]]:
    """Each claim's verdicts, one per column of claims; None in a column that has not this claim."""
    verdicts = [{claim.text: claim.verdict for claim in claims} for claims in columns]
    return {claim.text: [each.get(claim.text) for each in verdicts] for claims in columns for claim in claims}
