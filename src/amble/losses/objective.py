"""What methods may use of an agent's loss, and what a user's own loss must have; losses/__init__ has the table."""

from typing import Any, Protocol

from amble.arrays import Array, Number


class Loss(Protocol):
    """The minimum that a user's own loss has. Methods say in `work` and `needs` what else they use."""

    def value(self, w: Array, /) -> Number: ...


class Objective(Loss, Protocol):
    """All that methods may use. A run begins only if the objectives have what its method needs."""

    def grad(self, w: Array, /) -> Array: ...
    def prox(self, center: Array, weight: Number, start: Array, /) -> Array: ...
    def hessian(self, w: Array, /) -> Array: ...
    @property
    def curvature(self) -> Number: ...
    @property
    def smoothness(self) -> Number: ...
    def flops(self, kind: str, /) -> Number: ...


def knows(f: object, name: str) -> bool:
    """Whether an objective has this function or number: a user's own has only what it needs."""
    return hasattr(f, name)


def number_of(f: object, name: str, default: float | None) -> Any:
    """A number that a user's own objective may lack, such as its curvature. Under JAX it is a tracer."""
    return getattr(f, name, default)
