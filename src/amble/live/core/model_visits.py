"""Visits of a token that is the model itself (TokenSGD), with losses: any copy of it can be continued.

There is no account of who gave what. So there is nothing to recount when a token is lost: its sender passes on the copy
that it kept, in the next epoch, and the agents that are left train it from there. The steps that were made after that
copy are lost with the token. What a dead agent's rows have taught the model stays in it, and fades with the steps of
the others. For the same reason an agent cannot take its part out and leave; it may simply stop.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from amble.arrays import Array, Flags
from amble.errors import AmbleError
from amble.live.core.message import Epoch
from amble.live.core.parcels import Common, Holder, Parcel
from amble.losses.objective import Objective


@dataclass(frozen=True)
class ModelVisits(Common):
    """For methods that say so with `continues`: their token is a whole model."""

    exact: ClassVar[bool] = True
    removes: ClassVar[bool] = False

    def share(self) -> Any:
        return self.rules.slot(self.initial)

    def parcel(self, m: int) -> Parcel:
        return Parcel(self.rules.token(self.initial, self.agents, m), np.zeros(()), *self.counts())

    def visit(
        self,
        f: Objective,
        holder: Holder,
        share: Any,
        parcel: Parcel,
        me: int,
        hop: int,
        fresh: bool,  # noqa: ARG002 - no share is of an epoch
    ) -> tuple[Holder, Any, Parcel]:
        z = self.estimate(parcel)
        agent, share, token = self.rules.visit(f, holder.agent, share, parcel.token)
        calm = parcel.calm + 1 if self.still(holder, z) else np.zeros(())
        met, buried = parcel.met.copy(), parcel.buried.copy()
        met[me], buried[me] = hop, 0.0
        parcel = _counted(parcel._replace(token=token, calm=calm, met=met, buried=buried))
        return Holder(agent, z, holder.visits + 1), share, parcel

    def leave(self, *_: Any, **__: Any) -> NoReturn:
        raise AmbleError(f"{self.method.label} cannot remove an agent's steps; stop the agent without leaving.")

    def recount(self, parcel: Parcel, epoch: Epoch, buried: Array, holder: Holder | None = None) -> Parcel:  # noqa: ARG002
        """The same model, in the next epoch, without the buried agents."""
        return _counted(parcel._replace(calm=np.zeros(()), buried=np.maximum(parcel.buried, buried)))

    def counted(self, parcel: Parcel) -> Flags:
        return (parcel.met > 0) & (parcel.buried == 0)

    def inside(self, parcel: Parcel) -> Flags:
        return self.counted(parcel)

    def estimate(self, parcel: Parcel) -> Array:
        return np.asarray(self.rules.estimate(parcel.token))

    def result(self, parcel: Parcel) -> Array:
        return np.append(self.estimate(parcel), self.inside(parcel))


def _counted(parcel: Parcel) -> Parcel:
    """With the number of agents that it has met, and that are not counted out."""
    return parcel._replace(members=np.array(float(np.count_nonzero((parcel.met > 0) & (parcel.buried == 0)))))
