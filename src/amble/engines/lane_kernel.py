"""The hops of many lanes as one kernel on a GPU: each of its programs takes a few lanes through all hops.

The loop of lane_program.py starts some ten kernels per hop, and each reads from memory what the last one wrote. Here a
hop reads the rows that it needs and writes those that it changes, and what programs work on stays in caches. A visit
must be of operations that padded.py knows, on small arrays; other visits stay in the loop.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Tree
from amble.compiling.padded import Refused, evaluate, largest, padded, used
from amble.engines import State

NUMBERS = 1 << 10  # of the largest array that a program may work on: it must fit the registers of one warp
READ_BEST = 1 << 11  # numbers that the lanes of a program read in a hop: fewer or more are slower (on an H200)
LANES = 8  # per program, at most
ENTRIES_MAX = 1 << 31  # of an array: places are numbers of 32 bits


def shape_of(shape: tuple[int, ...], dtype: Any) -> Any:
    """An array's shape and type, without numbers."""
    import jax

    made: Any = jax.ShapeDtypeStruct  # JAX has no types for it
    return made(shape, dtype)


class Traced(NamedTuple):
    """The step of a hop for the lanes of one program, and how many these are."""

    jaxpr: Any
    lanes: int


Step = Callable[..., Tree]  # step(f, agent, slot, token, x_sum, lost, ends, settings, role, penalty, initial, k)


def traced(step: Step, lanes: int, rows: tuple[Tree, ...], same: tuple[Any, ...]) -> Traced | None:
    """The step for as many lanes as one program can take, or None where it must stay in the loop.

    `rows` are the shapes of what each lane has of its own, `same` of what all have in common.
    """
    import jax

    def of(count: int) -> Traced:
        own = jax.tree.map(lambda a: shape_of((count, *a.shape), a.dtype), rows)
        both = jax.vmap(step, (*(0 for _ in rows), *(None for _ in same)))
        closed = jax.make_jaxpr(both)(*own, *same)
        if closed.consts:
            raise Refused("a constant array")
        return Traced(closed.jaxpr, count)

    if any(0 in a.shape for a in jax.tree.leaves((rows, same))):
        return None
    try:
        one = of(1)
        most = largest(one.jaxpr)
        if most > NUMBERS:
            return None
        wanted = used(one.jaxpr)[1].intersection(one.jaxpr.invars)
        read = sum(int(np.prod(padded(variable.aval.shape))) for variable in wanted)
        fitting = min(READ_BEST // read, NUMBERS // most)
        return of(min(lanes, LANES, 1 << max(0, fitting.bit_length() - 1)))
    except Refused:
        return None


def counts(state: State) -> bool:
    """Whether numbers of 32 bits can count the places of a widened state."""
    import jax

    return all(
        np.prod(padded(leaf.shape[-1:])) * np.prod(leaf.shape[:-1]) < ENTRIES_MAX for leaf in jax.tree.leaves(state)
    )


def widened(state: State) -> State:
    """The state with rows of a power of two, so that a kernel reads and writes them whole. What the padding holds is
    arbitrary."""
    return _resized(state, lambda shape: (*shape[:-1], *padded(shape[-1:])), state)


def narrowed(state: State, like: State) -> State:
    """The state without its padding."""
    return _resized(state, lambda shape: shape, like)


def _resized(state: State, sized: Callable[[tuple[int, ...]], tuple[int, ...]], like: State) -> State:
    """Rows have at least one axis besides those that say whose they are: one for each lane, agent and token."""
    import jax

    def tree(array: Any, shape: tuple[int, ...], own: int) -> Any:
        return array if len(shape) <= own else _with_last(array, sized(shape)[-1])

    parts = [
        jax.tree.map(lambda a, b, own=own: tree(a, b.shape, own), one, other)
        for one, other, own in zip(state, like, (2, 3, 2, 1, 1), strict=True)
    ]
    return State(*parts)


def _with_last(array: Any, side: int) -> Any:
    """The array with a last axis of another length."""
    import jax.numpy as jnp

    more = side - array.shape[-1]
    return jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, more)]) if more > 0 else array[..., :side]


def play(
    step: Traced,
    objectives: Tree,
    state: State,
    settings: Tree,
    initial: Any,
    ends: Any,
    columns: tuple[Any, ...],  # agents, tokens and, where tokens meet, roles: one row per hop
    which: tuple[Any, Any],  # each lane's column, and its problem where there are several, or None
    span: Any,  # the rows of the first hop and of the one after the last, and the hop of row 0; 64 bits
    interpreted: bool,
) -> State:
    """The state after the hops of a span, for lanes that have not ended."""
    import jax
    import jax.numpy as jnp
    from jax.experimental import pallas as pl
    from jax.experimental.pallas import triton

    kept = state.agents, state.slots, state.tokens
    leading = 1 if which[1] is None else 2  # axes of a loss that say whose it is

    def whole(leaf: Any) -> Any:
        """A loss with zeros up to powers of two, so that it is read without looking what is padding."""
        more = [(0, 0)] * leading + [
            (0, to - at) for at, to in zip(leaf.shape[leading:], padded(leaf.shape[leading:]), strict=True)
        ]
        return jnp.pad(leaf, more)

    objectives = jax.tree.map(whole, objectives)
    changed = jax.tree.leaves((kept, state.x_sum, state.lost))
    inputs, structure = jax.tree.flatten((objectives, settings, initial, ends, columns, which, span))
    count, B = state.lost.shape[0], step.lanes

    def kernel(*refs: Any) -> None:
        fixed, outputs = refs[: len(inputs)], refs[len(inputs) + len(changed) :]
        objectives, settings, initial, ends, columns, (column, problem), span = jax.tree.unflatten(structure, fixed)
        (agents, slots, tokens), x_sums, losts = jax.tree.unflatten(
            jax.tree.structure((kept, state.x_sum, state.lost)), outputs
        )
        lanes = pl.program_id(0) * B + jnp.arange(B, dtype=jnp.int32)

        def places(ref: Any, before: list[Any]) -> tuple[Any, Any]:
            """Where the rows are whose first places are `before`, one per lane; which entries are not padding."""
            sides = ref.shape[len(before) :]
            shape = (B, *padded(sides)) if before else padded(sides)
            first = [at.reshape((B, *(1 for _ in sides))) for at in before]
            along = [
                jax.lax.broadcasted_iota(jnp.int32, shape, axis + bool(before)) for axis in range(len(sides))
            ]  # fmt: skip
            inside: Any = None
            for place, side in zip(along, sides, strict=True):
                if padded((side,)) != (side,):
                    inside = place < side if inside is None else inside & (place < side)
            return ref.at[(*(jnp.broadcast_to(at, shape) for at in first), *along)], inside

        def load(ref: Any, before: list[Any]) -> Any:
            if not ref.shape[len(before) :] and not before:
                return triton.load(ref.at[()])
            place, inside = places(ref, before)
            return triton.load(place, mask=inside, other=None if inside is None else jnp.zeros((), ref.dtype))

        def rows(tree: Tree, before: list[Any]) -> list[Any]:
            return [load(ref, before) for ref in jax.tree.leaves(tree)]

        own = rows(settings, [lanes])
        until, column_of = load(ends, [lanes]), load(column, [lanes])
        problem_of = [] if problem is None else [load(problem, [lanes])]
        start = load(initial, [])
        begin, stop, offset = (triton.load(span.at[jnp.asarray(n, jnp.int32)]) for n in range(3))
        begin, stop = begin.astype(jnp.int32), stop.astype(jnp.int32)
        variables = step.jaxpr.invars

        def next_of(row: Any) -> list[Any]:
            """Agents, tokens and, where tokens meet, roles: read a hop ahead, so that nothing waits for them."""
            at_row = jnp.full((B,), row, jnp.int32)
            return [load(each, [at_row, column_of]).astype(jnp.int32) for each in columns]

        def hop(row: Any, carried: Any) -> Any:
            x_sum, lost, here = carried
            (i, m, *role), ahead = here, next_of(row + 1)
            k = row.astype(jnp.int64) + offset
            groups = [
                (objectives, [*problem_of, i]),
                (agents, [lanes, i]),
                (slots, [lanes, i, m]),
                (tokens, [lanes, m]),
            ]
            refs = [(ref, before) for tree, before in groups for ref in jax.tree.leaves(tree)]
            arrays = [partial(load, *ref) for ref in refs]  # when they are needed: fewer registers, more warps
            objective_count = len(jax.tree.leaves(objectives))
            results = evaluate(step.jaxpr, [*arrays, x_sum, lost, until, *own, *role, start, k], objective_count)
            if not interpreted:  # no thread may write a row that another has yet to read
                triton.debug_barrier()
            going = k < until
            for n, (ref, before) in enumerate(refs[objective_count:]):
                if step.jaxpr.outvars[n] is variables[objective_count + n]:
                    continue  # it stays as it was
                place, inside = places(ref, before)
                on = jnp.broadcast_to(going.reshape((B, *(1 for _ in ref.shape[len(before) :]))), results[n].shape)
                inside = on if inside is None else inside & on
                store: Any = triton.store
                store(place, results[n], mask=inside)
            if not interpreted:  # what the next hop reads may have been written by another thread of this program
                triton.debug_barrier()
            return results[-2], results[-1], ahead

        first = load(x_sums, [lanes]), load(losts, [lanes]), next_of(begin)
        x_sum, lost, _ = jax.lax.fori_loop(begin, stop, hop, first)
        for ref, array in ((x_sums, x_sum), (losts, lost)):
            place, inside = places(ref, [lanes])
            triton.store(place, array, mask=inside)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    after = pl.pallas_call(
        kernel,
        grid=(count // B,),
        in_specs=[anywhere] * (len(inputs) + len(changed)),
        out_specs=[anywhere] * len(changed),
        out_shape=[shape_of(array.shape, array.dtype) for array in changed],
        input_output_aliases={len(inputs) + n: n for n in range(len(changed))},
        compiler_params=None if interpreted else triton.CompilerParams(num_warps=1),
        interpret=interpreted,
    )(*inputs, *changed)
    (agents, slots, tokens), x_sum, lost = jax.tree.unflatten(
        jax.tree.structure((kept, state.x_sum, state.lost)), after
    )
    return State(agents, slots, tokens, x_sum, lost)
