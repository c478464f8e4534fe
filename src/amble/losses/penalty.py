"""A penalty that is no part of the agents' losses, and the model that a token represents under it.

    sum_i f_i(w) + sum_j l1_j |w_j| + ridge_j/2 w_j^2,   w_j >= 0 where `positive`

|w| has a corner at zero, so no agent could put it into a gift. A token with a matrix as its weight W and a total T
holds the quadratic model of all losses, 1/2 z'Wz - T'z, so whoever reads the token adds the penalty there, once:

    z = argmin 1/2 z'Wz - T'z + sum_j l1_j |z_j| + ridge_j/2 z_j^2

found by one linear system, which is exact once it is known which z_j are zero and the signs of the others. The first
guess is that of a model nearby, and a better one is made by coordinate descent.
"""

from typing import Any, NamedTuple

from amble.arrays import Array, Flags, Number, namespace, while_loop

SINGULAR = 1e-12  # of the diagonal: added to the weight, and taken out of the solution again
NOISE = 1e-15  # of the largest number in a slope, for each of its terms: less is rounding
SWEEP_PER = 50  # unknowns: one more sweep before each system, which is the more expensive the more there are
ROUNDS_MAX = 1000  # sweeps and systems; a few are enough


class Penalty(NamedTuple):
    """The weights of one penalty, one entry per unknown."""

    l1: Array
    ridge: Array  # beside the one that the losses hold
    positive: Flags  # who may not be below zero

    def times(self, factor: Number) -> "Penalty":
        """The penalty of a sum of losses: `factor` is the sum of their shares."""
        return self._replace(l1=factor * self.l1, ridge=factor * self.ridge)

    def flops(self, p: int) -> float:
        """Operations of the minimiser beside two systems of p unknowns: for the fixed cost model as many again, and two
        sweeps."""
        return 4 / 3 * p**3 + 4.0 * p * p

    def value(self, w: Array) -> Array:
        return self.l1 @ abs(w) + 0.5 * self.ridge @ (w * w)

    def slopes(self, w: Array, grad: Array) -> Array:
        """What is left of the slope at w, where `grad` is the gradient of the losses: zero for every unknown at the
        minimiser, and only there (the conditions of Karush, Kuhn and Tucker)."""
        xp = namespace(w)
        slope = grad + self.ridge * w
        up, down = xp.maximum(-slope - self.l1, 0.0), xp.maximum(slope - self.l1, 0.0)
        return xp.where(w != 0, abs(slope + self.l1 * xp.sign(w)), xp.where(self.positive, up, up + down))

    def minimiser(self, total: Array, weight: Array, start: Array, near: Array | None = None) -> Array:
        """The model that a token represents; `start` where no gift and no penalty says anything.

        `near` is a model that may be close: the search begins there.
        """
        xp = namespace(total)
        W = weight + xp.diag(self.ridge)
        diagonal = xp.diagonal(W)
        known = diagonal > 0
        # in the scaling of the weight's own diagonal, so that the units of the columns do not matter
        scale = 1 / xp.sqrt(xp.where(known, diagonal, 1.0))
        A, b, l1, center = scale[:, None] * W * scale, scale * total, scale * self.l1, start / scale
        # a token with few rows inside has a singular weight
        lift = xp.where(known | (l1 > 0), SINGULAR, 1.0)
        search = Search(A + xp.diag(lift), b + lift * center, l1, self.positive)
        u = search.run((start if near is None else near) / scale)
        # a step of refinement takes the added part out again
        inside, sign = search.face(u)
        left = xp.where(inside, b - l1 * sign - A @ u, 0.0)
        refined = u + xp.linalg.solve(search.system(inside), left)
        u = xp.where(search.bounded & (refined * sign <= 0), 0.0, refined)
        empty = ~xp.any(xp.diagonal(weight) > 0)
        return xp.where(empty, start, scale * u)


class Search(NamedTuple):
    """argmin 1/2 u'Au - b'u + sum_j l1_j |u_j|, u_j >= 0 where positive, for a positive definite A of diagonal 1."""

    A: Array
    b: Array
    l1: Array
    positive: Flags

    @property
    def bounded(self) -> Flags:
        """Who has a corner at zero."""
        return (self.l1 > 0) | self.positive

    def run(self, u: Array) -> Array:
        xp = namespace(u)

        def unfinished(state: tuple[Array, Any, Any]) -> Any:
            return ~state[2] & (state[1] < ROUNDS_MAX)

        def step(state: tuple[Array, Any, Any]) -> tuple[Array, Any, Any]:
            u, done = self.solved(self.swept(state[0]))
            return u, state[1] + 1, done

        u = xp.where(xp.any(u != 0), u, self.shrunk())
        u, done = self.solved(xp.where(self.positive & (u < 0), 0.0, u))
        found: Array = while_loop(xp, unfinished, step, (u, xp.asarray(0), done))[0]
        return found

    def noise(self, u: Array) -> Array:
        xp = namespace(u)
        return NOISE * u.shape[-1] * (xp.max(abs(self.b)) + xp.max(abs(u)))

    def shrunk(self) -> Array:
        """The minimiser without l1, moved towards zero: for unknowns that do not depend on each other it is that with
        l1, and otherwise a guess."""
        xp = namespace(self.b)
        u = xp.linalg.solve(self.A, self.b)
        return xp.sign(u) * xp.maximum(abs(u) - self.l1, 0.0)

    def swept(self, u: Array) -> Array:
        """Sweeps of coordinate descent: each u_j in turn minimises, with the others as they are."""
        xp, p = namespace(u), u.shape[-1]
        places, noise, steps = xp.arange(p), self.noise(u), p * (1 + p // SWEEP_PER)
        bounded = self.bounded

        def step(state: tuple[Any, Array]) -> tuple[Any, Array]:
            k, u = state
            j = k % p
            slope = self.b[j] - self.A[j] @ u + self.A[j, j] * u[j]
            size = abs(slope) - self.l1[j]
            stays = (size <= xp.where(u[j] == 0, noise, 0.0)) | (self.positive[j] & (slope < 0))
            new = xp.where(stays & bounded[j], 0.0, xp.sign(slope) * size / self.A[j, j])
            return k + 1, xp.where(places == j, new, u)

        after: Array = while_loop(xp, lambda state: state[0] < steps, step, (xp.asarray(0), u))[1]
        return after

    def face(self, u: Array) -> tuple[Flags, Array]:
        """Which unknowns are not held at zero, and their signs."""
        return (u != 0) | ~self.bounded, namespace(u).sign(u)

    def system(self, inside: Flags) -> Array:
        """A for those inside; the others are held at zero."""
        xp = namespace(self.b)
        return xp.where(inside[:, None] & inside, self.A, 0.0) + xp.diag(xp.where(inside, 0.0, 1.0))

    def solved(self, u: Array) -> tuple[Array, Any]:
        """The minimiser of these signs or, where some change on the way, with those held at zero too; and whether it is
        the minimiser of all. It is no higher than u."""
        xp = namespace(u)

        def step(state: tuple[Array, Any]) -> tuple[Array, Any]:
            u, _ = state
            inside, sign = self.face(u)
            v = xp.linalg.solve(self.system(inside), xp.where(inside, self.b - self.l1 * sign, 0.0))
            crosses = self.bounded & (u * v < 0)
            places = xp.where(crosses, u / xp.where(crosses, u - v, 1.0), 1.0)  # of each crossing, on the way to v
            first = xp.min(places)
            short = xp.where(crosses & (places <= first), 0.0, u + first * (v - u))
            return xp.where(xp.any(crosses), short, v), xp.any(crosses)

        u, _ = while_loop(xp, lambda state: state[1], step, (u, xp.asarray(True)))
        slope = self.b - self.A @ u
        rises = xp.where(self.positive, slope, abs(slope)) > self.l1 + self.noise(u)
        return u, ~xp.any(rises & (u == 0) & self.bounded)
