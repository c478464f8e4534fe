"""One agent's private loss. Every objective has

    value(w)                       f(w)
    grad(w)                        the gradient of f at w
    prox(center, weight, start)    argmin_x f(x) + weight/2 |x - center|^2
    hessian(w)                     the Hessian of f at w
    curvature                      the mean curvature: trace of the Hessian (or an upper bound of it) over p
    curvatures                     the same for each unknown: the Hessian's diagonal at zero (optional)
    smoothness                     L: the gradient is L-Lipschitz
    share                          the agent's part in the sum: 1, or N d_i / D where rows are weighed
    flops(kind)                    operations of one "grad", "prox" or "hessian", for the fixed cost model

and is a NamedTuple of arrays, so that agents are stacked by stacking arrays and the same code runs on NumPy and JAX.
An objective of your own needs `grad` or `prox`, whichever the method calls, and `value` for the curves."""

from typing import Protocol

from amble.arrays import Array
from amble.losses.least_squares import LeastSquares
from amble.losses.logistic import Logistic
from amble.losses.softmax import Softmax

__all__ = ["LeastSquares", "Logistic", "Objective", "Softmax"]


class Objective(Protocol):
    """What methods may ask of an agent's loss; see the module's table."""

    def value(self, w: Array) -> Array: ...
    def grad(self, w: Array) -> Array: ...
    def prox(self, center: Array, weight: Array, start: Array) -> Array: ...
    def hessian(self, w: Array) -> Array: ...
    @property
    def curvature(self) -> Array: ...
    @property
    def smoothness(self) -> Array: ...
    def flops(self, kind: str) -> Array: ...
