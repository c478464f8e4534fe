"""Methods: what happens when a token visits, or in one round. A new method is one file and one line in
registry.py.

A token method is a frozen dataclass of settings with `label`, `work` (the objective's calls in a visit), `tokens` and

    agent(f, start)                     what an agent remembers at first; its field x is the local model
    slot(start)                         what it remembers about a token
    token(start, agents, m)             what travels, for token m
    visit(f, agent, slot, token)        -> (agent, slot, token), array arithmetic and the objective's functions only
    estimate(token)                     the model that the token represents
    message_numbers(p)                  how many numbers a message must hold
    message_bytes(p)                    optional: how many bytes, if they are not 8 per number; live, `short` names the
                                        leaves of the token that are sent in a smaller type
    continues                           optional: True if the token is a whole model, so that a live run continues from
                                        any copy of it

or, for most, only `agent`, `weigh` and `gift(f, agent, z) -> (agent, v, w)`, with methods/gifts.py around it for one
token and methods/meetings.py or methods/boards.py for more, or only `local(f, x, s) -> x` with methods/copies.py around
it.
A pair method has `agent` and `pair(f, agent) -> agent`, what an agent does after it has averaged with a neighbour, with
methods/pairs.py around it.
A round method has `agent`, `say(agent)`, `round(f, agent, heard, degree)` and `hears`, what an agent hears of the rest:

    mixed   the sum over its neighbours and itself with the network's Metropolis weights
    sum     the plain sum over its neighbours, of which there are `degree`
    mean    the mean over all agents, from a server

An agent says one vector: first the p numbers of which the mean over agents is the model, then whatever else it wants
mixed in the same way. A method that says more than p numbers has `message_numbers(p)`. One that has

    offer(agent)                        a number, after `round`
    agreed(f, agent, least)             -> agent, with the least number that any agent offered

ends each round by agreeing on a number: up a spanning tree and down again, 2(N - 1) messages of one number.
"""

import warnings
from dataclasses import asdict, fields, is_dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeVar, cast, overload

import numpy as np

from amble.arrays import Array, Tree
from amble.errors import AmbleError, unknown
from amble.losses import LOSSES
from amble.losses.objective import Objective, knows
from amble.losses.penalty import Penalty
from amble.methods import registry
from amble.methods.absent import Absent
from amble.methods.boards import BoardRules
from amble.methods.copies import CopyRules
from amble.methods.gifts import GiftRules
from amble.methods.meetings import MeetingRules
from amble.methods.optional import choices, favour, for_problem, jumps, needs, positive, tokens
from amble.methods.optional import message_bytes as said_bytes
from amble.methods.optional import message_numbers as said_numbers
from amble.methods.own import explained
from amble.methods.pairs import PairRules
from amble.methods.parameters import check_settings
from amble.methods.parts import check_parts
from amble.methods.protocol import (
    Dealt,
    Links,
    Method,
    PairMethod,
    RoundMethod,
    RoundRules,
    Rules,
    TokenMethod,
    TokenRules,
    agrees,
    is_copy,
    is_gift,
    is_pair,
    is_round,
    walks,
)

Kind = TypeVar("Kind", bound=Method)
_KINDS: list[Any] = [kind for kind in vars(registry).values() if isinstance(kind, type)]
NUMBER_BYTES = 8
METHODS: dict[str, type[Any]] = {kind.label: kind for kind in _KINDS}

__all__ = [
    "METHODS", "Method", "RoundMethod", "TokenMethod", "agrees", "check", "check_penalty", "favour", "first_state",
    "from_settings", "is_gift", "is_pair", "is_round", "jumps", "message_bytes", "message_numbers", "positive",
    "round_bytes", "round_units", "rules", "settings", "tokens", "tokens_among", "tunable", "walks", "with_setting",
]  # fmt: skip


@overload
def rules(
    method: RoundMethod, start: Array | None = None, penalty: Penalty | None = None, meets: bool = False
) -> RoundRules: ...
@overload
def rules(
    method: TokenMethod | PairMethod,
    start: Array | None = None,
    penalty: Penalty | None = None,
    meets: bool = False,
) -> TokenRules: ...


def rules(method: Method, start: Array | None = None, penalty: Penalty | None = None, meets: bool = False) -> Rules:
    """What the engines call: the method itself, or the bookkeeping around its gift or local step.

    `start` is the initial model (None: zero), for which a token without gifts stands. `penalty` is the problem's, which
    `check` has found that the method can take. `meets` says that the tokens of a gift method meet at one place.
    """
    if is_gift(method):
        if meets:
            return MeetingRules(method, start, penalty)
        return GiftRules(method, start, penalty) if method.tokens == 1 else BoardRules(method, start, penalty)
    if is_copy(method):
        return CopyRules(method)
    if is_pair(method):
        return PairRules(method)
    return method


def tokens_among(method: Method, agents: int) -> int:
    """How many tokens, or messengers, move among so many agents; of a round method as `tokens` says."""
    return agents if is_pair(method) else tokens(method)


def message_numbers(method: Method, p: int, penalty: Penalty | None = None, meets: bool = False) -> int:
    """How many numbers one message holds."""
    if is_round(method):
        return said_numbers(method, p)
    return int(rules(method, None, penalty, meets).message_numbers(p))


def message_bytes(method: Method, p: int, penalty: Penalty | None = None, meets: bool = False) -> int:
    """How many bytes one message holds."""
    asked = method if is_round(method) else rules(method, None, penalty, meets)
    return said_bytes(asked, message_numbers(method, p, penalty, meets), p)


def round_units(method: Method, network: Links) -> int:
    """Messages in a round: two per link, or with a server two per agent (for each of M tokens, if there are M); and
    those that carry one number, where agents agree on one."""
    if is_round(method) and method.hears == "mean":
        return 2 * network.agents * tokens(method)
    return 2 * len(network.edges) + agreeing_units(method, network)


def agreeing_units(method: Method, network: Links) -> int:
    """Messages of one number in a round: up a spanning tree and down again."""
    return 2 * (network.agents - 1) if agrees(method) else 0


def round_bytes(method: Method, network: Links, message_bytes: int) -> int:
    """Bytes of all messages in a round, those with one number included."""
    short = agreeing_units(method, network)
    return (round_units(method, network) - short) * message_bytes + short * NUMBER_BYTES


def first_state(method: Method, p: int, meets: bool = False) -> dict[str, Tree]:
    """The initial state of one agent, slot and token, for a loss of which only the dimension is known."""
    start, unknown_loss = np.zeros(p), cast(Objective, SimpleNamespace(curvature=0.0, grad=np.zeros_like, value=np.sum))
    if is_round(method):
        return {"agents": method.agent(unknown_loss, start), "slots": (), "tokens": ()}
    rule = rules(method, meets=meets)
    return {"agents": rule.agent(unknown_loss, start), "slots": rule.slot(start), "tokens": rule.token(start, 1, 0)}


def settings(method: Any) -> dict[str, Any]:
    """The method's settings as plain values."""
    return dict(method.chosen) if isinstance(method, Absent) else asdict(method)


def tunable(method: Any) -> str | None:
    """The setting that tuning chooses: the first of those that must be above zero; None where there is none."""
    return next((field.name for field in fields(method) if field.name in positive(method)), None)


def with_setting(method: Method, name: str, value: float) -> Method:
    """The method with one setting changed."""
    changed: Method = replace(cast(Any, method), **{name: value})  # every method is a dataclass; no Protocol can say so
    return changed


def from_settings(name: str | type[Any], chosen: dict[str, Any]) -> Method:
    """A method by its name ("API-BCD", "apibcd") or class, with these settings, checked."""
    kind = name if isinstance(name, type) else find(str(name))
    if not is_dataclass(kind):
        raise AmbleError(f"{kind.__name__} is not a method: it is not a dataclass; write @amble.method above it.")
    known = [field.name for field in fields(kind)]
    for key in chosen:
        if key not in known:
            raise unknown(f"setting of {getattr(kind, 'label', kind.__name__)}", key, known)
    with explained(kind):
        made = kind(**chosen)
    return check(cast(Method, made))  # check raises the error if it is not a method


def find(name: str) -> type[Any]:
    """The class of one of amble's methods."""
    plain = {label.lower().replace("-", ""): kind for label, kind in METHODS.items()}
    kind = plain.get(name.lower().replace("-", "").replace("_", ""))
    if kind is None:
        raise unknown("method", name, METHODS)
    return kind


def check_penalty(method: Kind, problem: Dealt) -> Kind:
    """The method with what it left open chosen for this problem, or a sentence where it cannot take its penalty."""
    method = for_problem(method, problem)
    if problem.penalty is not None and not (is_gift(method) and method.weigh == "full"):
        form = f" in its {method.form} form" if isinstance(method, registry.Relay) else ""
        raise AmbleError(
            f"{method.label}{form} cannot take l1= or positive=; use the full form of Relay, "
            'amble.Relay(form="full") or -m Relay:form=full, or ridge= alone.'
        )
    return method


def by_gradient() -> str:
    """Which methods run on a loss of which only the gradient is known."""
    forms = [(kind, form) for kind in _KINDS for form in choices(kind).get("form", (None,)) if form != "auto"]
    made = [(kind() if form is None else kind(form=form), form) for kind, form in forms]
    named = [
        f"{m.label}{'' if form is None else f' (form={form!r})'}"
        for m, form in made
        if set(m.work) == {"grad"} and "hessian_times" not in needs(m)
    ]
    return f"take a method that needs only gradients: {', '.join(named)}"


def check(method: Kind, problem: Dealt | None = None) -> Kind:
    """The method with its settings checked, for this problem; more tokens than agents is allowed, with a warning."""
    if isinstance(method, Absent):
        raise method.refuse("a simulation")
    check_parts(method)
    check_settings(method)
    if problem is None:
        return method
    method = check_penalty(method, problem)
    if problem.loss is not None and "smoothness" in needs(method) and not knows(LOSSES[problem.loss], "smoothness"):
        given = "give rho, or choose" if knows(method, "rho") else "choose"
        raise AmbleError(
            f"{method.label} steps by a bound L of the loss's curvature, and loss={problem.loss!r} has none that holds "
            f"everywhere; {given} another method, such as Relay in its full form."
        )
    for name in (*method.work, *needs(method)):
        if problem.own is not None and not all(knows(f, name) for f in problem.own):
            advice = "give them one" if problem.trains is None else problem.trains.advice.get(name, by_gradient())
            raise AmbleError(f"{method.label} calls {name} of your objectives, and they have none; {advice}.")
    if walks(method) and favour(method) is None and method.tokens > problem.agents:
        note = f"{method.label}: {method.tokens} tokens for {problem.agents} agents: some will always wait."
        warnings.warn(note, stacklevel=3)
    return method
