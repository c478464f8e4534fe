"""A hop of many lanes, sorted by the agent that each one visits: lanes at one agent read its loss once.

A visit of an agent with a large loss mostly reads that loss: 512 kB for the eigenvectors of 256 unknowns. Blocks of
lanes at the same agent share the read, and a product of its matrix with a vector becomes one with a matrix.
Where tokens meet, lanes whose token does not visit need no loss and few rows: they are sorted out, role by role.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Tree
from amble.engines import State

LOSS_BYTES_LEAST = 1 << 15  # of an agent: smaller losses stay in caches
BLOCKS_PER_LOSS = 8  # about, so that few lanes of a block are empty
BLOCKS_OF_OTHERS = 64  # of lanes that need no loss


class Part(NamedTuple):
    """Lanes that do the same in a hop, in blocks."""

    lane: Any  # (blocks, B): which lane, or the number of lanes where the block has an empty place
    loss: tuple[Any, ...] | None  # (blocks,): of which agent and, where there are several, of which problem first;
    # None where nothing needs it


def pays(loss: Tree) -> bool:
    """Whether an agent's loss, of these shapes, is so large that lanes at one agent should read it together."""
    import jax

    held = sum(leaf.dtype.itemsize * int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(loss))
    return bool(held >= LOSS_BYTES_LEAST)


def visiting(agent: Any, problem: Any, agents: int, problems: int, visits: Any = None) -> Part:
    """Blocks of the lanes by the loss that each one reads; `problem` is None where there is one for all, and `visits`
    where all lanes visit."""
    import jax.numpy as jnp

    count, losses = agent.shape[0], agents * problems
    key = agent if problem is None else agent + agents * problem
    key = key if visits is None else jnp.where(visits, key, losses)  # the others come last
    B = 1 << (max(1, count // (BLOCKS_PER_LOSS * losses)).bit_length() - 1)
    blocks = -(-count // B) + losses
    order = jnp.argsort(key).astype(np.int32)
    sizes = jnp.zeros(losses, np.int32).at[key].add(1, mode="drop")
    filled = -(-sizes // B)
    ends = jnp.cumsum(filled)  # of the blocks of each loss
    sought = jnp.minimum(key[order], losses - 1)
    at = jnp.arange(count)
    place = (ends - filled)[sought] * B + at - (jnp.cumsum(sizes) - sizes)[sought]
    place = jnp.where(key[order] < losses, place, blocks * B + at)  # the others are dropped
    lane = jnp.full(blocks * B, count, np.int32).at[place].set(order, mode="drop", unique_indices=True)
    loss = jnp.minimum(jnp.searchsorted(ends, jnp.arange(blocks), side="right"), losses - 1)
    of = (loss,) if problem is None else (loss // agents, loss % agents)
    return Part(lane.reshape(blocks, B), of)


def doing(these: Any) -> Part:
    """The lanes for which it holds, in blocks, for what needs no loss. They come first: among the others, which neither
    read nor write, their rows would be slower to get."""
    import jax.numpy as jnp

    count = these.shape[0]
    B = max(1, count // BLOCKS_OF_OTHERS)
    room = count + -count % B
    place = jnp.where(these, jnp.cumsum(these) - 1, room + jnp.arange(count))  # the others are dropped
    own = jnp.arange(count, dtype=np.int32)
    lane = jnp.full(room, count, np.int32).at[place].set(own, mode="drop", unique_indices=True)
    return Part(lane.reshape(-1, B), None)


def changes(step: Callable[..., Any], rows: tuple[Tree, ...], same: tuple[Any, ...]) -> list[bool]:
    """Which of the arrays that a step returns may differ from those that it was given; `rows` are the shapes of what a
    lane has of its own, the loss first, and `same` of what all have in common."""
    import jax

    jaxpr = jax.make_jaxpr(step)(*rows, *same).jaxpr
    of_loss = len(jax.tree.leaves(rows[0]))
    return [out is not jaxpr.invars[of_loss + n] for n, out in enumerate(jaxpr.outvars)]


def put_by_xla(tree: Tree, places: tuple[Any, ...], rows: Tree) -> Tree:
    """The arrays with rows at their places; those whose first place is beyond the array are dropped."""
    import jax

    return jax.tree.map(lambda a, b: a.at[places].set(b, mode="drop"), tree, rows)


def hop(
    step: Callable[..., Any],
    changed: list[bool],
    part: Part,
    objectives: Tree,
    state: State,
    settings: Tree,
    ends: Any,
    here: tuple[Any, Any],  # each lane's agent and token
    initial: Any,
    k: Any,
    put: Callable[[Tree, Any, Tree], Tree],
) -> State:
    """The state after hop k of the lanes of one part that have not ended. What does not change is not written, and
    what nothing needs is not read."""
    import jax

    lane = part.lane
    f = None if part.loss is None else _take(objectives, part.loss)
    i, m = _take(here, lane)
    places = (lane, i), (lane, i, m), (lane, m), (lane,), (lane,)
    rows = [_take(tree, at) for tree, at in zip(state, places, strict=True)]
    each = (*rows, _take(ends, lane), _take(settings, lane))

    def block(f: Tree, *each: Any) -> Any:
        return jax.vmap(lambda *own: step(f, *own, initial, k))(*each)

    results = iter(zip(jax.tree.leaves(jax.vmap(block)(f, *each)), changed, strict=True))
    going = jax.numpy.where(each[5] > k, lane, ends.shape[0])  # writes of other lanes fall outside, and are dropped

    def written(tree: Tree, at: tuple[Any, ...]) -> Tree:
        arrays, structure = jax.tree.flatten(tree)
        pairs = [(array, *next(results)) for array in arrays]
        return jax.tree.unflatten(structure, [put(old, at, new) if other else old for old, new, other in pairs])

    return State(*(written(tree, (going, *at[1:])) for tree, at in zip(state, places, strict=True)))


def _take(tree: Tree, at: Any) -> Tree:
    import jax

    return jax.tree.map(lambda a: a.at[at].get(mode="clip"), tree)
