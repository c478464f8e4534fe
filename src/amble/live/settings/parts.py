"""The settings that a run and each of its agents share: method, stop, timing and record."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, cast

from amble import methods
from amble.errors import AmbleError, is_number
from amble.live import toml
from amble.methods.protocol import Method, TokenMethod, is_round, walks
from amble.networks.choosing import tokens_apart

TOKENS_MAX = 64
PAUSE_MAX_S = 10.0
VISITS_MAX = 1_000_000  # about 80 MB of a journal (benchmarks/journal.py)

below_one = toml.Kind(
    lambda value: is_number(value) and 0 <= value < 1, "a number above zero and below 1, or 0 for no limit"
)
pause = toml.Kind(lambda value: is_number(value) and 0 <= value <= PAUSE_MAX_S, f"a number from 0 to {PAUSE_MAX_S:g}")
zero_for_all = toml.Kind(toml.whole(0, 10**15).fits, "a whole number: how many visits are kept, or 0 for all of them")


@dataclass(frozen=True)
class Stop:
    """When a run ends: at the first of these that comes."""

    tolerance: Annotated[float | None, below_one] = None  # the model moves less than this
    hops: Annotated[int | None, toml.whole(1, 10**15)] = None  # of all tokens together
    seconds: Annotated[float | None, toml.positive] = None  # per agent, since its first token from another agent


@dataclass(frozen=True)
class LiveTiming:
    """How long agents wait (see core/protocol.py). The simulator's Timing is what hops and visits take."""

    patience_s: Annotated[float, toml.positive] = 2.0  # for a neighbour that is down
    stall_s: Annotated[float, toml.positive] = 10.0  # for an answer of one that is up; if visits take long, for longer
    silence_s: Annotated[float, toml.positive] = 120.0  # for a token that nobody has seen
    lease_s: Annotated[float, toml.positive] = 2.0  # for a sign of life on a link
    retry_s: Annotated[float, toml.positive] = 0.1  # before a question is asked again, the first time
    pause_s: Annotated[float, pause] = 0.0  # at each visit, as if the agent took so much longer to compute it


@dataclass(frozen=True)
class Retention:
    """How much of its record an agent keeps. Agents of one run may have different values."""

    # then the oldest visits are dropped, and the oldest of as many events; 0: never
    visits_max: Annotated[int, zero_for_all] = VISITS_MAX


def make_method(table: Any, agents: int) -> TokenMethod:
    """From the [method] table; a live run passes tokens, so it must have them. Where it says only what to favour, the
    number of agents says how many."""
    if not isinstance(table, dict) or "name" not in table:
        raise AmbleError('the run has no method; add a table [method] with name = "Relay", for example.')
    method: Method = methods.from_settings(table["name"], {key: value for key, value in table.items() if key != "name"})
    if not walks(method) or methods.jumps(method):
        walking = [label for label, kind in methods.METHODS.items() if walks(kind) and not methods.jumps(kind)]
        how = f"it works in {'rounds' if is_round(method) else 'pairs'} and has no tokens"
        how = "its tokens jump, by a walk that only simulations have" if walks(method) else how
        raise AmbleError(f"{method.label} was given; {how}: choose {', '.join(walking[:-1])} or {walking[-1]}.")
    if word := methods.favour(method):
        method = cast(TokenMethod, methods.with_setting(method, "tokens", tokens_apart(word, agents)))
    if method.tokens > TOKENS_MAX:
        raise AmbleError(f"[method]: tokens = {method.tokens} was given; a live run has at most {TOKENS_MAX}.")
    return method


def make_stop(table: Any) -> Stop:
    """A tolerance of 0 is the same as none."""
    stop = toml.fill(Stop, table, "[stop]")
    stop = replace(stop, tolerance=stop.tolerance or None)
    if stop == Stop():
        raise AmbleError("[stop] has no limit, and the run would never end; give tolerance (above 0), hops or seconds.")
    return stop


def make_timing(table: Any) -> LiveTiming:
    timing = toml.fill(LiveTiming, table, "[timing]")
    if timing.silence_s <= timing.patience_s:
        raise AmbleError(
            f"[timing] has silence_s = {timing.silence_s:g} and patience_s = {timing.patience_s:g}; the silence after "
            "which a token counts as lost must be longer than the patience with a neighbour."
        )
    return timing


def make_retention(table: Any) -> Retention:
    return toml.fill(Retention, table, "[record]")


def method_settings(method: TokenMethod) -> dict[str, Any]:
    """The [method] table of a method."""
    return {"name": method.label, **methods.settings(method)}
