"""exp without overflow, for the losses whose linear predictor is the logarithm of a mean."""

from amble.arrays import Array, namespace

STRAIGHT_FROM = 300.0  # exp(300) is beyond any target; from there on a straight line, so that squares do not overflow


def growth(u: Array) -> Array:
    """exp(u), and the same number from STRAIGHT_FROM on."""
    xp = namespace(u)
    return xp.exp(xp.minimum(u, STRAIGHT_FROM))


def excess(u: Array) -> Array:
    """exp(u) - 1 - u, to rounding near zero too; convex with the slope growth(u) - 1 everywhere."""
    xp = namespace(u)
    low = xp.minimum(u, STRAIGHT_FROM)
    return xp.expm1(low) + xp.exp(low) * (u - low) - u
