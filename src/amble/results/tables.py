"""A model's rows from a table as the user has it: columns by name, text and missing cells as in training."""

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from amble.data.frames import Named, choose, has_names, names_in
from amble.data.roles import ROLES, numbers_of
from amble.problem.rows import in_order
from amble.survey.agreed import Agreement, Feature, from_json

Given = ArrayLike | Named  # rows in the model's columns, or a table
About = Mapping[str, Any]  # where a model comes from: Model.about


def agreement_of(about: About) -> Agreement | None:
    """What the sites of the model's run had agreed on, where there was a survey."""
    return from_json(str(about["survey"]), "the model") if "survey" in about else None


def rows_of(X: Given, columns: int | Sequence[str], about: About) -> ArrayLike:
    """X in the model's columns: an array has them already, and a table is encoded."""
    if has_names(X) and (agreement := agreement_of(about)) is not None:
        names, here = [feature.name for feature in agreement.features], set(names_in(X))
        if here >= set(names) or not here >= set(agreement.columns):  # else it is encoded already
            levels = {feature.name: feature.levels for feature in agreement.features if feature.levels is not None}
            table = choose(X, names, "the table", levels)
            return agreement.encode(table, table.where)
    return in_order(X, None if isinstance(columns, int) else columns, "the table" if has_names(X) else "the rows")


def moved_by(X: Given, about: About, offset: ArrayLike | None, exposure: ArrayLike | None) -> dict[str, Any]:
    """The offset and the exposure of rows: those given or, where neither is, the table's columns of these roles."""
    if offset is not None or exposure is not None or not has_names(X):
        return {"offset": offset, "exposure": exposure}
    moved: dict[str, Any] = {}
    for role, name in roles_of(about).items():
        if role in ("offset", "exposure"):
            table = choose(X, [name], "the table")
            table.refuse_gaps()
            moved[role] = numbers_of(table, table.columns[0], role)
    return moved


def roles_of(about: About) -> dict[str, str]:
    """The training table's columns that had a role, by it."""
    if (agreement := agreement_of(about)) is not None:
        known = {role: getattr(agreement, role) for role in ROLES}
    else:
        known = {role: about.get("table", {}).get(role) for role in ROLES}
    return {role: name for role, name in known.items() if name is not None}


def features_of(columns: int | Sequence[str], about: About) -> tuple[Feature, ...] | None:
    """How the table's columns become those of the model; None: they are the same."""
    if (agreement := agreement_of(about)) is not None:
        plain = all(feature.levels is None and feature.fill is None for feature in agreement.features)
        return None if plain else agreement.features
    categories = about.get("table", {}).get("categories", ())
    if isinstance(columns, int) or not categories:
        return None
    levels: dict[str, list[str]] = {}
    for name in columns:
        source = max((each for each in categories if name.startswith(f"{each}=")), key=len, default=name)
        levels.setdefault(source, []).extend([name.removeprefix(f"{source}=")] if source in categories else [])
    return tuple(Feature(name, tuple(known) or None, None) for name, known in levels.items())
