"""A loop of small operations as one kernel.

On a CPU, XLA calls a kernel for each operation of a loop's body, at about 50 ns a call: ten times what the arithmetic
of a visit takes. XLA compiles a call that carries two marks as one function instead. It does so by itself for loops
that touch less than 1 kB per pass, such as that of the schedule for few tokens.
"""

from collections.abc import Callable
from typing import Any

from amble.arrays import Tree

MARKS = {"inlineable": "false", "xla_cpu_small_call": "true"}
# of JAX's operations, those that XLA can compile without calling a library
SIMPLE = {
    "abs", "add", "and", "broadcast_in_dim", "concatenate", "cond", "convert_element_type", "custom_jvp_call",
    "div", "dot_general", "dynamic_slice", "dynamic_update_slice", "eq", "exp", "expm1", "gather", "ge", "gt",
    "integer_pow", "iota", "jit", "le", "log", "log1p", "lt", "max", "min", "mul", "ne", "neg", "not", "or",
    "pad", "pjit", "platform_index", "reduce_max", "reduce_min", "reduce_sum", "rem", "reshape", "scan",
    "select_n", "slice", "sqrt", "squeeze", "stop_gradient", "sub", "tanh", "transpose", "while",
}  # fmt: skip


def is_simple(function: Callable[..., Tree], *arguments: Tree) -> bool:
    """Whether a function is faster inside one kernel: small operations only, and none that calls a library."""
    import jax

    return jax.default_backend() == "cpu" and all(
        equation.primitive.name in SIMPLE and not multiplies_matrices(equation)
        for equation in equations(jax.make_jaxpr(function)(*arguments).jaxpr)
    )


def equations(jaxpr: Any) -> list[Any]:
    """All operations of a traced function, those of its loops and branches too."""
    every = list(jaxpr.eqns)
    for equation in jaxpr.eqns:
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                if hasattr(inner, "eqns"):  # by what it has: to import the types takes as long as to compile a program
                    every += equations(inner)
    return every


def multiplies_matrices(equation: Any) -> bool:
    """A product of two matrices is faster by a library, unlike one with a vector."""
    if equation.primitive.name != "dot_general":
        return False
    (contracted, _), (batched, _) = equation.params["dimension_numbers"]
    left, right = (variable.aval.ndim for variable in equation.invars)
    return bool(min(left, right) > len(contracted) + len(batched))


def one_kernel(loop: Callable[[Tree, Tree], Tree], state: Tree, fixed: Tree) -> tuple[Tree, Any]:
    """loop(state, fixed) as one kernel, inside a function that is being compiled. A state comes back, changed in place.

    With it comes a number that the caller must return too: it is computed from everything in `fixed`. XLA ends the
    process, by a failed check, where a marked call has an argument without use. So empty arrays stay outside, too.
    """
    import jax
    from jax.experimental import xla_metadata

    mark: Any = xla_metadata.set_xla_metadata  # JAX has no types for it
    state, fixed = jax.tree.map(jax.numpy.asarray, (state, fixed))

    def sized(tree: Tree) -> list[Any]:
        return [a for a in jax.tree.leaves(tree) if a.size]

    def filled(like: Tree, arrays: list[Any]) -> Tree:
        rest = iter(arrays)
        return jax.tree.map(lambda a: next(rest) if a.size else jax.numpy.zeros_like(a), like)

    def first(a: Any) -> Any:
        corner = jax.lax.slice(a, (0,) * a.ndim, (1,) * a.ndim)
        return jax.lax.squeeze(corner, range(a.ndim)).astype(float)

    def used(changed: list[Any], kept: list[Any]) -> tuple[list[Any], Any]:
        return sized(loop(filled(state, changed), filled(fixed, kept))), sum(map(first, kept))

    results = jax.jit(used)(sized(state), sized(fixed))
    arrays, number = jax.tree.map(lambda a: mark(a, **MARKS), results)
    return filled(state, arrays), number
