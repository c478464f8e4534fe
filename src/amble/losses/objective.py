"""What methods may use of an agent's loss, and what a user's own loss must have; losses/__init__ has the table."""

from collections.abc import Callable
from typing import Any, Protocol, Self

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


class NamedLoss(Objective, Protocol):
    """What a loss of the registry has besides."""

    @staticmethod
    def fits(classes: int, /) -> bool: ...
    @staticmethod
    def unknowns(columns: int, classes: int, /) -> int: ...
    @staticmethod
    def keeps_rows() -> bool: ...
    @staticmethod
    def link() -> str: ...
    @staticmethod
    def flaw(y: Array, /) -> str | None: ...  # only of a regression
    @staticmethod
    def predict(W: Array, X: Array, /) -> Array: ...
    @staticmethod
    def build(X: Array, y: Array, rows: Array, ridge: Array, classes: int, /) -> "NamedLoss": ...
    def pooled(self) -> Self: ...
    def hessian_times(self, w: Array, /) -> Callable[[Array], Array]: ...  # only where the prox has no closed form
    @property
    def curvatures(self) -> Array: ...
    @property
    def share(self) -> Number: ...
    @property
    def quadratic(self) -> bool: ...


class ModelLoss(Protocol):
    """The losses of all agents of a model of a user's own, such as JaxLoss: a sequence of objectives that also knows
    how the numbers of the model become its weights."""

    def __len__(self) -> int: ...
    @property
    def dimension(self) -> int: ...
    @property
    def start(self) -> Array: ...  # the initial model
    @property
    def task(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def stacked(self) -> Any: ...  # for the compiled engine; None: it cannot run them
    @property
    def advice(self) -> dict[str, str]: ...  # by what a method may miss: what to do
    def params(self, w: Array, /) -> Any: ...
    def vector(self, params: Any, /) -> Array: ...
    def metrics(self, W: Array, /) -> Array: ...
    def flops(self, kind: str, /) -> Array: ...  # of each agent


def knows(f: object, name: str) -> bool:
    """Whether an objective has this function or number: a user's own has only what it needs."""
    return hasattr(f, name)


def number_of(f: object, name: str, default: float | None) -> Any:
    """A number that a user's own objective may lack, such as its curvature. Under JAX it is a tracer."""
    return getattr(f, name, default)


def drawn(f: Any, hop: Any) -> Any:
    """The objective as a visit finds it: a loss with mini-batches draws rows for this hop, or round. An agent's first
    state is that of hop -1."""
    return f.drawn(hop) if knows(f, "drawn") else f


def again(f: Any, step: int) -> Any:
    """The objective at the next local step of the same visit: a loss with mini-batches draws other rows."""
    return f.again(step) if knows(f, "again") else f


def smoothness_of(f: Any) -> Any:
    """L or, for a loss whose curvature has no bound, the L of the region around its targets: no step may rest on it."""
    return f.smoothness if knows(f, "smoothness") else f.local_smoothness
