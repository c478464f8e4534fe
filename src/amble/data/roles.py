"""Columns of a table that are no features: the target, whether an event was seen, offsets, exposures, row weights."""

from collections.abc import Mapping

import numpy as np

from amble.arrays import Array
from amble.data.tables import Column, Table
from amble.data.targets import find_target
from amble.errors import AmbleError

ROLES = ("event", "offset", "exposure", "weight")
OFFSET_MAX = 100.0
ROLE_MAX = 1e15  # of a weight or an exposure
ALLOWED = {
    "event": "0 (censored) or 1",
    "offset": f"from -{OFFSET_MAX:g} to {OFFSET_MAX:g}, as it is added inside an exponential",
    "exposure": f"above zero, and at most {ROLE_MAX:g}",
    "weight": f"zero or more, and at most {ROLE_MAX:g}",
}


def find_roles(
    table: Table, target: str | int | None, roles: Mapping[str, str | int | None]
) -> tuple[Column, dict[str, Column]]:
    """The target, and the columns of the roles that are not None; without a target, the last column without a role."""
    found = {role: find_target(table, name, role) for role, name in roles.items() if name is not None}
    owners = {column.name: role for role, column in found.items()}
    others = [column for column in table.columns if column.name not in owners]
    if not others:
        raise AmbleError(f"every column of {table.where} has a role ({_listed(owners)}); a target is needed, too.")
    chosen = others[-1] if target is None else find_target(table, target)
    every = {"target": chosen, **found}
    owners = {column.name: role for role, column in every.items()}
    for role, column in every.items():
        if owners[column.name] != role:
            raise AmbleError(
                f"column {column.name!r} of {table.where} is both {role} and {owners[column.name]}; name two columns."
            )
    return chosen, found


def _listed(owners: Mapping[str, str]) -> str:
    return ", ".join(f"{role}: {name}" for name, role in owners.items())


def check_role(table: Table, column: Column, role: str, numbers: Array) -> None:
    """Refuse a number that a column of this role cannot have; nan is a missing cell, which is another matter."""
    if role == "event":
        fits = (numbers == 0) | (numbers == 1)
    elif role == "offset":
        fits = np.abs(numbers) <= OFFSET_MAX
    else:
        fits = (numbers > 0 if role == "exposure" else numbers >= 0) & (numbers <= ROLE_MAX)
    wrong = np.flatnonzero(~fits & ~np.isnan(numbers))
    if len(wrong):
        place = table.location(int(wrong[0]), column)
        raise AmbleError(f"{place} is {numbers[wrong[0]]:g}; the {role} must be {ALLOWED[role]}.")


def numbers_of(table: Table, column: Column, role: str) -> Array:
    """The numbers of a column with a role, checked."""
    if column.numbers is None:
        table.refuse_text(column, f"the {role} needs numbers: fix it, or name another column")
    check_role(table, column, role, column.numbers)
    return column.numbers


def censored(table: Table, column: Column, times: Array, event: Array) -> Array:
    """Times with a minus where no event was seen."""
    early = np.flatnonzero(times <= 0)
    if len(early):
        place = table.location(int(early[0]), column)
        raise AmbleError(
            f"{place} is {times[early[0]]:g}; the time of an event, or of the end of watching, is above zero."
        )
    return np.where(event == 1, times, -times)
