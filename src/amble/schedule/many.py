"""Schedules of many runs at once: the loop of schedule.py over lanes, one per schedule.

A lane takes the arrivals that it would take alone, in the same order and with the same numbers. The lanes of a batch
stop together, when each has all that it needs; what a lane has beyond that is cut off, as a longer schedule only ever
adds to a shorter one.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array
from amble.errors import need
from amble.networks.errands import Errands
from amble.networks.walks import Walk
from amble.schedule.schedule import HOPS_MAX, Schedule, Travel, arrive, check_clock, never_reached

LANES = 128  # schedules per call of the compiled loop: more make it no faster (measured on one core), and take memory
BLOCK_LEAST, BLOCK, BLOCK_MOST = 1 << 9, 1 << 11, 1 << 14  # arrivals per call; the second where hops are no limit


class Trip(NamedTuple):
    """What a schedule follows from, besides the limits."""

    walk: Walk | Errands
    tokens: int
    compute_s: Array
    link: Array  # of timing.link
    seed: int

    @property
    def shape(self) -> tuple[Any, ...]:
        """Trips of one shape can be lanes of one loop; tables that differ in length are padded."""
        return type(self.walk), self.tokens, len(self.compute_s), len(self.walk[0]) if self.tokens else 0


def plan_many(
    trips: Sequence[Trip], hops: int | None = None, time_s: float | None = None, comm_units: int | None = None
) -> list[Schedule]:
    """The schedule of each trip up to the first of `hops`, `time_s` and `comm_units`, as `plan_hops` makes it."""
    for trip in trips:
        check_clock(len(trip.compute_s), trip.link, trip.compute_s, hops, time_s, comm_units)
    made: dict[int, Schedule] = {}
    shapes: dict[Any, list[int]] = {}
    for k, trip in enumerate(trips):
        shapes.setdefault(trip.shape, []).append(k)
    for group in shapes.values():
        for begin in range(0, len(group), LANES):
            some = group[begin : begin + LANES]
            made |= zip(some, _batch([trips[k] for k in some], hops, time_s, comm_units), strict=True)
    return [made[k] for k in range(len(trips))]


def _batch(trips: Sequence[Trip], hops: int | None, time_s: float | None, comm_units: int | None) -> list[Schedule]:
    jax = need("jax", "sim")
    tokens, wanted = trips[0].tokens, HOPS_MAX if hops is None else hops
    lanes = 1 << (len(trips) - 1).bit_length()  # few sizes, so that few loops are compiled
    padded = [*trips, *[trips[0]] * (lanes - len(trips))]
    length = BLOCK if hops is None else min(BLOCK_MOST, max(BLOCK_LEAST, 1 << (wanted + tokens - 1).bit_length()))
    with jax.enable_x64(True):
        begun = [trip.walk.begin(np) for trip in padded]
        state = Travel(
            arrival_s=np.zeros((lanes, tokens)),
            agent=np.stack([agent for agent, _ in begun]),
            hop=np.zeros((lanes, tokens), np.uint64),
            moved=np.zeros((lanes, tokens), bool),
            memory=np.stack([memory for _, memory in begun]),
            free_s=np.zeros((lanes, len(trips[0].compute_s))),
        )
        same = (
            type(trips[0].walk)(*(_stacked(tables) for tables in zip(*(trip.walk for trip in padded), strict=True))),
            np.stack([trip.compute_s for trip in padded]),
            np.stack([trip.link for trip in padded]),
            np.array([trip.seed for trip in padded], np.uint64),
        )
        state, same = jax.device_put((state, same))
        blocks: list[Any] = []
        done, crossed = 0, np.zeros(lanes, int)
        while done < wanted + tokens:
            state, block = _blocks()(length, *same, state)
            blocks.append(tuple(map(np.asarray, block)))
            done += length
            crossed += blocks[-1][3].sum(axis=0)
            enough = np.zeros(lanes, bool)
            if time_s is not None:
                enough |= np.asarray(state.arrival_s).min(axis=1) > time_s
            if comm_units is not None:
                enough |= crossed > comm_units + tokens
            if enough.all():
                break
        else:
            if hops is None:
                late = int(np.argmin(enough))
                raise never_reached(float(np.asarray(state.arrival_s)[late].min()), int(crossed[late]))
    columns = [np.concatenate(column).T for column in zip(*blocks, strict=True)]
    order = np.argsort(columns[0], axis=1, kind="stable")[:, :wanted]
    columns = [np.take_along_axis(column, order, axis=1) for column in columns]
    return [
        Schedule(*(column[k] for column in columns)).within(time_s, comm_units) for k in range(len(trips))
    ]  # fmt: skip


def _stacked(tables: Sequence[Any]) -> Any:
    """Tables of one kind with a first axis for lanes; a walk never reads beyond its own end."""
    length = max(table.shape[-1] for table in tables)
    pads = [[(0, 0)] * (table.ndim - 1) + [(0, length - table.shape[-1])] for table in tables]
    return np.stack([np.pad(table, pad, mode="edge") for table, pad in zip(tables, pads, strict=True)])


@cache
def _blocks() -> Any:
    import jax

    def loop(length: int, walk: Walk | Errands, compute_s: Any, link: Any, seed: Any, state: Travel) -> Any:
        def arrivals(state: Travel, _: None) -> Any:
            return jax.vmap(arrive, in_axes=(0, 0, 0, 0, 0, None))(walk, compute_s, link, seed, state, None)

        return jax.lax.scan(arrivals, state, None, length=length)

    return jax.jit(loop, static_argnums=0, donate_argnums=5)
