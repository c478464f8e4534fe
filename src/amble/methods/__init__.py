"""Methods: what happens when a token visits, or in one round. A new method is one file and one line in METHODS.

A token method is a frozen dataclass of settings with `label`, `work` (the objective's calls in a visit), `tokens` and

    agent(f, start)                     what an agent remembers at first; its field x is the local model
    slot(start)                         what it remembers about a token
    token(start, agents)                what travels
    visit(f, agent, slot, token)        -> (agent, slot, token), array arithmetic and the objective's functions only
    estimate(token)                     the model the token stands for
    message_numbers(p)                  how many numbers a message must hold

or, for most, only `agent` and `gift(f, agent, z) -> (agent, v, w)` with methods/gifts.py around it, or only
`local(f, x, s) -> x` with methods/copies.py around it.
A round method has `agent`, `say(agent)`, `round(f, agent, heard)`, `round_units(agents)` and `message_numbers`.
"""

import warnings
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from amble.errors import AmbleError, unknown
from amble.methods.apibcd import APIBCD
from amble.methods.copies import CopyRules
from amble.methods.gapibcd import GAPIBCD
from amble.methods.gifts import GiftRules
from amble.methods.ibcd import IBCD
from amble.methods.syncwalks import SyncWalks
from amble.methods.wpg import WPG

METHODS: dict[str, type[Any]] = {kind.label: kind for kind in (IBCD, APIBCD, GAPIBCD, WPG, SyncWalks)}

__all__ = ["APIBCD", "GAPIBCD", "IBCD", "METHODS", "WPG", "SyncWalks", "check", "is_round", "make", "rules", "settings"]


def rules(method: Any) -> Any:
    """What the engines call: the method itself, or the bookkeeping around its gift or local step."""
    if hasattr(method, "gift"):
        return GiftRules(method)
    return CopyRules(method) if hasattr(method, "local") else method


def is_round(method: Any) -> bool:
    return hasattr(method, "round")


def settings(method: Any) -> dict[str, Any]:
    """The method's settings as plain values."""
    return asdict(method)


def make(name: str, given: dict[str, Any]) -> Any:
    """A method by its name ("API-BCD", "apibcd") and settings, checked."""
    plain = {label.lower().replace("-", ""): kind for label, kind in METHODS.items()}
    kind = plain.get(name.lower().replace("-", "").replace("_", ""))
    if kind is None:
        raise unknown("method", name, METHODS)
    known = [field.name for field in fields(kind)]
    for key in given:
        if key not in known:
            raise unknown(f"setting of {kind.label}", key, known)
    return check(kind(**given))


def check(method: Any, problem: Any = None) -> Any:
    """The method with its settings checked, for this problem; more tokens than agents is allowed, with a warning."""
    if isinstance(method, type | str) or not hasattr(method, "label"):
        raise AmbleError(f"{method!r} was given as a method; give one with its settings, such as amble.IBCD(tau=1).")
    for field in fields(method):
        value = getattr(method, field.name)
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if field.name in method.positive and not (number and 0 < value < np.inf):
            raise AmbleError(f"{method.label}: {field.name}={value!r} was given; it must be a number above zero.")
        if field.name == "rho" and value is not None and not (number and 0 <= value < np.inf):
            raise AmbleError(f"{method.label}: rho={value!r} was given; it must be zero or more, or left out for L.")
        if field.name == "tokens" and not (isinstance(value, int | np.integer) and value >= 1):
            raise AmbleError(f"{method.label}: tokens={value!r} was given; it must be a whole number, one or more.")
        allowed = getattr(method, "choices", {}).get(field.name)
        if allowed is not None and value not in allowed:
            raise unknown(f"{field.name} of {method.label}", str(value), allowed)
    if problem is None:
        return method
    for kind in method.work:
        if problem.own is not None and not all(hasattr(f, kind) for f in problem.own):
            raise AmbleError(f"{method.label} calls {kind}, and your objectives have none; give them a method {kind}.")
    if not is_round(method) and method.tokens > problem.agents:
        words = f"{method.label}: {method.tokens} tokens for {problem.agents} agents: some will always wait."
        warnings.warn(words, stacklevel=3)
    return method
