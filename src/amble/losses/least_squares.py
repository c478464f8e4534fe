"""f(w) = share [ 1/(2d) |X w - y|^2 + ridge/2 |w without intercept|^2 ], kept as 1/2 w.A w - b.w + c."""

from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, namespace


class LeastSquares(NamedTuple):
    """Half the mean squared residual. Rows are not kept: A, b and c are all that any method needs."""

    A: Array  # share (X'X/d + ridge), the Hessian
    b: Array  # share X'y/d
    c: Array  # share y'y/2d
    values: Array  # eigenvalues of A
    vectors: Array  # eigenvectors of A, in columns
    share: Array  # the agent's part in the sum

    @staticmethod
    def fits(classes: int) -> bool:
        return classes == 0

    @staticmethod
    def unknowns(columns: int, classes: int) -> int:  # noqa: ARG004 - as of every loss
        return columns

    @staticmethod
    def keeps_rows() -> bool:
        return False

    @staticmethod
    def link() -> str:
        return "identity"

    @staticmethod
    def flaw(y: Array) -> str | None:  # noqa: ARG004 - takes any amounts
        return None

    @staticmethod
    def predict(W: Array, X: Array) -> Array:
        return W @ X.T

    @staticmethod
    def build(X: Any, y: Any, rows: Any, ridge: Any, classes: int = 0) -> "LeastSquares":  # noqa: ARG004 - as above
        """The loss of one agent, or of several stacked along the first axes.

        Parameters
        ----------
        X : rows (.., d, p)
        y : targets (.., d)
        rows : the weight of each row (.., d): share/d, or zero for padding
        ridge : the penalty on each coordinate (.., p)
        classes : none

        Returns
        -------
        LeastSquares

        Example
        -------
        >>> import numpy as np
        >>> import amble
        >>> X, rows, ridge = np.array([[0.0], [1.0], [2.0]]), np.full(3, 1 / 3), np.zeros(1)
        >>> f = amble.LeastSquares.build(X, np.array([0.0, 1.0, 3.0]), rows, ridge)
        >>> round(float(f.value(np.zeros(1))), 3)
        1.667
        """
        weighted = X * rows[..., None]
        A = np.swapaxes(weighted, -1, -2) @ X + ridge[..., None] * np.eye(X.shape[-1])
        b = (np.swapaxes(weighted, -1, -2) @ y[..., None])[..., 0]
        return LeastSquares._of(A, b, 0.5 * np.sum(rows * y * y, axis=-1), np.sum(rows, axis=-1))

    @staticmethod
    def _of(A: Any, b: Any, c: Any, share: Any) -> "LeastSquares":
        A = (A + np.swapaxes(A, -1, -2)) / 2  # symmetric to the last digit: a message has its upper half
        values, vectors = np.linalg.eigh(A)
        return LeastSquares(A, b, c, np.maximum(values, 0.0), vectors, share)

    def pooled(self) -> "LeastSquares":
        return LeastSquares._of(*(leaf.sum(axis=0) for leaf in (self.A, self.b, self.c, self.share)))

    def value(self, w: Array) -> Array:
        return 0.5 * w @ (self.A @ w) - self.b @ w + self.c

    def grad(self, w: Array) -> Array:
        return self.A @ w - self.b

    def hessian(self, w: Array) -> Array:  # noqa: ARG002 - the same everywhere
        return self.A

    def prox(self, center: Array, weight: Array, start: Array) -> Array:  # noqa: ARG002 - solved, not searched
        """(A + weight I) x = b + weight center, in the eigenbasis: a prox of any weight is two small products."""
        return self.vectors @ (((self.b + weight * center) @ self.vectors) / (self.values + weight))

    @property
    def quadratic(self) -> bool:
        return True

    @property
    def curvature(self) -> Array:
        return namespace(self.values).mean(self.values, axis=-1)

    @property
    def curvatures(self) -> Array:
        return namespace(self.A).diagonal(self.A, axis1=-2, axis2=-1)

    @property
    def smoothness(self) -> Array:
        return namespace(self.values).max(self.values, axis=-1)

    def flops(self, kind: str) -> Array:
        p = self.b.shape[-1]
        each = {"value": 2.0 * p * p, "grad": 2.0 * p * p, "hessian": 1.0 * p * p, "prox": 4.0 * p * p + 4.0 * p}[kind]
        return each + 0.0 * self.c
