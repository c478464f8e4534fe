"""A visit of Relay's scalar form, and of its inexact one: a prox or nearly one, with a dual and a penalty beta."""

from typing import Any, NamedTuple

from amble.arrays import Array, namespace, norm
from amble.losses import newton
from amble.losses.objective import Objective, knows

RELAXED = 1.8  # of the way to the token's model, in the inexact form; 1 is the scalar form's, 2 the limit
FIRST_STEPS, FIRST_PRODUCTS, PRODUCTS = 4, 8, 6  # Newton steps of a first gift, and products with the Hessian in each
BALANCE, FACTOR = 3.0, 1.5  # residual balancing: beyond this ratio of the residuals, beta by this factor
BETA_RANGE = 1e3  # beta stays within this factor of the curvature, either way
FROZEN = 1e-9  # relative residual below which beta stays: what is left of the residuals is rounding


class Dual(NamedTuple):
    x: Array
    y: Array
    beta: Array
    z: Array  # at the last visit
    visits: Array


def scalar(f: Objective, agent: Dual, z: Array) -> tuple[Dual, Array, Array]:
    xp = namespace(z)
    _, y, beta, z_last, visits = agent
    x = f.prox(z + y / beta, beta, agent.x)
    empty = (visits == 0) & (norm(z - z_last) == 0)  # the token still represents the initial model
    y = xp.where(empty, y, y + beta * (z - x))
    r, s = norm(x - z), norm(z - z_last)
    balanced = (visits > 0) & (xp.maximum(r, s) > FROZEN * norm(z))
    beta = xp.where(balanced, adapted(xp, f, beta, r, s), beta)
    return Dual(x, y, beta, z, visits + 1), beta * x - y, beta


def adapted(xp: Any, f: Objective, beta: Array, r: Array, s: Array) -> Array:
    """beta after residual balancing."""
    beta = xp.where(r > BALANCE * s, beta * FACTOR, xp.where(s > BALANCE * r, beta / FACTOR, beta))
    return xp.clip(beta, f.curvature / BETA_RANGE, f.curvature * BETA_RANGE)


def inexact(f: Any, agent: Dual, z: Array) -> tuple[Dual, Array, Array]:
    xp = namespace(z)
    x, y, beta, z_last, visits = agent
    first = visits == 0  # then x is the start
    c = xp.where(first, x, x + RELAXED * (z - x) + y / beta)
    steps, products = xp.where(first, FIRST_STEPS, 1), xp.where(first, FIRST_PRODUCTS, PRODUCTS)
    closed = not knows(f, "hessian_times")  # as of least squares: then the prox is as cheap
    x = f.prox(c, beta, x) if closed else newton.approach(f, c, beta, x, steps, products)
    y = xp.where(first, y, f.grad(x))
    r, s = norm(x - z), norm(z - z_last)
    balanced = (visits > 1) & (xp.maximum(r, s) > FROZEN * norm(z))
    beta = xp.where(balanced, adapted(xp, f, beta, r, s), beta)
    return Dual(x, y, beta, xp.where(first, agent.x, z), visits + 1), beta * x - y, beta
