"""A visit of Relay's full form: the agent's parabola at the token's model, its lift and its guard."""

from typing import Any, NamedTuple

from amble.arrays import Array, Flags, namespace
from amble.losses.objective import Objective, knows, number_of

GUARD, GUARD_MAX = 1e-6, 1e3  # of each unknown's own curvature: the full form's Levenberg term while the token moves
GROWTH, DECAY = 4.0, 2.0  # of the guard: where the token turns back, and where it does not
FIT = 1.25  # a loss up to this many times its parabola is no reason to lift it, once moves halve
LIFT_MAX = 1e6  # times the curvature along the last step: a larger one would be all that is left of the others' gifts
ROUNDING = 1e-12  # of a loss: a smaller difference between two losses says nothing
REACH = 2.0  # of the linear predictor between two visits: exp(2) is the factor by which a curvature may change


class Seen(NamedTuple):
    x: Array  # z at the last visit
    step: Array  # how it had come there from the visit before
    guard: Array
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
    back = (units * step) @ agent.step < 0
    guard = xp.clip(xp.where(back & ~calm, agent.guard * GROWTH, agent.guard / DECAY), GUARD, GUARD_MAX)
    H = lifted(xp, f, x, agent.x, g, H, calm) + xp.diag(guard * moved * units)
    if knows(f, "excess"):
        H = H + moved * number_of(f, "excess", None)(x)
    return Seen(x, step, guard, agent.visits + 1), H @ x - g, H


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
