"""Fills classes of settings from TOML tables, with every value checked, and writes them.

amble checks values itself. msgspec was tried and is not shorter: its errors do not say what a setting is for, it turns
whole numbers into floats (and so changes a run's digest), and it knows neither hosts nor finite numbers.
"""

import inspect
import ipaddress
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_type_hints

import numpy as np

from amble.errors import AmbleError, is_number, need, unknown

PORT_MAX = 32767
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # without dots: see transport/address.py
HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*")

Settings = TypeVar("Settings")


class Kind(NamedTuple):
    """What a setting may be, and how to say so."""

    fits: Callable[[Any], bool]
    description: str


def is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(low: int, high: int) -> Kind:
    return Kind(lambda value: is_whole(value) and low <= value <= high, f"a whole number from {low} to {high}")


def above_zero(below: float = math.inf) -> Kind:
    description = "a number above zero" + ("" if below == math.inf else f" and below {below:g}")
    return Kind(lambda value: is_number(value) and 0 < value < below, description)


def list_of(kind: Kind, description: str) -> Kind:
    return Kind(lambda value: isinstance(value, list) and len(value) > 0 and all(map(kind.fits, value)), description)


def is_host(value: object) -> bool:
    """Whether others can dial it: a host name, or the address of one machine."""
    if not isinstance(value, str):
        return False
    try:
        address = ipaddress.IPv4Address(value)
    except ValueError:
        # what has digits and dots only is a mistyped address
        return HOST.fullmatch(value) is not None and not re.fullmatch(r"[0-9.]+", value)
    return not (address.is_unspecified or address.is_multicast)


text = Kind(lambda value: isinstance(value, str) and value != "", "text")
boolean = Kind(lambda value: isinstance(value, bool), "true or false")
number = Kind(lambda value: is_number(value) and math.isfinite(value), "a number")
zero_or_more = Kind(lambda value: is_number(value) and 0 <= value < math.inf, "a number, zero or more")
positive = above_zero()
seed = whole(0, 2**63 - 1)  # as far as TOML's whole numbers go
table = Kind(lambda value: isinstance(value, dict), "a table")


def table_with(keys: str) -> Kind:
    return Kind(table.fits, f"a table with {keys}")


file_name = Kind(
    lambda value: text.fits(value) and Path(value).name == value, "the name of a file in the agent's own folder"
)
name = Kind(
    lambda value: isinstance(value, str) and NAME.fullmatch(value) is not None,
    "at most 64 letters, digits, - and _, the first a letter or a digit",
)
host = Kind(
    is_host,
    "the host name or IPv4 address at which others reach it (Zenoh uses no IPv6 address with TLS: name it in the hosts "
    "file, and give that name)",
)
port = Kind(whole(1, PORT_MAX).fits, f"a whole number from 1 to {PORT_MAX}: Zenoh listens on no higher ports")


def kinds_of(settings: type) -> dict[str, Kind]:
    """The kind of each field of a class of settings, as its annotation has it."""
    return {key: hint.__metadata__[0] for key, hint in get_type_hints(settings, include_extras=True).items()}


def fill(settings: type[Settings], table: Any, where: str) -> Settings:
    """A class of settings from a table: fields without a default are needed, and lists become tuples."""
    needed = [key for key, each in inspect.signature(settings).parameters.items() if each.default is each.empty]
    checked = check(table, where, kinds_of(settings), needed)
    return settings(**{key: tuple(value) if isinstance(value, list) else value for key, value in checked.items()})


def check(settings: Any, where: str, kinds: Mapping[str, Kind], needed: Sequence[str] = ()) -> dict[str, Any]:
    """The table as it is, if all its keys are known, all needed ones are there and each value is of its kind."""
    if not isinstance(settings, dict):
        raise AmbleError(f"{where} is {settings!r}; it must be a table of settings.")
    for key, value in settings.items():
        if key not in kinds:
            raise unknown(f"setting of {where}", key, kinds)
        if not kinds[key].fits(value):
            raise AmbleError(f"{where}: {key} = {shown(value)} was given; it must be {kinds[key].description}.")
    for key in needed:
        if key not in settings:
            raise AmbleError(f"{where} has no {key}; add it: {kinds[key].description}.")
    return settings


def shown(value: object) -> str:
    words = repr(value)
    return words if len(words) <= 80 else words[:76] + " ..."


def written(settings: Mapping[str, Any]) -> str:
    """As TOML; what is None is left out, and numbers of NumPy are plain ones."""
    text: str = need("tomli_w", "live").dumps(_plain(settings))
    return text


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value
