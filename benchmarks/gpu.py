"""Many simultaneous runs on whatever device JAX sees: hops per second, bytes moved per hop, and how near to the bound.

python benchmarks/gpu.py                     # 65,536 lanes on a GPU; few lanes on one core of a CPU, half a minute
python benchmarks/gpu.py --lanes 4096        # so many lanes
python benchmarks/gpu.py --write             # on a GPU: keep the table in docs/gpu.json
python benchmarks/gpu.py --check             # first each method's lanes on this device, beside engine="plain"
python benchmarks/gpu.py --unknowns 256      # these rows alone; with --write the others stay as they were kept

A lane is a run with its own setting, and one of 64 schedules (seeds); all lanes have the same losses, least squares.
Three things are timed in turn:

    lanes   amble's engine for many runs, its schedules handed over from the host's memory, as in a sweep
    bare    the method's visit under vmap in one loop, its schedules on the device: no records, no stopping; with 256
            unknowns an eighth of the lanes, since it copies the loss of each
    copy    a large array, read and written: the device's memory traffic in bytes per second

The bound is what the copy's rate allows if each hop reads and writes only the rows that it may change ("state"), or
reads the arrays of the agent's loss from memory as well ("all"): they are the same for every lane and may stay in a
cache.
"""

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
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
from amble import methods
from amble.engines import State, act
from amble.engines.lanes import Lanes
from amble.engines.plain import Plain
from amble.methods import rules
from amble.methods.parameters import traced, with_traced
from amble.problem.problem import Problem
from amble.schedule.many import plan_many
from amble.simulation.many import trip
from amble.simulation.running import begin

N, M, SEEDS = 20, 5, 64
LANES = 256 if ON_CPU else 65_536
HOPS, HOPS_SLOW = (512, 64) if ON_CPU else (4096, 1024)  # per piece; of methods whose hops take longer
HOPS_MANY = HOPS_SLOW if ON_CPU else HOPS  # with many unknowns
COPY_BYTES = 1 << (27 if ON_CPU else 34)
REPEATS = 5
CLOCK = time.process_time if ON_CPU else time.perf_counter  # a GPU's work is not in a process's CPU time
KEPT = Path(__file__).parent.parent / "docs" / "gpu.json"


class Case(NamedTuple):
    """Lanes of one method; their schedules, one row per seed."""

    method: Any
    problem: Problem
    network: amble.Network
    columns: list[Any]  # agents, tokens and, where tokens meet, roles
    meets: bool
    lanes: int

    @property
    def length(self) -> int:
        return int(self.columns[0].shape[1])

    @property
    def hops(self) -> int:
        return self.lanes * self.length


def make(method: Any, p: int, lanes: int, walk: str | None, hops: int = HOPS) -> Case:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N * 30, p))
    y = X @ rng.normal(size=p) + rng.normal(size=len(X))
    problem = Problem.from_arrays(X, y, agents=N, intercept=False, scale=False, ridge=1e-3)
    network, options = amble.networks.random(N, 0.7), {} if walk is None else {"walk": walk}
    runs = [begin(method, problem, network, seed=seed, **options) for seed in range(SEEDS)]
    schedules = plan_many([trip(run) for run in runs], hops=hops)
    names = ("agent", "token", *(("role",) if runs[0].meets else ()))
    columns = [np.stack([getattr(each, name) for each in schedules]) for name in names]
    return Case(runs[0].method, problem, network, columns, runs[0].meets, lanes)


def which(case: Case) -> Any:
    """Each lane's schedule."""
    return np.arange(case.lanes) % len(case.columns[0])


def settings_of(case: Case) -> dict[str, Any]:
    """Each lane's own: half to twice the method's."""
    return {name: value * np.linspace(0.5, 2.0, case.lanes) for name, value in traced(case.method).items()}


Piece = tuple[Callable[[], None], Callable[[], Any]]  # computes a piece of all lanes; each lane's mean of the x_i


def bare(case: Case) -> Piece:
    """The method's visit under vmap, in one loop."""
    settings = jax.device_put(settings_of(case))
    f, initial = jax.device_put(case.problem.stacked), jnp.zeros(case.problem.dimension)
    columns = [jnp.asarray(column.T[:, which(case)], jnp.int32) for column in case.columns]

    def start(own: Any) -> State:
        rule = rules(with_traced(case.method, own), initial, None, case.meets)
        agents = jax.vmap(lambda each: rule.agent(each, initial))(f)
        slots = jax.tree.map(lambda a: jnp.tile(a, (N, M, *(1,) * jnp.ndim(a))), rule.slot(initial))
        tokens = jax.vmap(lambda m: rule.token(initial, N, m))(jnp.arange(float(M)))
        return State(agents, slots, tokens, agents.x.sum(axis=0), jnp.asarray(-1))

    def hop(own: Any, state: State, i: Any, m: Any, role: Any = None) -> State:
        def take(tree: Any, at: Any) -> Any:
            return jax.tree.map(lambda a: a.at[at].get(mode="promise_in_bounds"), tree)

        def put(tree: Any, at: Any, row: Any) -> Any:
            return jax.tree.map(lambda a, b: a.at[at].set(b, mode="promise_in_bounds"), tree, row)

        mine, rule = take(state.agents, i), rules(with_traced(case.method, own), initial, None, case.meets)
        new, slot, token = act(rule, role, take(f, i), mine, take(state.slots, (i, m)), take(state.tokens, m))
        parts = put(state.agents, i, new), put(state.slots, (i, m), slot), put(state.tokens, m, token)
        return State(*parts, state.x_sum + (new.x - mine.x), state.lost)

    def piece(states: State, columns: Any) -> State:
        def step(k: Any, states: State) -> State:
            return jax.vmap(hop)(settings, states, *(column[k] for column in columns))

        return jax.lax.fori_loop(0, case.length, step, states)

    loop, states = jax.jit(piece, donate_argnums=0), jax.jit(jax.vmap(start, axis_size=case.lanes))(settings)

    def once() -> None:
        nonlocal states
        states = jax.block_until_ready(loop(states, columns))

    return once, lambda: np.asarray(states.x_sum) / N


def ours(case: Case) -> Piece:
    """The same by amble's engine, with one record at its end."""
    own = settings_of(case)
    methods = [with_traced(case.method, {name: values[k] for name, values in own.items()}) for k in range(case.lanes)]
    runner = Lanes(methods, [case.problem] * case.lanes, [case.network] * case.lanes, None, case.meets)
    pauses, never = np.array([0, case.length]), np.zeros(1, bool)
    at = runner.start(np.full(case.lanes, 1 << 40))

    def once() -> None:
        nonlocal at
        at, *_ = runner.advance(at, case.columns, which(case), 0, pauses, never, never, 0.0)

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
    p = case.problem.dimension
    rule = rules(case.method, np.zeros(p), None, case.meets)
    f, initial = case.problem.objective(0), np.zeros(p)
    rows = rule.agent(f, initial), rule.slot(initial), rule.token(initial, N, 0), np.zeros(p)
    state = 2 * 8 * sum(np.size(leaf) for leaf in jax.tree.leaves(rows)) + 2 * 4
    used = (f.A, f.b) if "grad" in case.method.work else (f.vectors, f.values, f.b)
    return state, 8 * sum(np.size(leaf) for leaf in used)


def device() -> str:
    first = jax.devices()[0]
    kind = f"one core of a CPU ({os.cpu_count()} cores)" if ON_CPU else first.device_kind
    return f"{kind}, JAX {jax.__version__}, backend {jax.default_backend()}"


def measured(case: Case, other: Case) -> tuple[dict[str, list[float]], float]:
    """Seconds of each piece, one after the other, by name; the copy's bytes per second. `other` is for `bare`."""
    copy, copied = copier()
    pieces = {"bare": bare(other), "lanes": ours(case)}
    works = {name: work for name, (work, _) in pieces.items()} | {"copy": copy}
    for work in works.values():
        work()  # compiles
    work, read = pieces["lanes"] if other is case else ours(other)
    if other is not case:
        work()
    check_equal(f"{case.method.label}, lanes and bare", read(), pieces["bare"][1]())
    timed = {name: clocked(lambda _, work=work: work(), CLOCK) for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for k in range(REPEATS):
        for name in list(timed)[:: 1 if k % 2 else -1]:
            seconds[name].append(timed[name](1))
    return seconds, copied / statistics.median(seconds["copy"])


def rows(lanes: int, unknowns: int | None) -> Iterator[Row]:
    print(f"device: {device()}; N={N}, M={M}, float64\n", flush=True)
    print(f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|", flush=True)
    ratios, few = [], max(1, lanes // 8)
    api, relay = amble.APIBCD(tokens=M), amble.Relay(tokens=M, form="scalar")
    for method, p, walk, hops, label in (
        (api, 12, "cycle", HOPS, "API-BCD"),
        (relay, 12, None, HOPS, "Relay, scalar form"),
        (relay, 12, "cycle", HOPS, "Relay, scalar form, on boards"),
        (amble.Relay(tokens=M, form="full"), 12, None, HOPS_SLOW, "Relay, full form"),
        (api, 256, "cycle", HOPS_MANY, "API-BCD"),
        (relay, 256, None, HOPS_MANY, "Relay, scalar form"),
    ):
        if unknowns not in (None, p):
            continue
        case = make(method, p, lanes, walk, hops)
        other = case._replace(lanes=few) if p > 12 else case
        seconds, copied_s = measured(case, other)
        state, loss = bytes_of(case)
        for name, its in (("lanes", case), ("bare", other)):
            rate = its.hops / statistics.median(seconds[name])
            shares = [rate * size / copied_s for size in (state, state + loss)]
            LINES.append([label, p, its.lanes, name, rate, state, loss, copied_s, *shares])
            print(f"| {' | '.join(cells(LINES[-1]))} |", flush=True)
        pairs = [
            (own / case.hops, bare / other.hops)
            for own, bare in zip(seconds["lanes"], seconds["bare"], strict=True)
        ]  # fmt: skip
        what = f"a hop of {label}, {lanes:,} lanes (N={N}, p={p}, M={M})"
        against = "bare lanes under vmap" if other is case else f"{few:,} bare lanes under vmap"
        ratios.append(ratio_of(what, against, pairs, "us"))
    print()
    yield from ratios


def check() -> None:
    """Lanes of every method without rounds, of few unknowns and of many, beside the same runs one by one in NumPy."""
    rng, seeds, hops = np.random.default_rng(1), range(4), 150
    network = amble.networks.random(8, 0.6)
    for p in (11, 128):
        X = rng.normal(size=(8 * 40, p))
        y = X @ rng.normal(size=p) / p**0.5 + rng.normal(size=len(X))
        problem = Problem.from_arrays(X, y, agents=8, intercept=False, scale=False, ridge=1e-2)
        for label, kind in methods.METHODS.items():
            if methods.is_round(kind):
                continue
            several = {"tokens": 3} if "tokens" in kind.__dataclass_fields__ else {}
            for own in ({"form": "full"}, {"form": "scalar"}) if label == "Relay" else ({},):
                compare(methods.from_settings(label, own | several), problem, network, seeds, hops)


def compare(method: Any, problem: Problem, network: amble.Network, seeds: range, hops: int) -> None:
    runs = [begin(method, problem, network, seed=seed) for seed in seeds]
    schedules = plan_many([trip(run) for run in runs], hops=hops)
    names = ("agent", "token", *(("role",) if runs[0].meets else ()))
    columns = [np.stack([getattr(each, name) for each in schedules]) for name in names]
    case = Case(runs[0].method, problem, network, columns, runs[0].meets, 64)
    once, read = ours(case)
    once()
    found, worst = read(), 0.0
    for lane in range(0, case.lanes, 9):
        own = with_traced(case.method, {name: values[lane] for name, values in settings_of(case).items()})
        machine = Plain(own, problem, network, np.zeros(problem.dimension), case.meets)
        _, local = machine.read(machine.advance(machine.start(), schedules[which(case)[lane]], 0, hops))
        if np.abs(local).max() < 1e3:  # a step that diverges multiplies rounding
            worst = max(worst, float(np.abs(found[lane] - local).max() / np.abs(local).max()))
    print(f"{worst:.1e} {case.method}, {problem.dimension} unknowns", flush=True)
    if not worst < 1e-9:
        sys.exit(f"{case.method.label}: lanes and engine='plain' differ by {worst:.1e}.")


HEADS = [
    "method", "p", "lanes", "engine", "hops/s", "state B/hop", "loss B/hop", "copy GB/s", "of the bound, state", "all",
]  # fmt: skip
LINES: list[list[Any]] = []


def cells(line: list[Any]) -> list[str]:
    label, p, count, name, rate, state, loss, copied_s, *shares = line
    middle = [f"{rate:,.0f}", f"{state:,}", f"{loss:,}", f"{copied_s / 1e9:,.0f}"]
    return [label, str(p), f"{count:,}", name, *middle, *(f"{share:.1%}" for share in shares)]


def keep(unknowns: int | None) -> None:
    """The table, with the date and the versions; of other numbers of unknowns the lines that are kept already."""
    about = {
        "date": time.strftime("%Y-%m-%d"),
        "device": device(),
        "amble": amble.__version__,
        "agents": N,
        "tokens": M,
    }
    versions = {"numpy": np.__version__, "python": ".".join(map(str, sys.version_info[:3]))}
    lines = LINES
    if unknowns is not None:
        before = json.loads(KEPT.read_text())
        if {name: before[name] for name in ("device", *versions)} != {"device": about["device"], **versions}:
            sys.exit("the kept table is of another device or other versions: measure all of it, without --unknowns.")
        lines = sorted([*LINES, *(line for line in before["lines"] if line[1] != unknowns)], key=lambda line: line[1])
    KEPT.write_text(json.dumps({**about, **versions, "heads": HEADS, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--lanes", type=int, default=LANES, help=f"runs at once (default {LANES:,} on this device)")
    options.add_argument("--unknowns", type=int, choices=(12, 256), help="the rows of so many unknowns alone")
    options.add_argument("--check", action="store_true", help="first compare with engine='plain'")
    options.add_argument("--write", action="store_true", help="keep the table in docs/gpu.json")
    arguments = options.parse_args()
    if arguments.lanes < 1:
        sys.exit(f"--lanes {arguments.lanes} was given; it must be one or more.")
    if arguments.write and ON_CPU:
        sys.exit("--write was given, but JAX sees no GPU; docs/gpu.json is for the figures of one.")
    with jax.enable_x64(True):
        if arguments.check:
            print("largest relative difference of lanes and engine='plain':", flush=True)
            check()
        table(list(rows(arguments.lanes, arguments.unknowns)), arguments.json)
    if arguments.write:
        keep(arguments.unknowns)
