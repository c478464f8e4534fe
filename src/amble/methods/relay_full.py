"""A visit of Relay's full form: the agent's parabola at the token's model, its lift and its guard."""

from typing import Any, NamedTuple

from amble.arrays import Array, Flags, namespace
from amble.losses.objective import Objective, knows, number_of
from amble.methods.optional import Gifts

GIFTS = Gifts(most=3, looks=1.7)  # in a visit, and on average over random problems until 1e-6 (benchmarks/convex.py)
MISS = 0.1  # of a parabola's change of slope: so much it may be off where it has led to
GUARD, GUARD_MAX = 1e-6, 1e3  # of each unknown's own curvature: the full form's Levenberg term while the token moves
GROWTH, DECAY = 4.0, 2.0  # of the guard: where the token turns back, and where it does not
FIT = 1.25  # a loss up to this many times its parabola is no reason to lift it, once moves halve
REST = 1e-9  # of the model: a shorter step is rounding, and says nothing about turning back
LIFT_MAX = 1e6  # times the curvature along the last step: a larger one would be all that is left of the others' gifts
ROUNDING = 1e-12  # of a loss: a smaller difference between two losses says nothing
REACH = 2.0  # of the linear predictor between two visits: exp(2) is the factor by which a curvature may change


class Seen(NamedTuple):
    x: Array  # where the last gift was made
    step: Array  # how it had come there from the visit before
    guard: Array
    damping: Array  # what the guard adds to the diagonal of the last gift's w
    visits: Array


def full(f: Objective, agent: Seen, z: Array) -> tuple[Seen, Array, Array]:
    xp = namespace(z)
    if number_of(f, "quadratic", False):  # H z - grad f(z) is then the same at every z; at zero it has no rounding
        return agent._replace(x=z), -f.grad(0 * z), f.hessian(z)
    x = within_reach(xp, f, agent.x, z)
    g, H = f.grad(x), f.hessian(x)
    units = xp.diagonal(H)  # each unknown counts by its own curvature
    step = z - agent.x

    def length(d: Array) -> Array:
        return xp.sqrt(units @ (d * d))

    moved = xp.where(agent.visits == 0, 1.0, xp.minimum(1.0, length(step) / xp.maximum(length(z), 1e-300)))
    calm = (agent.visits > 1) & (length(step) < length(agent.step) / 2)
    still = length(step) <= REST * length(z)  # then its direction is rounding
    back = ((units * step) @ agent.step < 0) & ~still
    guard = xp.clip(xp.where(back & ~calm, agent.guard * GROWTH, agent.guard / DECAY), GUARD, GUARD_MAX)
    damping = guard * moved * units
    H = lifted(xp, f, x, agent.x, g, H, calm) + xp.diag(damping)
    if knows(f, "excess"):
        H = H + moved * number_of(f, "excess", None)(x)
    H = (H + H.T) / 2  # to the last digit: a message has its upper half
    return Seen(x, step, guard, damping, agent.visits + 1), H @ x - g, H


def lifted(xp: Any, f: Objective, x: Array, last: Array, g: Array, H: Array, calm: Flags) -> Array:
    """H, made steeper along the last step where the loss at its beginning lies above the parabola at its end."""
    d = last - x
    along = xp.diagonal(H) * d
    parabola, high, low = d @ H @ d / 2, f.value(last), f.value(x)
    loss = high - low - g @ d
    slack = ROUNDING * (xp.abs(high) + xp.abs(low))
    above = (parabola > 0) & (loss > xp.where(calm, FIT, 1.0) * parabola + slack)
    lift = xp.where(above, xp.minimum(loss, LIFT_MAX * parabola) - parabola, 0.0)
    return H + 2 * lift / xp.where(above, d @ along, 1.0) ** 2 * (along[:, None] * along)


def within_reach(xp: Any, f: Objective, last: Array, z: Array) -> Array:
    """z or, where a loss would bend there quite differently from at the last visit, the part of the way to it."""
    length = number_of(f, "reach", None) or number_of(f, "stride", None)
    if length is None:
        return z
    reach = length(z - last)
    return xp.where(reach <= REACH, z, last + REACH / xp.maximum(reach, REACH) * (z - last))


class Look(NamedTuple):
    """Where the agent's gift has led the model to."""

    x: Array
    g: Array  # the slope of its loss there
    misses: Flags  # whether its parabola has another slope there: then it gives again
    by: Array  # how far off that slope is, as a share of its change on the way


def look(f: Objective, agent: Seen, v: Array, w: Array, z: Array, miss: float = MISS) -> Look:
    xp = namespace(z)
    x = within_reach(xp, f, agent.x, z)
    g, units = f.grad(x), xp.diagonal(w) - agent.damping
    inverse = xp.where(units > 0, 1 / xp.where(units > 0, units, 1.0), 0.0)

    def length(slope: Array) -> Array:
        return xp.sqrt(inverse @ (slope * slope))

    bent = bending(agent, w, x - agent.x)
    off, change = length(g - (w @ agent.x - v) - bent), length(bent)
    further = (x != z).any()  # the model is out of reach, and this a point on the way to it
    misses = ~(off <= miss * change + ROUNDING * length(v)) | further  # also where it is no number
    return Look(x, g, misses, off / xp.maximum(change, 1e-300))


def bending(agent: Seen, w: Array, d: Array) -> Array:
    """How the agent's parabola changes its slope along d: without its damping, which is not to fit its loss."""
    return w @ d - agent.damping * d


def again(agent: Seen, v: Array, w: Array, look: Look) -> tuple[Seen, Array, Array]:
    """A parabola with the slope there, and with the same change of slope as the loss on the way (BFGS)."""
    xp = namespace(v)
    step = look.x - agent.x
    old, new = bending(agent, w, step), look.g - (w @ agent.x - v)
    bent, bends = step @ old, step @ new
    convex = (bent > 0) & (bends > ROUNDING * bent)
    bent, bends = xp.where(convex, bent, 1.0), xp.where(convex, bends, 1.0)
    w = xp.where(convex, w - old[:, None] * old / bent + new[:, None] * new / bends, w)
    return agent._replace(x=look.x, step=agent.step + step), w @ look.x - look.g, w
