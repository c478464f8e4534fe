"""A method's settings: declared once as fields, and checked when the method is constructed."""

import copy
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, dataclass_transform

import numpy as np

from amble.errors import AmbleError, is_number, is_whole, unknown
from amble.methods.optional import choices, positive

Kind = TypeVar("Kind")
COUNTS = ("tokens", "local_steps")  # settings that must be at least one
PLAIN = (int, float, str, bool, type(None), np.number, np.bool_)
_KINDS = {kind.__name__: kind for kind in (float, int, bool, str)}  # a field may be annotated by text
_EXPECTED = {float: "a number", int: "a whole number", bool: "True or False", str: "text"}


@dataclass_transform(frozen_default=True)
def method(kind: type[Kind]) -> type[Kind]:
    """A class decorator: a frozen dataclass whose settings are checked when it is constructed.

    Without a `label` its label is the name of the class. A class with @dataclass(frozen=True) is a method as well; then
    its settings are checked when it is simulated.

    Parameters
    ----------
    kind : the class, with settings as fields; docs/own.md has an example

    Returns
    -------
    the class, as a frozen dataclass

    Example
    -------
    >>> import amble
    >>> amble.IBCD(tau=-1)
    Traceback (most recent call last):
        ...
    amble.errors.AmbleError: I-BCD: tau=-1 was given; it must be a number above zero.
    """
    open_kind: Any = kind  # mypy knows no class that takes new attributes
    if "label" not in vars(kind):
        open_kind.label = kind.__name__
    own = getattr(kind, "__post_init__", None)

    def check(made: Any) -> None:
        check_settings(made)
        if own is not None:
            own(made)

    open_kind.__post_init__ = check
    return dataclass(frozen=True)(kind)


def check_settings(method: Any) -> None:
    """Every setting has the kind of its field; those in `positive` are above zero, those in `choices` one of them."""
    label = label_of(method)
    if not is_dataclass(method) or isinstance(method, type) or not type(method).__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise AmbleError(f"{label} is not a frozen dataclass; write @amble.method above its class.")
    for field in fields(method):
        name, value = field.name, getattr(method, field.name)
        problem = f"{label}: {name}={value!r} was given"
        number = is_number(value)
        if name in positive(method):
            if not (number and 0 < value < np.inf):
                raise AmbleError(f"{problem}; it must be a number above zero.")
        elif name == "rho" and value is not None and not (number and 0 <= value < np.inf):
            raise AmbleError(f"{problem}; it must be zero or more, or left out for L.")
        allowed = choices(method).get(name)
        if name in COUNTS and not (is_whole(value) and value >= 1):
            if allowed is None:
                raise AmbleError(f"{problem}; it must be a whole number, one or more.")
            if value not in allowed:
                words = f"{', '.join(allowed[:-1])} or {allowed[-1]}"
                raise AmbleError(f"{problem}; it must be a whole number, one or more, or one of {words}.")
        elif allowed is not None and name not in COUNTS and value not in allowed:
            raise unknown(f"{name} of {label}", str(value), allowed)
        kind = _KINDS.get(str(field.type), field.type)
        if kind in _EXPECTED and not _is_a(value, kind):
            raise AmbleError(f"{problem}; it must be {_EXPECTED[kind]}.")
        if not is_plain(value):
            raise AmbleError(f"{problem}; a setting is a number, text, True, False, None or a tuple of these.")


def is_plain(value: object) -> bool:
    """Whether a setting can be saved with a run and tell two methods apart."""
    return all(map(is_plain, value)) if isinstance(value, tuple) else isinstance(value, PLAIN)


def _is_a(value: object, kind: Any) -> bool:
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    return isinstance(value, str) if kind is str else is_whole(value) if kind is int else is_number(value)


def label_of(method: Any) -> str:
    return str(getattr(method, "label", None) or type(method).__name__)


def traced(method: Any) -> dict[str, float]:
    """The settings that are numbers of a formula, as arguments for a compiled loop: another tau compiles nothing.

    Whole numbers, truth values and text may decide what is computed, so they stay in the method.
    """
    formula = (float, float | None, "float", "float | None")  # a field may be annotated by text
    chosen = {}
    for field in fields(method):
        value = getattr(method, field.name)
        if isinstance(value, float | np.floating) or (is_whole(value) and field.type in formula):
            chosen[field.name] = float(value)
    return chosen


def with_traced(method: Kind, numbers: dict[str, Any]) -> Kind:
    """A copy with these settings, unchecked: what is traced has no value yet."""
    other = copy.copy(method)
    for name, value in numbers.items():
        object.__setattr__(other, name, value)
    return other
