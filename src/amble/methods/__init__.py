"""Methods: what happens when a token visits, or in one round. A new method is one file and one line in
registry.py.

A token method is a frozen dataclass of settings with `label`, `work` (the objective's calls in a visit), `tokens` and

    agent(f, start)                     what an agent remembers at first; its field x is the local model
    slot(start)                         what it remembers about a token
    token(start, agents, m)             what travels, for token m
    visit(f, agent, slot, token)        -> (agent, slot, token), array arithmetic and the objective's functions only
    estimate(token)                     the model that the token represents
    message_numbers(p)                  how many numbers a message must hold

or, for most, only `agent`, `weigh` and `gift(f, agent, z) -> (agent, v, w)`, with methods/gifts.py around it for one
token and methods/boards.py for more, or only `local(f, x, s) -> x` with methods/copies.py around it.
A round method has `agent`, `say(agent)`, `round(f, agent, heard, degree)` and `hears`, what an agent hears of the rest:

    mixed   the sum over its neighbours and itself with the network's Metropolis weights
    sum     the plain sum over its neighbours, of which there are `degree`
    mean    the mean over all agents, from a server
"""

import warnings
from dataclasses import asdict, fields, is_dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from amble.errors import AmbleError, unknown
from amble.methods import registry
from amble.methods.boards import BoardRules
from amble.methods.copies import CopyRules
from amble.methods.gifts import GiftRules
from amble.methods.own import Absent, explained
from amble.methods.parameters import check_settings
from amble.methods.parts import check_parts

_KINDS: list[Any] = [kind for kind in vars(registry).values() if isinstance(kind, type)]
METHODS: dict[str, type[Any]] = {kind.label: kind for kind in _KINDS}

__all__ = [
    "METHODS", "check", "first_state", "from_settings", "is_round", "message_numbers", "positive", "round_units",
    "rules", "settings", "tunable",
]  # fmt: skip


def rules(method: Any, start: Any = None) -> Any:
    """What the engines call: the method itself, or the bookkeeping around its gift or local step.

    `start` is the initial model (None: zero). A token without gifts represents it.
    """
    if hasattr(method, "gift"):
        return GiftRules(method, start) if method.tokens == 1 else BoardRules(method, start)
    return CopyRules(method) if hasattr(method, "local") else method


def is_round(method: Any) -> bool:
    return method.rounds if isinstance(method, Absent) else hasattr(method, "round")


def message_numbers(method: Any, p: int) -> int:
    """How many numbers one message holds."""
    return p if is_round(method) else int(rules(method).message_numbers(p))


def round_units(method: Any, network: Any) -> int:
    """Messages in a round: two per link, or with a server two per agent (for each of M tokens, if there are M)."""
    if method.hears == "mean":
        return int(2 * network.agents * getattr(method, "tokens", 1))
    return 2 * len(network.edges)


def first_state(method: Any, p: int) -> dict[str, Any]:
    """The first state of one agent, slot and token, for a loss of which only the dimension is known."""
    start, rule = np.zeros(p), rules(method)
    agent = rule.agent(SimpleNamespace(curvature=0.0), start)
    return {
        "agents": agent,
        "slots": () if is_round(method) else rule.slot(start),
        "tokens": () if is_round(method) else rule.token(start, 1, 0),
    }


def settings(method: Any) -> dict[str, Any]:
    """The method's settings as plain values."""
    return dict(method.given) if isinstance(method, Absent) else asdict(method)


def positive(method: Any) -> tuple[str, ...]:
    """The settings that must be above zero: its step or penalty."""
    return tuple(getattr(method, "positive", ()))


def tunable(method: Any) -> str | None:
    """The setting that tuning chooses: the first of those that must be above zero; None where there is none."""
    return next((field.name for field in fields(method) if field.name in positive(method)), None)


def from_settings(name: str | type[Any], given: dict[str, Any]) -> Any:
    """A method by its name ("API-BCD", "apibcd") or class, with these settings, checked."""
    kind = name if isinstance(name, type) else find(str(name))
    if not is_dataclass(kind):
        raise AmbleError(f"{kind.__name__} is not a method: it is not a dataclass; write @amble.method above it.")
    known = [field.name for field in fields(kind)]
    for key in given:
        if key not in known:
            raise unknown(f"setting of {getattr(kind, 'label', kind.__name__)}", key, known)
    with explained(kind):
        made = kind(**given)
    return check(made)


def find(name: str) -> type[Any]:
    """The class of one of amble's methods."""
    plain = {label.lower().replace("-", ""): kind for label, kind in METHODS.items()}
    kind = plain.get(name.lower().replace("-", "").replace("_", ""))
    if kind is None:
        raise unknown("method", name, METHODS)
    return kind


def check(method: Any, problem: Any = None) -> Any:
    """The method with its settings checked, for this problem; more tokens than agents is allowed, with a warning."""
    if isinstance(method, Absent):
        raise method.refuse("a simulation")
    check_parts(method)
    check_settings(method)
    if problem is None:
        return method
    if hasattr(method, "for_problem"):
        method = method.for_problem(problem)
    for name in (*method.work, *getattr(method, "needs", ())):
        if problem.own is not None and not all(hasattr(f, name) for f in problem.own):
            raise AmbleError(f"{method.label} asks your objectives for {name}, and they have none; give them one.")
    if not is_round(method) and method.tokens > problem.agents:
        note = f"{method.label}: {method.tokens} tokens for {problem.agents} agents: some will always wait."
        warnings.warn(note, stacklevel=3)
    return method
