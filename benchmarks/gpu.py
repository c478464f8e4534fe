"""Many simultaneous runs on whatever device JAX sees: hops per second, bytes moved per hop, and how near to the bound.

python benchmarks/gpu.py                     # 65,536 lanes on a GPU; few lanes on one core of a CPU, half a minute
python benchmarks/gpu.py --lanes 4096        # so many lanes at p = 12, and as much state at p = 256

A lane is a run with its own setting and schedule; all lanes have the same losses. Three things are timed in turn:

    lanes   amble's engine for many runs, its schedules handed over from the host's memory, as in a sweep
    bare    the method's visit under vmap in one loop, its schedules on the device: no records, no stopping
    copy    a large array, read and written: the device's memory traffic in bytes per second

The bound is what the copy's rate allows if each hop reads and writes only the rows that it changes ("state"), or reads
the arrays of the agent's loss from memory as well ("all"): they are the same for every lane and may stay in a cache.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

CORES = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(CORES)})  # one core, before anything starts threads

import jax

ON_CPU = jax.default_backend() == "cpu"
if not ON_CPU:
    os.sched_setaffinity(0, CORES)  # they feed the GPU

import jax.numpy as jnp
import numpy as np
from measure import Row, check_equal, clocked, parser, ratio_of, table

import amble
from amble.engines import State
from amble.engines.lanes import Lanes
from amble.methods import rules
from amble.methods.parameters import traced, with_traced
from amble.networks import walks
from amble.problem.problem import Problem
from amble.schedule import schedule, timing
from amble.schedule.cost import compute_seconds

N, M = 20, 5
LANES = 256 if ON_CPU else 65_536  # at p = 12
HOPS = 512 if ON_CPU else 4096  # per piece
COPY_BYTES = 1 << (27 if ON_CPU else 32)
REPEATS = 5
CLOCK = time.process_time if ON_CPU else time.perf_counter  # a GPU's work is not in a process's CPU time


class Case(NamedTuple):
    """Lanes of one method and their schedules, one row per lane."""

    method: Any
    problem: Problem
    network: amble.Network
    agent: Any
    token: Any

    @property
    def lanes(self) -> int:
        return len(self.agent)

    @property
    def hops(self) -> int:
        return int(self.agent.size)


def make(method: Any, p: int, lanes: int) -> Case:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N * 30, p))
    y = X @ rng.normal(size=p) + rng.normal(size=len(X))
    problem = Problem.from_arrays(X, y, agents=N, intercept=False, scale=False, ridge=1e-3)
    network, clock = amble.networks.random(N, 0.7), timing.timing_from("paper")
    costs = {"compute_s": compute_seconds(clock, method, problem), "message_bytes": 8 * p}
    steps = walks.walk_for("cycle", network, M, 0)
    planned = schedule.plan_hops(network, steps, clock, tokens=M, hops=HOPS + 4 * N * M, seed=0, **costs)
    begins = rng.integers(0, 4 * N * M, size=lanes)  # each lane elsewhere in the schedule, so that they read other rows
    at = begins[:, None] + np.arange(HOPS)
    return Case(method, problem, network, planned.agent.astype(np.int32)[at], planned.token.astype(np.int32)[at])


def settings_of(case: Case) -> dict[str, Any]:
    """Each lane's own: half to twice the method's."""
    return {name: value * np.linspace(0.5, 2.0, case.lanes) for name, value in traced(case.method).items()}


Piece = tuple[Callable[[], None], Callable[[], Any]]  # computes a piece of all lanes; each lane's mean of the x_i


def bare(case: Case) -> Piece:
    """The method's visit under vmap, in one loop."""
    settings = jax.device_put(settings_of(case))
    f, initial = jax.device_put(case.problem.stacked), jnp.zeros(case.problem.dimension)
    columns = jnp.asarray(case.agent.T), jnp.asarray(case.token.T)

    def start(own: Any) -> State:
        rule = rules(with_traced(case.method, own), initial, None)
        agents = jax.vmap(lambda each: rule.agent(each, initial))(f)
        slots = jax.tree.map(lambda a: jnp.tile(a, (N, M, *(1,) * jnp.ndim(a))), rule.slot(initial))
        tokens = jax.vmap(lambda m: rule.token(initial, N, m))(jnp.arange(float(M)))
        return State(agents, slots, tokens, agents.x.sum(axis=0), jnp.asarray(-1))

    def hop(own: Any, state: State, i: Any, m: Any) -> State:
        def take(tree: Any, at: Any) -> Any:
            return jax.tree.map(lambda a: a.at[at].get(mode="promise_in_bounds"), tree)

        def put(tree: Any, at: Any, row: Any) -> Any:
            return jax.tree.map(lambda a, b: a.at[at].set(b, mode="promise_in_bounds"), tree, row)

        mine, rule = take(state.agents, i), rules(with_traced(case.method, own), initial, None)
        new, slot, token = rule.visit(take(f, i), mine, take(state.slots, (i, m)), take(state.tokens, m))
        parts = put(state.agents, i, new), put(state.slots, (i, m), slot), put(state.tokens, m, token)
        return State(*parts, state.x_sum + (new.x - mine.x), state.lost)

    def piece(states: State, columns: Any) -> State:
        def step(k: Any, states: State) -> State:
            return jax.vmap(hop)(settings, states, columns[0][k], columns[1][k])

        return jax.lax.fori_loop(0, HOPS, step, states)

    loop, states = jax.jit(piece, donate_argnums=0), jax.jit(jax.vmap(start, axis_size=case.lanes))(settings)

    def once() -> None:
        nonlocal states
        states = jax.block_until_ready(loop(states, columns))

    return once, lambda: np.asarray(states.x_sum) / N


def ours(case: Case) -> Piece:
    """The same by amble's engine, with one record at its end."""
    own = settings_of(case)
    methods = [with_traced(case.method, {name: values[k] for name, values in own.items()}) for k in range(case.lanes)]
    runner = Lanes(methods, [case.problem] * case.lanes, [case.network] * case.lanes, None)
    pauses, never = np.array([0, HOPS]), np.zeros(1, bool)
    at = runner.start(np.full(case.lanes, 1 << 40))

    def once() -> None:
        nonlocal at
        at, *_ = runner.advance(at, (case.agent, case.token), np.arange(case.lanes), 0, pauses, never, never, 0.0)

    return once, lambda: runner.read(at)[1]


def copier() -> tuple[Callable[[], None], int]:
    """Reads and writes a large array; how many bytes that moves."""
    array = jnp.zeros(COPY_BYTES // 8)
    change = jax.jit(lambda a: a + 1.0, donate_argnums=0)

    def once() -> None:
        nonlocal array
        array = jax.block_until_ready(change(array))

    return once, 2 * COPY_BYTES


def bytes_of(case: Case) -> tuple[int, int]:
    """That a hop must move: the rows that it reads and writes with its place in the schedule; and its loss's arrays."""
    rule, p = rules(case.method, np.zeros(case.problem.dimension), None), case.problem.dimension
    f, initial = case.problem.objective(0), np.zeros(p)
    rows = rule.agent(f, initial), rule.slot(initial), rule.token(initial, N, 0), np.zeros(p)
    state = 2 * 8 * sum(np.size(leaf) for leaf in jax.tree.leaves(rows)) + 2 * 4
    used = (f.A, f.b) if "grad" in case.method.work else (f.vectors, f.values, f.b)
    return state, 8 * sum(np.size(leaf) for leaf in used)


def device() -> str:
    first = jax.devices()[0]
    kind = f"one core of a CPU ({os.cpu_count()} cores)" if ON_CPU else first.device_kind
    return f"{kind}, JAX {jax.__version__}, backend {jax.default_backend()}"


def measured(case: Case) -> tuple[dict[str, list[float]], float]:
    """Seconds of each piece, one after the other, by name; the copy's bytes per second."""
    copy, copied = copier()
    pieces = {"bare": bare(case), "lanes": ours(case)}
    works = {name: work for name, (work, _) in pieces.items()} | {"copy": copy}
    for work in works.values():
        work()  # compiles
    models = [read() for _, read in pieces.values()]
    check_equal(f"{case.method.label}, lanes and bare", models[-1], models[0])
    timed = {name: clocked(lambda _, work=work: work(), CLOCK) for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for k in range(REPEATS):
        for name in list(timed)[:: 1 if k % 2 else -1]:
            seconds[name].append(timed[name](1))
    return seconds, copied / statistics.median(seconds["copy"])


def rows(lanes: int) -> Iterator[Row]:
    print(f"device: {device()}; N={N}, M={M}, float64\n", flush=True)
    print(f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|", flush=True)
    found, wide = [], max(1, lanes // 16)
    relay = amble.Relay(tokens=M, form="scalar")
    for method, p, count in (
        (amble.APIBCD(tokens=M), 12, lanes), (relay, 12, lanes), (amble.Relay(tokens=M, form="full"), 12, lanes),
        (amble.APIBCD(tokens=M), 256, wide), (relay, 256, wide),
    ):  # fmt: skip
        case = make(method, p, count)
        seconds, copied_s = measured(case)
        state, loss = bytes_of(case)
        label = f"{method.label}, {method.form} form" if isinstance(method, amble.Relay) else method.label
        for name in ("lanes", "bare"):
            rate = case.hops / statistics.median(seconds[name])
            shares = [rate * size / copied_s for size in (state, state + loss)]
            cells = [label, str(p), f"{count:,}", name, f"{rate:,.0f}", f"{state:,}", f"{loss:,}"]
            cells += [f"{copied_s / 1e9:,.0f}", f"{shares[0]:.1%}", f"{shares[1]:.1%}"]
            print(f"| {' | '.join(cells)} |", flush=True)
        pairs = [
            (own / case.hops, other / case.hops) for own, other in zip(seconds["lanes"], seconds["bare"], strict=True)
        ]
        what = f"a hop of {label}, {count:,} lanes (N={N}, p={p}, M={M})"
        found.append(ratio_of(what, "bare lanes under vmap", pairs, "us"))
    print()
    yield from found


HEADS = [
    "method",
    "p",
    "lanes",
    "engine",
    "hops/s",
    "state B/hop",
    "loss B/hop",
    "copy GB/s",
    "of the bound, state",
    "all",
]

if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--lanes", type=int, default=LANES, help=f"at p = 12 (default {LANES:,} on this device)")
    arguments = options.parse_args()
    if arguments.lanes < 1:
        sys.exit(f"--lanes {arguments.lanes} was given; it must be one or more.")
    with jax.enable_x64(True):
        table(list(rows(arguments.lanes)), arguments.json)
