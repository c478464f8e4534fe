"""Errors that say what to do, and the check for optional packages."""

import difflib
import importlib
import numbers
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

NAMES_MAX, NEAR_MAX = 30, 5  # a sentence lists all names up to this many, or else only similar ones


class AmbleError(ValueError):
    """amble cannot use an input; the message says what was given, what is expected and what to do."""


class Unusable(AmbleError):
    """A file or address that cannot be used. `problem` is what is wrong with it, without the advice that follows it:
    the caller may know better what to do."""

    problem: str = ""


def unusable(problem: str, advice: str) -> Unusable:
    error = Unusable(f"{problem}; {advice}.")
    error.problem = problem
    return error


def is_number(value: object) -> bool:
    """Whether it is a number. In Python a truth value is an int, but here it is not a number."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Whether it is of an integer type. A float such as 2.0 is not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def unknown(kind: str, value: object, known: Iterable[str]) -> AmbleError:
    """The error for a name that does not exist, with the nearest one that does."""
    names = sorted(known)
    if not names:
        return AmbleError(f"there is no {kind} named {value!r}; there are none.")
    if len(names) > NAMES_MAX:
        names = difflib.get_close_matches(str(value), names, NEAR_MAX, 0.3) or names[:NAMES_MAX]
    close = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(value).lower(), list(close), n=1, cutoff=0.6)
    hint = f"did you mean {close[near[0]]!r}? There are" if near else "choose one of"
    return AmbleError(f"there is no {kind} named {value!r}; {hint} {', '.join(names)}.")


def few(texts: Sequence[str], most: int = 10) -> str:
    """A list in a sentence: all items, or the first ones and how many more there are."""
    return ", ".join(texts[:most]) + (f" and {len(texts) - most:,} more" if len(texts) > most else "")


def need(module: str, extra: str) -> Any:
    """Import a module of an optional extra, or say which extra to install."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise not_installed(extra) from error


class NotInstalled(AmbleError):
    """An optional package is missing."""


def not_installed(extra: str) -> NotInstalled:
    install = f"pip install 'amble[{extra}]', or pip install '.[{extra}]' in a clone"
    return NotInstalled(f"this needs amble[{extra}], which is not installed: {install}")


def shown(value: object) -> str:
    """A value for an error message: a plain value as it is, anything else by its type."""
    return repr(value) if isinstance(value, str | numbers.Number | None) else f"a {type(value).__name__}"


def as_path(path: object, role: str) -> Path:
    """The value as a path, or an error if it is no path."""
    if not isinstance(path, str | os.PathLike):
        raise AmbleError(f"{shown(path)} was given as {role}; give a path, as text or as a pathlib.Path.")
    return Path(path)


def check_flags(**flags: object) -> None:
    """Refuse what is neither True nor False: any text would count as True."""
    for name, value in flags.items():
        if type(value).__name__ not in ("bool", "bool_"):  # Python's, or NumPy's
            raise AmbleError(f"{name}={shown(value)} was given; it must be True or False.")


def expect(value: object, kind: type, role: str, advice: str) -> None:
    """Refuse a value of another type, before any work starts."""
    if not isinstance(value, kind):
        raise AmbleError(f"{shown(value)} was given as {role}; {advice}.")
