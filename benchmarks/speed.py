"""Speed and memory of the simulator on one core, beside the same arithmetic in bare NumPy, JAX and Python.

python benchmarks/speed.py            # about a minute and a half

The bare loops do what a hop must: they read the agent and the token of the hop, compute eq. 12 of the paper for least
squares, and write the rows back. They record nothing, know one method only, and check nothing.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from heapq import heapify, heapreplace
from pathlib import Path
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, before anything starts threads

import jax
import jax.numpy as jnp
import numpy as np
from measure import Row, Timed, check_equal, clocked, compare, each, parser, ratio_of, table

import amble
from amble import engines
from amble.networks import walks
from amble.problem.problem import Problem
from amble.schedule import schedule, timing
from amble.schedule.cost import compute_seconds

P, M, N = 12, 5, 20
TAU = 0.1
HOPS = 1 << 16  # of a schedule; longer runs begin it again
MANY = 100_000
CHECKED = 1000  # hops after which the bare loops must have the same models


def least_squares(agents: int, p: int = P, rows: int = 4) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(agents * rows, p))
    y = X @ rng.normal(size=p) + rng.normal(size=len(X))
    return Problem.from_arrays(X, y, agents=agents, intercept=False, scale=False)


def network_of(agents: int) -> amble.Network:
    return amble.networks.ring(agents) if agents > 1000 else amble.networks.random(agents, 0.7)


def planner(method: Any, problem: Problem) -> Any:
    """Makes the schedule of so many hops."""
    network, clock = network_of(problem.agents), timing.timing_from("paper")
    steps = walks.walk_for("cycle", network, method.tokens, 0)
    costs = {"compute_s": compute_seconds(clock, method, problem), "message_bytes": 8 * problem.dimension}
    return lambda hops: schedule.plan_hops(network, steps, clock, tokens=method.tokens, hops=hops, seed=0, **costs)


Hops = tuple[Timed, Callable[[], Any]]  # timed hops, and what reads all agents' models


def replay(method: Any, problem: Problem, engine: str = "compiled") -> Hops:
    """Hops of amble's engine."""
    runner, hops = engines.engine_for(engine, method, problem, network_of(problem.agents)), HOPS
    planned, state = planner(method, problem)(hops), runner.start()

    def work(times: int) -> None:
        nonlocal state
        while times > 0:
            state = runner.advance(state, planned, 0, min(times, hops))
            times -= hops

    return clocked(work), lambda: np.array(state.agents.x)


def bare_numpy(problem: Problem) -> Hops:
    """API-BCD, its published rule, in NumPy."""
    planned, f = planner(amble.APIBCD(tau=TAU, tokens=M), problem)(HOPS), problem.stacked
    n, p = f.b.shape
    x, s, z, c = np.zeros((n, p)), np.zeros((n, p)), np.zeros((M, p)), np.zeros((n, M, p))
    agent, token = planned.agent.tolist(), planned.token.tolist()

    def work(times: int) -> None:
        for k in range(times):
            i, m = agent[k % HOPS], token[k % HOPS]
            sum_i = s[i] + (z[m] - c[i, m])
            new = f.vectors[i] @ (((f.b[i] + TAU * sum_i) @ f.vectors[i]) / (f.values[i] + TAU * M))
            z_new = z[m] + (new - x[i]) / n
            s[i] = sum_i + (z_new - z[m])
            x[i], c[i, m], z[m] = new, z_new, z_new

    return clocked(work), lambda: x


def bare_jax(problem: Problem) -> Hops:
    """The same as one compiled loop. It reads the rows of the next hop in advance, or XLA would copy arrays."""
    planned = planner(amble.APIBCD(tau=TAU, tokens=M), problem)(HOPS + 1)
    n, p = problem.stacked.b.shape
    with jax.enable_x64(True):
        vectors, values, b = (jnp.asarray(problem.stacked._asdict()[name]) for name in ("vectors", "values", "b"))
        agent, token = jnp.asarray(planned.agent), jnp.asarray(planned.token)
        state = tuple(jnp.zeros(shape) for shape in ((n, p), (n, p), (M, p), (n, M, p)))

    def rows(state: Any, k: Any) -> Any:
        x, s, z, c = state
        i, m = agent[k], token[k]
        return i, m, x[i], s[i], z[m], c[i, m]

    def hop(k: Any, carried: Any) -> Any:
        (x, s, z, c), (i, m, x_i, s_i, z_m, c_im) = carried
        sum_i = s_i + (z_m - c_im)
        new = vectors[i] @ (((b[i] + TAU * sum_i) @ vectors[i]) / (values[i] + TAU * M))
        z_new = z_m + (new - x_i) / n
        state = x.at[i].set(new), s.at[i].set(sum_i + (z_new - z_m)), z.at[m].set(z_new), c.at[i, m].set(z_new)
        return state, rows(state, k + 1)

    loop = jax.jit(lambda state, end: jax.lax.fori_loop(0, end, hop, (state, rows(state, 0)))[0], donate_argnums=0)

    def work(times: int) -> None:
        nonlocal state
        with jax.enable_x64(True):
            while times > 0:
                state = jax.block_until_ready(loop(state, min(times, HOPS)))
                times -= HOPS

    return clocked(work), lambda: np.array(state[0])


def bare_products(problem: Problem) -> Timed:
    """The two products of a prox, and nothing else."""
    vectors, b = problem.stacked.vectors, problem.stacked.b

    def work(times: int) -> None:
        for k in range(times):
            V = vectors[k % N]
            V @ (b[k % N] @ V)

    return clocked(work)


def bare_events() -> Timed:
    """Tokens that walk round a cycle and wait for busy agents: a heap of arrivals in Python."""

    def work(times: int) -> None:
        free_s = [0.0] * N
        arrivals = [(0.0, m, m) for m in range(M)]
        heapify(arrivals)
        hops = []
        for _ in range(times):
            arrival_s, m, i = arrivals[0]
            end_s = max(arrival_s, free_s[i]) + 1e-4
            free_s[i] = end_s
            hops.append((end_s, m, i))
            heapreplace(arrivals, (end_s + 3e-5, m, (i + 1) % N))
        hops.sort()

    return clocked(work)


def child_s(code: str) -> Timed:
    """CPU seconds of a new Python that runs this code."""

    def once() -> object:
        return subprocess.run([sys.executable, "-c", code], check=True)

    def clock() -> float:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent.ru_utime + spent.ru_stime

    return clocked(each(once), clock)


AMBLE_RUN = """import amble
problem = amble.split(amble.load("diabetes"), agents=10)
amble.simulate(amble.APIBCD(), problem, amble.networks.random(10), hops=100, progress=False)"""
JAX_RUN = """import jax, numpy, sklearn.datasets
with jax.enable_x64(True):
    jax.jit(lambda a: jax.lax.fori_loop(0, 100, lambda k, x: x + a @ x, a[0]))(numpy.eye(3)).block_until_ready()"""


def held_bytes(agents: int) -> int:
    """What a run of API-BCD must hold: the objectives, two vectors per agent, two per (agent, token), the tokens."""
    return 8 * agents * (2 * P * P + 2 * P + 1 + 2 * P + 2 * P * M)


def memory_child(agents: int) -> None:
    """Run once and print how far the resident memory rose above that of a small run, which holds code and caches."""

    def once(count: int) -> int:
        amble.simulate(amble.APIBCD(), least_squares(count), amble.networks.ring(count), hops=20_000, progress=False)
        status = Path("/proc/self/status").read_text()  # getrusage would count the parent's memory before the exec
        return int(status.split("VmHWM:")[1].split()[0]) * 1024

    small = once(100)
    print(once(agents) - small)


def rows() -> Iterator[Row]:
    size = f"N={N}, p={P}, M={M}"
    method, small, wide = amble.APIBCD(tau=TAU, tokens=M), least_squares(N), least_squares(N, 256)
    same = {"compiled": replay(method, small), "plain": replay(method, small, "plain")}
    same |= {"bare JAX": bare_jax(small), "bare NumPy": bare_numpy(small)}
    for timed, _ in same.values():
        timed(CHECKED)
    for name, (_, models) in same.items():
        check_equal(f"API-BCD, {name} and bare NumPy", models(), same["bare NumPy"][1]())
    hop, plain, bare, bare_plain = (timed for timed, _ in same.values())
    yield compare(f"a hop of API-BCD, compiled ({size})", hop, "the same in bare JAX", bare)
    yield compare(f"a hop of API-BCD, engine='plain' ({size})", plain, "the same in bare NumPy", bare_plain)
    yield compare(f"a hop of API-BCD, compiled ({size})", hop, "engine='plain'", plain)
    others = (
        amble.IBCD(),
        amble.GAPIBCD(tokens=M),
        amble.WPG(tokens=M),
        amble.Relay(tokens=M, form="scalar"),
        amble.Relay(tokens=M, form="full"),
    )
    for other in others:
        label = f"{other.label}, {other.form} form" if isinstance(other, amble.Relay) else other.label
        size = f"N={N}, p={P}, M={other.tokens}"
        yield compare(f"a hop of {label}, compiled ({size})", replay(other, small)[0], "API-BCD in bare JAX", bare)
    yield compare(
        f"a hop of API-BCD, compiled (N={N}, p=256, M={M})",
        replay(method, wide)[0],
        "two products in bare NumPy",
        bare_products(wide),
    )
    plan = planner(method, small)
    yield compare(f"a hop of the schedule ({size})", clocked(plan), "a heap in bare Python", bare_events())
    yield compare(
        f"a hop of API-BCD with {MANY:,} agents",
        replay(method, least_squares(MANY))[0],
        "with 100 agents",
        replay(method, least_squares(100))[0],
    )
    yield compare(
        "a process that simulates 100 hops of API-BCD",
        child_s(AMBLE_RUN),
        "a process that compiles one JAX loop",
        child_s(JAX_RUN),
        "s",
        repeats=5,
        most=1,
    )
    child = [sys.executable, __file__, "--memory-child", str(MANY)]
    rose = int(subprocess.run(child, check=True, capture_output=True, text=True).stdout)
    yield ratio_of(
        f"memory of a run with {MANY:,} agents",
        "the state that it must hold",
        [(rose / 1e6, held_bytes(MANY) / 1e6)],
        "MB",
    )


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--memory-child", type=int, help="print the memory of a run with so many agents")
    arguments = options.parse_args()
    if arguments.memory_child:
        memory_child(arguments.memory_child)
    else:
        table(rows(), arguments.json)
