"""Reads settings from TOML files, with every value checked, and writes them."""

import ipaddress
import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amble.errors import AmbleError, is_number, need, unknown

PORT_MAX = 32767
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")  # without dots: see place.py
HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*")


class Kind(NamedTuple):
    """What a setting may be, and how to say so."""

    fits: Callable[[Any], bool]
    words: str


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def whole(low: int, high: int) -> Kind:
    return Kind(lambda value: is_whole(value) and low <= value <= high, f"a whole number from {low} to {high}")


def above_zero(below: float = math.inf) -> Kind:
    words = "a number above zero" + ("" if below == math.inf else f" and below {below:g}")
    return Kind(lambda value: is_number(value) and 0 < value < below, words)


def list_of(kind: Kind, words: str) -> Kind:
    return Kind(lambda value: isinstance(value, list) and len(value) > 0 and all(map(kind.fits, value)), words)


def is_host(value: Any) -> bool:
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
seed = whole(0, 2**63 - 1)  # as far as TOML's whole numbers go
table = Kind(lambda value: isinstance(value, dict), "a table")


def table_with(words: str) -> Kind:
    return Kind(table.fits, f"a table with {words}")


name = Kind(
    lambda value: isinstance(value, str) and NAME.fullmatch(value) is not None,
    "at most 64 letters, digits, - and _, the first a letter or a digit",
)
host = Kind(
    is_host,
    "the host name or IPv4 address at which others reach it (Zenoh dials no IPv6 address by TLS: name it in the hosts "
    "file, and give that name)",
)
port = Kind(whole(1, PORT_MAX).fits, f"a whole number from 1 to {PORT_MAX}: Zenoh listens on no higher ports")


def read(path: Path, what: str) -> dict[str, Any]:
    """The settings in a file."""
    if not path.is_file():
        raise AmbleError(f"there is no {what} {path}; give the path of one.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AmbleError(f"{path} is not valid TOML: {str(error).rstrip('.')}.") from error
    except OSError as error:
        raise AmbleError(f"{path} cannot be read ({error.strerror}); give one that you may read.") from error


def check(given: Any, where: str, kinds: Mapping[str, Kind], needed: Sequence[str] = ()) -> dict[str, Any]:
    """The table as it is, if all its keys are known, all needed ones are there and each value is of its kind."""
    if not isinstance(given, dict):
        raise AmbleError(f"{where} is {given!r}; it must be a table of settings.")
    for key, value in given.items():
        if key not in kinds:
            raise unknown(f"setting of {where}", key, kinds)
        if not kinds[key].fits(value):
            raise AmbleError(f"{where}: {key} = {shown(value)} was given; it must be {kinds[key].words}.")
    for key in needed:
        if key not in given:
            raise AmbleError(f"{where} has no {key}; add it: {kinds[key].words}.")
    return given


def shown(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 80 else words[:76] + " ..."


def written(settings: Mapping[str, Any]) -> str:
    """As TOML; what is None is left out, and numbers of NumPy are plain ones."""
    text: str = need("tomli_w", "live").dumps(_plain(settings))
    return text


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items() if each is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value
