"""What an agent waits for, by the state of its protocol: whom, since when and until when."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from amble.live.core.effects import Custody
from amble.live.core.protocol import Core
from amble.live.status import Wait, Why

SHORT_S = 1.0  # a shorter wait is normal


class Span(NamedTuple):
    """A wait on the agent's own clock."""

    why: Why
    whom: tuple[str, ...]
    token: int | None
    since_s: float
    until_s: float | None


def waits(core: Core, now_s: float, wall_s: float) -> tuple[Wait, ...]:
    """In the order of tokens; `wall_s` is what `now_s`, on the agent's own clock, is on the wall's."""
    if core.ending or core.left:
        return ()
    ahead_s = wall_s - now_s
    return tuple(
        Wait(why, since_s + ahead_s, None if until_s is None else until_s + ahead_s, whom, token)
        for why, whom, token, since_s, until_s in _spans(core, now_s)
        if now_s - since_s >= SHORT_S
    )


def _spans(core: Core, now_s: float) -> Iterator[Span]:
    for m in range(core.settings.tokens):
        custody = core.rows.get(f"custody/{m}")
        if custody is not None and not core.custodian.errands[m].passed:
            yield _of_token(core, now_s, m, custody)
    end_s = core.end.begun_s + core.settings.wait_s
    if core.settings.tolerance and core.visits.exact and now_s < end_s and (unmet := _unmet(core)):
        yield Span("meeting", unmet, None, core.end.begun_s, end_s)


def _of_token(core: Core, now_s: float, m: int, custody: Custody) -> Span:
    errand, to = core.custodian.errands[m], custody.to
    if not to:
        return Span("neighbour", (), m, errand.held_s, None)
    asked_s = math.inf if errand.since_s is None else max(errand.since_s, errand.held_s)
    stalled_s = asked_s + core.neighbours.doubts.limit_s(to, errand.taken)
    if to in core.neighbours.down_s:
        since_s = core.neighbours.down_s[to]
        until_s = min(since_s + core.settings.patience_s, stalled_s) if core.visits.exact else None
        return Span("down", (to,), m, since_s, until_s)
    return Span("passing" if errand.taken else "answer", (to,), m, min(asked_s, now_s), stalled_s)


def _unmet(core: Core) -> tuple[str, ...]:
    """Agents of the run's beginning that no token has met, according to the newest token that was here."""
    tokens = [row.message for m in range(core.settings.tokens) if (row := core.rows.get(f"custody/{m}"))]
    if not tokens:
        return ()
    newest = max(tokens, key=lambda message: message.hop).payload
    return core.settings.names_at(core.end.missing(newest))
