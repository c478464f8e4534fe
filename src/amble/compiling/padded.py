"""A traced function on arrays whose sides are powers of two: what a GPU kernel of Triton computes with.

Every array is padded at the ends of its axes. What is in the padding is arbitrary, and nothing reads it: sums, products
and extremes over an axis leave it out. An argument may be said to have zeros there, which makes products with it
cheaper. A function of other operations than these is refused, before anything is computed.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from amble.arrays import Array

ELEMENTWISE = {
    "abs", "add", "and", "convert_element_type", "div", "eq", "exp", "ge", "gt", "le", "lt", "max", "min", "mul", "ne",
    "neg", "not", "or", "select_n", "sqrt", "stop_gradient", "sub",
}  # fmt: skip
NEUTRAL = {"reduce_sum": 0.0, "reduce_max": -np.inf, "reduce_min": np.inf}
INLINED = {"jit": "jaxpr", "pjit": "jaxpr", "custom_jvp_call": "call_jaxpr"}


class Refused(Exception):
    """An operation that is not written for padded arrays."""


def padded(shape: Sequence[int]) -> tuple[int, ...]:
    """Each side's next power of two."""
    return tuple(1 << (side - 1).bit_length() for side in shape)


def used(jaxpr: Any) -> tuple[list[Any], set[Any]]:
    """The operations that the results need, and all that they read."""
    wanted = {variable for variable in jaxpr.outvars if _is_variable(variable)}
    needed = []
    for equation in reversed(jaxpr.eqns):
        if wanted.intersection(equation.outvars):
            needed.append(equation)
            wanted |= {variable for variable in equation.invars if _is_variable(variable)}
    return needed[::-1], wanted


def largest(jaxpr: Any) -> int:
    """How many numbers the largest padded array of a function has. Refused: what evaluate cannot compute."""
    most = 1
    for equation in used(jaxpr)[0]:
        name = equation.primitive.name
        if name in INLINED:
            most = max(most, largest(_inner(equation).jaxpr))
            continue
        if name not in ELEMENTWISE and name not in RULES:
            raise Refused(name)
        if name == "select_n" and equation.invars[0].aval.dtype != bool:
            raise Refused("a choice by a number")
        if name in ("slice", *NEUTRAL) and not np.issubdtype(equation.invars[0].aval.dtype, np.floating):
            raise Refused("a sum of whole numbers")
        if name in RULES:
            RULES[name](equation, None)
        shapes = [variable.aval.shape for variable in (*equation.invars, *equation.outvars)]
        if name == "dot_general":
            shapes.append(_product(equation)[0])
        if any(0 in shape for shape in shapes):
            raise Refused("an array without numbers")
        most = max(most, *(int(np.prod(padded(shape))) for shape in shapes))
    return most


def evaluate(jaxpr: Any, arguments: Sequence[Array | Callable[[], Array]], zeros: int = 0) -> list[Array]:
    """The results for padded arguments, or functions that load them when they are needed. The first `zeros` have zeros
    as padding."""
    clean = set(jaxpr.invars[:zeros])
    values: dict[Any, Any] = dict(zip(jaxpr.invars, arguments, strict=True))

    def value(variable: Any) -> Any:
        if not _is_variable(variable):
            return _constant(variable)
        if callable(values[variable]):
            values[variable] = values[variable]()
        return values[variable]

    for equation in used(jaxpr)[0]:
        operands = [value(variable) for variable in equation.invars]
        name = equation.primitive.name
        if name in INLINED:
            values |= zip(equation.outvars, evaluate(_inner(equation).jaxpr, operands), strict=True)
        elif name == "dot_general":
            flags = [_is_variable(variable) and variable in clean for variable in equation.invars]
            values[equation.outvars[0]] = _dot(equation, operands, flags)
        elif name == "div" and _divides_by_number(equation):  # a product is much faster
            values[equation.outvars[0]] = operands[0] * _constant(equation.invars[1], invert=True)
        elif name in ELEMENTWISE:
            values[equation.outvars[0]] = equation.primitive.bind(*operands, **equation.params)
        else:
            values[equation.outvars[0]] = RULES[name](equation, operands)
    return [value(variable) for variable in jaxpr.outvars]


def _divides_by_number(equation: Any) -> bool:
    divisor = equation.invars[1]
    return not _is_variable(divisor) and bool(np.issubdtype(divisor.aval.dtype, np.floating)) and bool(divisor.val != 0)


def _is_variable(variable: Any) -> bool:
    return not hasattr(variable, "val")


def _constant(literal: Any, invert: bool = False) -> Any:
    import jax.numpy as jnp

    return jnp.asarray(1 / literal.val if invert else literal.val, literal.aval.dtype)


def _inner(equation: Any) -> Any:
    inner = equation.params[INLINED[equation.primitive.name]]
    if any(np.ndim(constant) for constant in inner.consts) or inner.consts:
        raise Refused("a constant array")
    return inner


# Each rule takes an equation and its padded operands, or None: then it only refuses what it cannot compute.
Rule = Callable[[Any, Any], Any]


def _broadcast(equation: Any, operands: Any) -> Any:
    import jax

    if operands is not None:
        shape, axes = padded(equation.params["shape"]), equation.params["broadcast_dimensions"]
        return jax.lax.broadcast_in_dim(operands[0], shape, axes)
    return None


def _reshape(equation: Any, operands: Any) -> Any:
    """Sides of length one come or go."""
    before, after = (variable.aval.shape for variable in (equation.invars[0], equation.outvars[0]))
    if [side for side in before if side > 1] != [side for side in after if side > 1]:
        raise Refused(equation.primitive.name)
    return None if operands is None else operands[0].reshape(padded(after))


def _iota(equation: Any, operands: Any) -> Any:
    import jax

    if operands is not None:
        shape, axis = padded(equation.params["shape"]), equation.params["dimension"]
        return jax.lax.broadcasted_iota(equation.params["dtype"], shape, axis)
    return None


def _slice(equation: Any, operands: Any) -> Any:
    """One entry of an axis, or all."""
    import jax.numpy as jnp

    shape, begin = equation.invars[0].aval.shape, equation.params["start_indices"]
    sides = equation.outvars[0].aval.shape
    chosen = [axis for axis in range(len(shape)) if sides[axis] != shape[axis]]
    if any(sides[axis] != 1 for axis in chosen):
        raise Refused("slice")
    if operands is None:
        return None
    array = operands[0]
    for axis in chosen:
        here = _along(array.shape, axis) == begin[axis]
        array = jnp.sum(jnp.where(here, array, jnp.zeros((), array.dtype)), axis=axis, keepdims=True)
    return array


def _reduce(equation: Any, operands: Any) -> Any:
    if operands is None:
        return None
    shape, axes = equation.invars[0].aval.shape, equation.params["axes"]
    array = _masked(operands[0], shape, axes, NEUTRAL[equation.primitive.name])
    for axis in sorted(axes, reverse=True):  # Triton reduces one axis at a time
        array = equation.primitive.bind(array, **(equation.params | {"axes": (axis,)}))
    return array


def _dot(equation: Any, operands: Any, clean: Sequence[bool] = (False, False)) -> Any:
    """The product of an array with one that has some of its axes: of a matrix and a vector, or of two vectors."""
    import jax.numpy as jnp

    shape, places, summed = _product(equation)
    if operands is None:
        return None
    whole = int(len(places[1]) > len(places[0]))
    product: Any = None
    for n, (array, axes) in enumerate(zip(operands, places, strict=True)):
        if clean[whole] and n != whole:  # what is not a number times zero would not be zero
            own = [axes.index(axis) for axis in summed]
            array = _masked(array, equation.invars[n].aval.shape, own, 0.0)
        sides = [array.shape[axes.index(axis)] if axis in axes else 1 for axis in range(len(shape))]
        factor = array.reshape(sides)
        product = factor if product is None else product * factor
    product = jnp.broadcast_to(product, padded(shape))
    if not clean[whole]:
        product = _masked(product, shape, summed, 0.0)
    for axis in sorted(summed, reverse=True):
        product = jnp.sum(product, axis=axis)
    return product


def _product(equation: Any) -> tuple[tuple[int, ...], list[list[int]], list[int]]:
    """The shape of the terms of a product before they are summed, which of its axes those of each operand are, and
    which are summed. They are the axes of the operand that has them all."""
    (contracted, batched), avals = equation.params["dimension_numbers"], [v.aval for v in equation.invars]
    whole = int(avals[1].ndim > avals[0].ndim)
    part = 1 - whole
    places: list[list[int]] = [[], []]
    places[whole] = list(range(avals[whole].ndim))
    pairs = dict(zip(contracted[part], contracted[whole], strict=True))
    pairs |= dict(zip(batched[part], batched[whole], strict=True))
    if len(pairs) != avals[part].ndim:
        raise Refused("a product of two matrices")
    places[part] = [pairs[axis] for axis in range(avals[part].ndim)]
    summed = list(contracted[whole])
    left = [axis for axis in places[whole] if axis not in summed]
    if places[part] != sorted(places[part]) or left[: len(batched[whole])] != list(batched[whole]):
        raise Refused("a product that turns its axes")
    return avals[whole].shape, places, summed


def _masked(array: Any, shape: Sequence[int], axes: Sequence[int], neutral: float) -> Any:
    """The array with a neutral number in the padding of these axes."""
    import jax.numpy as jnp

    for axis in axes:
        if array.shape[axis] != shape[axis]:
            array = jnp.where(_along(array.shape, axis) < shape[axis], array, jnp.asarray(neutral, array.dtype))
    return array


def _along(shape: Sequence[int], axis: int) -> Any:
    import jax

    return jax.lax.broadcasted_iota(np.int32, shape, axis)


RULES: dict[str, Rule] = {
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "iota": _iota,
    "slice": _slice,
    "dot_general": _dot,
    **dict.fromkeys(NEUTRAL, _reduce),
}
