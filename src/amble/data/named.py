"""Reads the columns that are named from a table, and ignores all others."""

from collections.abc import Sequence
from pathlib import Path

from amble.data.datasets import Dataset
from amble.data.encoding import source_of
from amble.data.files import Reading, from_table, read_table
from amble.data.tables import Column, Table
from amble.data.targets import find_target
from amble.errors import AmbleError, few


def read_named(
    path: Path, columns: Sequence[str], *, task: str | None, target: str | int | None, header: bool | None
) -> tuple[Dataset, tuple[str, ...]]:
    """From a .csv, .tsv or .parquet file: the data set of these columns, and the names of those that were left out.

    What is in the columns that are left out does not matter.
    """
    others: list[str] = []

    def keep(names: list[str]) -> list[str]:
        kept = select(names, columns, target, str(path))
        others.extend(sorted({*names} - {*kept}, key=names.index))
        return kept

    table = read_table(path, header, columns, keep)
    name = path.name.partition(".")[0] or path.name
    chosen = table.columns[-1].name
    return from_table(table, name, Reading(task, chosen, header, "refuse", columns)), tuple(others)


def select(names: list[str], columns: Sequence[str], target: str | int | None, where: str) -> list[str]:
    """The names of the columns among those of a file, and then the target."""
    chosen = find_target(Table(where, [Column(name, None, None) for name in names], None), target).name
    here = dict.fromkeys(name for name in names if name != chosen)
    sources = dict.fromkeys(source_of(name, here)[0] for name in columns)
    missing = [name for name in sources if name not in here]
    if missing:
        raise AmbleError(
            f"{where} has no column {few(missing)}, which the columns given have"
            + (f" ({chosen} is its target)" if chosen in missing else "")
            + "; add what is missing."
        )
    others = [name for name in here if name not in sources]
    if others and target is None:
        raise AmbleError(
            f"{where} has columns besides those given ({few(others)}), so its last one, {chosen}, may not be the "
            "target; name the target (target = in the run's [model])."
        )
    return [*sources, chosen]
