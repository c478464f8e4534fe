"""Departure: an agent that leaves removes its shares, tells its neighbours, and passes its tokens on.

A run waits for agents that it has never met. So one that no token has met yet waits for them too, and lets each carry
the news that it has left.
"""

import math
from dataclasses import dataclass, field

from amble.live.core.custody import Custodian
from amble.live.core.effects import Left, Report
from amble.live.core.message import Epoch, Leaving

NEVER = Epoch(-1, 0)  # of a share that was removed again
SETTLED = "the training had ended before, so its data stay in the model; the closing survey is without it"


@dataclass
class Departure:
    custodian: Custodian
    leave_by_s: float = math.inf
    parted: set[str] = field(default_factory=set)  # neighbours that know that this agent leaves
    part_s: float = 0.0  # when the others are told again

    def look(self, now: float) -> None:
        """Whether the departure is complete: all shares are removed, no token is coming, and none is here."""
        custodian, state, settings = self.custodian, self.custodian.state, self.custodian.settings
        awaited = settings.awaited[settings.indices[state.me]] and bool(state.neighbours.up)
        inside = [m for m in range(settings.tokens) if (share := state.share(m)) and share.epoch != NEVER]
        unmet = awaited and any(state.share(m) is None for m in range(settings.tokens))
        waiting = [m for m, _ in state.custodies() if not custodian.errands[m].done]
        sending = set(state.neighbours.up) - self.parted
        if not inside and not unmet and sending and now >= self.part_s:
            self.part_s = now + settings.retry_s
            for name in sorted(sending):
                state.ask(name, Leaving(state.me))
        if not inside and (now >= self.leave_by_s or not (waiting or sending or unmet)):
            left = Left(False, SETTLED) if settings.settled else Left(True, "all that it gave is out of the model")
        elif now >= self.leave_by_s:
            tokens = ", ".join(map(str, inside))
            left = Left(False, f"its time was over: tokens {tokens} are recounted without it, as without the dead")
        else:
            return
        state.persist({"left": left})
        state.report(Report("left", words=left.words))
