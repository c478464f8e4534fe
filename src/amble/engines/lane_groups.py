"""A hop of many lanes, sorted by the agent that each one visits: lanes at one agent read its loss once.

A visit of an agent with a large loss mostly reads that loss: 512 kB for the eigenvectors of 256 unknowns. Blocks of
lanes at the same agent share the read, and a product of its matrix with a vector becomes one with a matrix.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Tree
from amble.engines import State

LOSS_BYTES_LEAST = 1 << 15  # of an agent: smaller losses stay in caches
BLOCKS_PER_LOSS = 8  # about, so that few lanes of a block are empty


class Groups(NamedTuple):
    """The lanes in blocks, each at one agent."""

    lane: Any  # (blocks, B): which lane, or the number of lanes where the block has an empty place
    loss: tuple[Any, ...]  # (blocks,): of which agent and, where there are several, of which problem first


def pays(loss: Tree) -> bool:
    """Whether an agent's loss, of these shapes, is so large that lanes at one agent should read it together."""
    import jax

    held = sum(leaf.dtype.itemsize * int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(loss))
    return bool(held >= LOSS_BYTES_LEAST)


def grouped(agent: Any, problem: Any, agents: int, problems: int) -> Groups:
    """Blocks of the lanes by the loss that each one reads; `problem` is None where there is one for all."""
    import jax.numpy as jnp

    count, losses = agent.shape[0], agents * problems
    key = agent if problem is None else agent + agents * problem
    B = 1 << (max(1, count // (BLOCKS_PER_LOSS * losses)).bit_length() - 1)
    blocks = -(-count // B) + losses
    order = jnp.argsort(key).astype(np.int32)
    sizes = jnp.zeros(losses, np.int32).at[key].add(1)
    filled = -(-sizes // B)
    ends = jnp.cumsum(filled)  # of the blocks of each loss
    place = (ends - filled)[key[order]] * B + jnp.arange(count) - (jnp.cumsum(sizes) - sizes)[key[order]]
    lane = jnp.full(blocks * B, count, np.int32).at[place].set(order, unique_indices=True).reshape(blocks, B)
    loss = jnp.minimum(jnp.searchsorted(ends, jnp.arange(blocks), side="right"), losses - 1)
    return Groups(lane, (loss,) if problem is None else (loss // agents, loss % agents))


def put_by_xla(tree: Tree, places: tuple[Any, ...], rows: Tree) -> Tree:
    """The arrays with rows at their places; those whose first place is beyond the array are dropped."""
    import jax

    return jax.tree.map(lambda a, b: a.at[places].set(b, mode="drop"), tree, rows)


def hop(
    visited: Callable[..., Any],
    groups: Groups,
    objectives: Tree,
    state: State,
    settings: Tree,
    ends: Any,
    here: list[Any],  # each lane's agent, token and, where tokens meet, role
    initial: Any,
    k: Any,
    put: Callable[[Tree, Any, Tree], Tree],
) -> State:
    """The state after hop k of all lanes that have not ended."""
    import jax

    def take(tree: Tree, at: Any) -> Tree:
        return jax.tree.map(lambda a: a.at[at].get(mode="clip"), tree)

    count, lane = ends.shape[0], groups.lane
    i, m, *role = take(here, lane)
    f = take(objectives, groups.loss)
    rows = take(state.agents, (lane, i)), take(state.slots, (lane, i, m)), take(state.tokens, (lane, m))
    own = take((state.x_sum, state.lost, ends, settings), lane)
    each = (*rows, *own, role[0] if role else None)

    def block(f: Tree, *each: Any) -> Any:
        return jax.vmap(lambda *own: visited(f, *own, None, initial, k))(*each)

    agent, slot, token, x_sum, lost = jax.vmap(block)(f, *each)
    going = jax.numpy.where(own[2] > k, lane, count)  # writes of other lanes fall outside, and are dropped
    return State(
        put(state.agents, (going, i), agent),
        put(state.slots, (going, i, m), slot),
        put(state.tokens, (going, m), token),
        put(state.x_sum, (going,), x_sum),
        put(state.lost, (going,), lost),
    )
