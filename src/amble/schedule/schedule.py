"""Schedule: which token is where and when. It knows nothing about the method's numbers.

Every token is always about to arrive somewhere. The loop takes the earliest arrival (ties: the lowest token), lets it
wait until its agent is free, adds the visit's compute seconds, and sends the token on by the walk: its next arrival.
Arrivals are handled in order of time, so tokens that reach a busy agent wait their turn, first come, first served.
Messengers on errands (networks/errands.py) have another clock: see `on_errand`.

A hop is reported at the time its visit ends. Visits end in another order than they begin only among the last visits of
each token, at most M of them, so K + M arrivals, sorted by end, begin with the first K hops of the endless schedule:
a longer schedule only ever adds to a shorter one.

Tokens that jump (walks.Weighted) pass agents that compute nothing. Those that meet (networks/meetings.py) also wait at
the meeting place: a token that has delivered arrives nowhere until all have. Then they all take, at the time of the
last delivery. Only a visit needs the agent itself: it forwards tokens, and keeps the account, while it computes.
"""

from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import Array, Flags, Indices, namespace
from amble.compiling.kept import kept_programs
from amble.errors import AmbleError, need
from amble.networks.errands import Errands
from amble.networks.meetings import DELIVER, VISIT
from amble.networks.network import Network
from amble.networks.walks import Jumps, Meetings, Walk, put, take
from amble.randomness import LINK, WALK, draw
from amble.schedule.timing import Timing, link_seconds

BLOCK = 1 << 15  # arrivals per call of the compiled loop
HOPS_MAX = 100_000_000  # of a schedule that was not asked for by hops


class Schedule(NamedTuple):
    """Hops in the order their visits end."""

    time_s: Array
    token: Indices
    agent: Indices
    moved: Flags  # whether the token crossed a link to get here: the first visit and staying put cost nothing
    role: Indices | None = None  # what the token does here, where tokens meet or jump; None: every hop is a visit

    @property
    def hops(self) -> int:
        return len(self.time_s)

    def first(self, hops: int) -> "Schedule":
        role = None if self.role is None else self.role[:hops]
        return Schedule(self.time_s[:hops], self.token[:hops], self.agent[:hops], self.moved[:hops], role)

    @property
    def visits(self) -> Flags:
        """At which hops an agent computes."""
        return np.ones(self.hops, bool) if self.role is None else self.role == VISIT

    def within(self, time_s: float | None, comm_units: int | None) -> "Schedule":
        """The hops up to the first of these limits."""
        schedule = self
        if time_s is not None:
            schedule = schedule.first(int(np.searchsorted(schedule.time_s, time_s, side="right")))
        if comm_units is not None:
            schedule = schedule.first(int(np.searchsorted(np.cumsum(schedule.moved), comm_units, side="right")))
        return schedule


def plan_hops(
    network: Network,
    walk: Walk | Errands,
    timing: Timing,
    *,
    tokens: int,
    compute_s: Array,
    message_bytes: float,
    seed: int,
    hops: int | None = None,
    time_s: float | None = None,
    comm_units: int | None = None,
) -> Schedule:
    """The schedule up to the first of `hops`, `time_s` and `comm_units`."""
    jax = need("jax", "sim")
    check_clock(network.agents, timing.link(message_bytes), compute_s, hops, time_s, comm_units)
    wanted = HOPS_MAX if hops is None else hops
    with jax.enable_x64(True), kept_programs(jax):
        agent, memory = walk.begin(np)
        travel = Travel(
            arrival_s=np.zeros(tokens),
            agent=agent,
            hop=np.zeros(tokens, np.uint64),
            moved=np.zeros(tokens, bool),
            memory=memory,
            free_s=np.zeros(network.agents),
        )
        # arrays of NumPy until here: JAX compiles a program for each kind of array that it makes itself
        given = walk, travel, np.asarray(compute_s), np.asarray(timing.link(message_bytes)), np.uint64(seed)
        tables, state, compute, link, key = jax.device_put(given)
        blocks: list[Any] = []
        done, crossed = 0, 0
        while done < wanted + tokens:
            state, block = _block()(tables, state, compute, link, key)
            blocks.append(tuple(map(np.asarray, block)))
            done += BLOCK
            crossed += int(blocks[-1][3].sum())
            if time_s is not None and float(np.asarray(state.arrival_s).min()) > time_s:
                break
            if comm_units is not None and crossed > comm_units + tokens:
                break
        else:
            if hops is None:
                raise never_reached(float(np.asarray(state.arrival_s).min()), crossed)
    columns = [np.concatenate(column) for column in zip(*blocks, strict=True)]
    order = np.argsort(columns[0], kind="stable")[:wanted]
    return Schedule(*(column[order] for column in columns)).within(time_s, comm_units)


def check_clock(
    agents: int, link: Array, compute_s: Array, hops: int | None, time_s: float | None, comm_units: int | None
) -> None:
    """Refuses limits that no schedule can reach."""
    if comm_units is not None and agents == 1 and hops is None and time_s is None:
        raise AmbleError("one agent never communicates, so comm_units cannot be reached; stop by hops or time_s.")
    if hops is None and not link.any() and not np.any(compute_s):
        raise AmbleError("neither hops nor visits take time in this timing, so a clock means nothing; stop by hops.")


def never_reached(seconds: float, crossed: int) -> AmbleError:
    spent = f"{seconds:.3g} s and {crossed:,} units"
    return AmbleError(f"{HOPS_MAX:,} hops took only {spent}; ask for less, stop by hops, or use a slower timing.")


class Travel(NamedTuple):
    """Where every token is heading, and until when every agent is busy; JAX's arrays, in its loop."""

    arrival_s: Any
    agent: Any
    hop: Any
    moved: Any
    memory: Any
    free_s: Any


def arrive(
    walk: Walk | Errands, compute_s: Any, link: Any, seed: Any, state: Travel, _: None
) -> tuple[Travel, tuple[Any, ...]]:
    """One arrival: wait, compute, leave for the next agent."""
    xp = namespace(state.arrival_s)
    token = xp.argmin(state.arrival_s).astype(xp.int32)
    agent = take(state.agent, token)
    role = walk.role_of(state.memory, token) if isinstance(walk, Meetings | Jumps) else None
    if isinstance(walk, Errands):
        ends, free_s = on_errand(state, token, agent, take(compute_s, agent))
    else:
        arrived_s = take(state.arrival_s, token)
        ends = xp.maximum(arrived_s, take(state.free_s, agent)) + take(compute_s, agent)
        if role is None:
            free_s = put(state.free_s, agent, ends)
            ends = take(free_s, agent)  # read back, so that the old array is not kept alive by a copy at every hop
        else:
            free_s = put(state.free_s, agent, xp.where(role == VISIT, ends, take(state.free_s, agent)))
            ends = xp.where(role == VISIT, take(free_s, agent), arrived_s)
    hop, name = take(state.hop, token), token.astype(xp.uint64)
    following, memory = walk.step(xp, state.memory, token, agent, draw(xp, seed, name, hop, WALK), seed)
    u = draw(xp, seed, name, hop, LINK)
    moves = following != agent
    arrival_s = put(state.arrival_s, token, ends + xp.where(moves, link_seconds(xp, link, u), 0.0))
    if role is not None:  # who has delivered waits for the last
        waiting = put(state.arrival_s, token, xp.inf)
        met = xp.where(xp.isinf(waiting).all(), ends, waiting)
        arrival_s = xp.where(role == DELIVER, met, arrival_s)
    after = Travel(
        arrival_s=arrival_s,
        agent=put(state.agent, token, following),
        hop=put(state.hop, token, hop + xp.uint64(1)),
        moved=put(state.moved, token, moves),
        memory=memory,
        free_s=free_s,
    )
    hop_done = ends, token, agent, take(state.moved, token)
    return after, hop_done if role is None else (*hop_done, role)


def on_errand(state: Travel, token: Any, agent: Any, compute_s: Any) -> tuple[Any, Any]:
    """When a messenger leaves, and until when every agent is busy: at home it waits for its agent, who begins the next
    gradient when it leaves; elsewhere it leaves at once."""
    xp = namespace(state.arrival_s)
    arrival_s, free_s = take(state.arrival_s, token), take(state.free_s, agent)
    home = agent == token
    leaves_s = xp.where(home, xp.maximum(arrival_s, free_s), arrival_s)
    return leaves_s, put(state.free_s, agent, xp.where(home, leaves_s + compute_s, free_s))


@cache
def _block() -> Any:
    """The compiled loop over one block of arrivals; JAX is imported when the first schedule is made."""
    import jax

    def loop(walk: Walk | Errands, state: Travel, compute_s: Any, link: Any, seed: Any) -> Any:
        return jax.lax.scan(partial(arrive, walk, compute_s, link, seed), state, None, length=BLOCK)

    return jax.jit(loop, donate_argnums=1)
