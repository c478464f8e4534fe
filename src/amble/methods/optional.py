"""Parts that a method may leave out, and their defaults. A method is any class that has the parts it needs, without a
base class for the rest. So each function here checks whether the part exists."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

Kind = TypeVar("Kind")
FAVOURS = ("auto", "time", "communication")  # words for a number of tokens that the network chooses


def positive(method: object) -> tuple[str, ...]:
    """The settings that must be above zero: its step or penalty."""
    return tuple(getattr(method, "positive", ()))


def choices(method: object) -> Mapping[str, tuple[str, ...]]:
    """The settings that are one of a few strings, with these strings."""
    named: Mapping[str, tuple[str, ...]] = getattr(method, "choices", {})
    return named


def needs(method: object) -> tuple[str, ...]:
    """What it uses of an objective besides the calls in `work`, such as its curvature."""
    return tuple(getattr(method, "needs", ()))


def penalty(method: object) -> str | None:
    """The setting that is tau of the penalised F that the method minimises; None: it minimises none."""
    name: str | None = getattr(method, "penalty", None)
    return name


def tokens(method: object) -> int:
    """How many tokens there are; of a round method, how many messages an agent and the server exchange at once."""
    return int(getattr(method, "tokens", 1))


def favour(method: object) -> str | None:
    """The word by which the network is to choose how many tokens there are; None: their number is known."""
    chosen = getattr(method, "tokens", 1)
    return chosen if isinstance(chosen, str) else None


def jumps(method: object) -> tuple[float, float, int] | None:
    """How its tokens jump, of a method that has a walk of its own: networks/walks.py, Weighted."""
    law: tuple[float, float, int] | None = getattr(method, "jumps", None)
    return law


def continues(method: object) -> bool:
    """Whether any copy of its token can be continued: the token is a whole model, not an account of gifts."""
    return bool(getattr(method, "continues", False))


def message_numbers(method: object, p: int) -> int:
    """How many numbers an agent says in a round: p, its model, or more."""
    count = getattr(method, "message_numbers", None)
    return p if count is None else int(count(p))


def message_bytes(method: object, numbers: int, p: int) -> int:
    """The bytes of a message with so many numbers, of float64 unless the method says otherwise."""
    count = getattr(method, "message_bytes", None)
    return 8 * numbers if count is None else int(count(p))


def short(method: object) -> Mapping[str, str]:
    """The leaves of its token that a message has in a smaller type, by their names."""
    named: Mapping[str, str] = getattr(method, "short", {})
    return named


def weight_type(method: object) -> str:
    """The type of the numbers in the weights of its accounts, for a gift method."""
    return str(getattr(method, "weight_type", "float64"))


class Gifts(NamedTuple):
    most: int = 1
    looks: float = 0.0  # at the model that a gift leads to, on average: the fixed cost model counts a gradient for each


def gifts_in_visit(method: object, f: object) -> Gifts:
    """How many times an agent with loss f gives while a token is there, for a gift method that may give again."""
    count = getattr(method, "gifts_in_visit", None)
    return Gifts() if count is None else count(f)


def own_flops(method: object, p: int) -> float:
    """Operations besides the objective's, for p unknowns."""
    count = getattr(method, "own_flops", None)
    return 0.0 if count is None else float(count(p))


def for_problem(method: Kind, problem: object) -> Kind:
    """The method with its open choices made for this problem."""
    chosen = getattr(method, "for_problem", None)
    return method if chosen is None else chosen(problem)  # of the same class
