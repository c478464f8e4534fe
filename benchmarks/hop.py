"""A hop of one run on one core, beside what bounds it, in one run: CPU time, the best of several, interleaved.

python benchmarks/hop.py              # about two minutes

Three tables: light methods and Relay, p=12, as one kernel and operation by operation; a prox of p=256, which reads the
agent's eigenvectors in place, beside two bare matrix-vector products of NumPy; logistic agents of 1,000 x 22 rows
beside the same Newton steps in bare NumPy.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core, before anything starts threads

import jax
import numpy as np
from rich.console import Console
from rich.table import Table

import amble
from amble import engines, methods
from amble.engines import compiled
from amble.losses import newton
from amble.networks import walks
from amble.problem.problem import Problem
from amble.schedule import schedule, timing
from amble.schedule.cost import compute_seconds

N, REPEATS = 20, 5


def least_squares(p: int, rows: int = 4) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N * rows, p))
    y = X @ rng.normal(size=p) + rng.normal(size=len(X))
    return Problem.from_arrays(X, y, agents=N, intercept=False, scale=False)


def logistic(rows: int = 1000, p: int = 22) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N * rows, p - 1))
    return Problem.from_arrays(X, X @ rng.normal(size=p - 1) + rng.normal(size=len(X)) > 0, agents=N, ridge=1e-3)


def planned(method: Any, problem: Problem, hops: int) -> Any:
    """The schedule of so many hops, and the CPU seconds that making it takes."""
    network, clock = amble.networks.random(N, 0.7), timing.timing_from("paper")
    walk = walks.walk_for("cycle", network, method.tokens, 0)
    parts = {"compute_s": compute_seconds(clock, method, problem), "message_bytes": 8 * problem.dimension, "seed": 0}

    def plan() -> Any:
        return schedule.plan_hops(network, walk, clock, tokens=method.tokens, hops=hops, **parts)

    plan()
    begin = time.process_time()
    return plan(), time.process_time() - begin


def replay(method: Any, problem: Problem, hops: Any, as_one: bool = True) -> Callable[[], None]:
    """A function that replays the hops, compiled; as one kernel, or operation by operation."""
    simple = compiled.is_simple
    compiled._hops.cache_clear()
    if not as_one:
        compiled.is_simple = lambda *_: False
    engine = engines.engine_for("compiled", method, problem, amble.networks.random(N, 0.7))
    program = compiled._hops()
    engine.advance(engine.start(), hops, 0, 1)
    compiled.is_simple = simple

    def go() -> None:
        compiled._hops.cache_clear()
        compiled._hops, kept = (lambda: program), compiled._hops
        engine.advance(jax.block_until_ready(engine.start()), hops, 0, hops.hops)
        compiled._hops = kept

    return go


def best(*works: Callable[[], None]) -> list[float]:
    """CPU seconds of each, the best of several, in turn."""
    figures = np.zeros((REPEATS, len(works)))
    for k in range(REPEATS):
        for j, work in enumerate(works):
            begin = time.process_time()
            work()
            figures[k, j] = time.process_time() - begin
    return figures.min(axis=0).tolist()


def small(hops: int) -> Table:
    table = Table("method", "tokens", "schedule us", "one kernel us", "by operation us", title="a hop, p=12, N=20")
    problem = least_squares(12)
    chosen = (amble.IBCD(), amble.APIBCD(), amble.GAPIBCD(), amble.WPG(), amble.WADMM(), amble.PWADMM())
    for method in (*chosen, amble.Relay(), amble.Relay(tokens=3), amble.Relay(form="scalar")):
        method = methods.check(method, problem)
        plan, plan_s = planned(method, problem, hops)
        figures = best(replay(method, problem, plan), replay(method, problem, plan, as_one=False))
        numbers = (each / hops * 1e6 for each in (plan_s, *figures))
        table.add_row(method.label, str(method.tokens), *(f"{number:.2f}" for number in numbers))
    return table


def large(hops: int) -> Table:
    table = Table("method", "hop us", "two products us", "ratio", title="a hop, p=256, N=20")
    problem = least_squares(256, rows=8)
    V, b = list(problem.stacked.vectors), list(problem.stacked.b)

    def bare() -> None:
        z = np.ones(256)
        for k in range(hops):
            v = V[k % N]
            z = v @ ((b[k % N] + z) @ v)

    for method in (amble.IBCD(), amble.APIBCD(), amble.WPG(), amble.Relay(form="scalar")):
        plan, _ = planned(method, problem, hops)
        hop, pair = best(replay(method, problem, plan), bare)
        table.add_row(method.label, f"{hop / hops * 1e6:.1f}", f"{pair / hops * 1e6:.1f}", f"{hop / pair:.2f}")
    return table


def newton_steps(problem: Problem, method: Any, hops: Any) -> list[tuple[int, Any, Any, Any, int]]:
    """Agent, centre, weight, start and Newton steps of each prox of these hops, from the plain engine."""
    calls, steps, minimise, loop = [], [0], newton.minimise, newton.while_loop

    def counted(xp: Any, condition: Any, body: Any, state: Any) -> Any:
        end = loop(xp, condition, body, state)
        if isinstance(end, newton.Iterate):
            steps[0] = int(end.steps)
        return end

    def noted(f: Any, center: Any, weight: Any, start: Any) -> Any:
        x = minimise(f, center, weight, start)
        calls.append((f, center, weight, start, steps[0]))
        return x

    newton.minimise, newton.while_loop = noted, counted
    plain = engines.engine_for("plain", method, problem, amble.networks.random(N, 0.7))
    plain.advance(plain.start(), hops, 0, hops.hops)
    newton.minimise, newton.while_loop = minimise, loop
    return calls


def bare_newton(f: Any, center: Any, weight: Any, x: Any, steps: int) -> Any:
    """Full Newton steps without any check, as one would write them down."""
    signed, identity = f.s[:, None] * f.X, np.eye(len(center))
    for _ in range(steps):
        wrong = 1 / (1 + np.exp(signed @ x))
        gradient = -(f.rows * wrong) @ signed + f.ridge * x + weight * (x - center)
        H = f.X.T @ ((f.rows * wrong * (1 - wrong))[:, None] * f.X) + np.diag(f.ridge) + weight * identity
        x = x - np.linalg.solve(H, gradient)
    return x


def rows(hops: int) -> Table:
    table = Table(
        "method", "steps a hop", "hop us", "bare us", "ratio", title="a hop, logistic, 1,000 x 22 rows an agent"
    )
    problem = logistic()
    for method in (amble.IBCD(), amble.APIBCD(), amble.Relay(form="scalar")):
        plan, _ = planned(method, problem, hops)
        calls = newton_steps(problem, method, plan)

        def bare(calls: Any = calls) -> None:
            for call in calls:
                bare_newton(*call)

        hop, bare_s = best(replay(method, problem, plan), bare)
        each = np.mean([call[-1] for call in calls])
        numbers = (f"{number / hops * 1e6:.0f}" for number in (hop, bare_s))
        table.add_row(method.label, f"{each:.1f}", *numbers, f"{hop / bare_s:.2f}")
    return table


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hops", type=int, default=100_000)
    hops = options.parse_args().hops
    console = Console()
    for table in (small(hops), large(max(hops // 50, 100)), rows(max(hops // 500, 40))):
        console.print(table)


if __name__ == "__main__":
    main()
