"""The losses of a model of the user's own, one agent each: with their shares in a run, and all together."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, final, overload

import numpy as np

from amble.arrays import Array, Number
from amble.losses.model_checks import digest_of
from amble.losses.objective import ModelLoss, again, drawn, knows


@final
class Plain:
    """A user's own objective, which is no loss of a framework, as the losses of one agent."""

    task, stacked = "custom", None
    advice: ClassVar[dict[str, str]] = {}

    def __init__(self, f: Any) -> None:
        self.f, self.start = f, np.asarray(f.start, np.float64)

    @property
    def dimension(self) -> int:
        return len(self.start)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, _: int) -> Any:
        return self.f

    def params(self, w: Array) -> Array:
        return w

    def metrics(self, W: Array) -> Array:
        return np.full(len(W), np.nan)

    def flops(self, kind: str) -> Array:  # noqa: ARG002 - nothing is known
        return np.array([6.0 * self.dimension])


@final
class Shared:
    """One agent's loss, times its share in the sum: it has what the loss has, and no more."""

    of_file: ClassVar[bool] = True  # its values may be below zero, and zeros need not be a model

    def __init__(self, loss: Any, share: float, digest: str, f: Any = None) -> None:
        self.loss, self.share, self.digest, self.f = loss, share, digest, loss[0] if f is None else f
        if knows(self.f, "smoothness"):
            self.smoothness = share * float(self.f.smoothness)
        if knows(self.f, "curvature"):
            self.curvature = share * float(self.f.curvature)
        if knows(self.f, "hessian"):
            self.hessian = self._hessian
        if knows(self.f, "prox"):
            self.prox = self._prox

    def drawn(self, hop: int) -> "Shared":
        return Shared(self.loss, self.share, self.digest, drawn(self.f, hop))

    def again(self, step: int) -> "Shared":
        return Shared(self.loss, self.share, self.digest, again(self.f, step))

    def value(self, w: Array) -> Number:
        return self.share * float(self.f.value(w))

    def grad(self, w: Array) -> Array:
        return self.share * np.asarray(self.f.grad(w), np.float64)

    def _hessian(self, w: Array) -> Array:
        return self.share * np.asarray(self.f.hessian(w), np.float64)

    def _prox(self, center: Array, weight: Number, start: Array) -> Array:
        """The minimum of s f + weight / 2 |x - center|^2 is that of f + (weight / s) / 2 |x - center|^2."""
        return np.asarray(self.f.prox(center, weight / self.share, start), np.float64)


@final
class Agents(Sequence[Shared]):
    """The losses of all agents of a run, where all of them are here; `heldout` is that of rows nobody trains on."""

    stacked: ClassVar[None] = None  # the compiled engine cannot run them

    def __init__(self, each: Sequence[Shared], heldout: ModelLoss | None) -> None:
        self.each, self.heldout, self.one = each, heldout, each[0].loss

    def __len__(self) -> int:
        return len(self.each)

    @overload
    def __getitem__(self, i: int) -> Shared: ...
    @overload
    def __getitem__(self, i: slice) -> Sequence[Shared]: ...
    def __getitem__(self, i: int | slice) -> Shared | Sequence[Shared]:
        return self.each[i]

    @property
    def dimension(self) -> int:
        return int(self.one.dimension)

    @property
    def start(self) -> Array:
        start: Array = self.one.start
        return start

    @property
    def task(self) -> str:
        return str(self.one.task)

    @property
    def advice(self) -> dict[str, str]:
        return dict(self.one.advice)

    @cached_property
    def digest(self) -> str:
        return digest_of(" ".join(f.digest for f in self.each), [self.start])

    def params(self, w: Array) -> Any:
        return self.one.params(w)

    def vector(self, params: Any) -> Array:
        numbers: Array = self.one.vector(params)
        return numbers

    def metrics(self, W: Array) -> Array:
        return np.full(len(W), np.nan) if self.heldout is None else self.heldout.metrics(W)

    def flops(self, kind: str) -> Array:
        return np.concatenate([f.loss.flops(kind) for f in self.each])
