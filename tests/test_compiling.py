"""What is compiled: once per shape, without copies of the state, as one kernel where that is faster, and kept."""

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import amble
from amble import engines, methods, networks
from amble.arrays import solver
from amble.compiling import blocks
from amble.compiling.kept import keep, open_cache
from amble.compiling.kernel import equations, is_simple, one_kernel
from amble.engines import compiled

jax = pytest.importorskip("jax")

N, P = 2000, 3
MARK = 'inlineable="false",xla_cpu_small_call="true"'  # XLA sets the second by itself in loops that it finds small
COMPILED = []  # a name for each program that JAX has compiled, or has read from its cache
jax.monitoring.register_event_duration_secs_listener(
    lambda event, _, **about: COMPILED.append(about) if event.endswith("backend_compile_duration") else None
)


def problem_of(agents, loss="least squares"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(agents * 2, P - 1))
    score = X @ rng.normal(size=P - 1) + rng.normal(size=len(X))
    return amble.Problem.from_arrays(X, score if loss == "least squares" else score > 0, agents=agents, ridge=1e-2)


MANY, FEW, LABELS = problem_of(N), problem_of(20), problem_of(20, "logistic")
LIGHT = [amble.IBCD(), amble.APIBCD(tokens=3), amble.GAPIBCD(), amble.WPG(), amble.WADMM(), amble.PWADMM()]
TOKENS = [*LIGHT, amble.Relay(), amble.Relay(tokens=3), amble.Relay(form="scalar"), amble.Relay(form="gradient")]


def program(method, problem):
    """The compiled loop over hops."""
    meets = method.tokens > 1 and methods.is_gift(method)
    engine = engines.engine_for("compiled", method, problem, networks.ring(problem.agents), meets=meets)
    with jax.enable_x64(True):
        column = jax.numpy.zeros(compiled.BLOCK + 1, "int32")
        fixed = engine.initial, engine.penalty, (column,) * (3 if meets else 2), 0, 1, 0
        return (
            compiled._hops().lower(engine.shape, engine.settings, engine.objectives, engine.start(), *fixed).compile()
        )


@pytest.mark.parametrize("method", TOKENS, ids=repr)
def test_a_hop_of_small_operations_is_one_kernel_and_copies_no_states(method):
    made = program(methods.check(method, MANY), MANY)
    assert MARK in made.as_text()
    memory = made.memory_analysis()
    assert memory.alias_size_in_bytes > N * P * 8  # the state is changed in place
    assert memory.temp_size_in_bytes < N * P * 8


def test_a_hop_that_multiplies_matrices_is_left_to_libraries():
    assert MARK not in program(amble.IBCD(), LABELS).as_text()
    with jax.enable_x64(True):
        A = jax.numpy.eye(3)
        assert is_simple(lambda A: A @ A[0] + 1, A)
        assert not is_simple(lambda A: A @ A, A)
        assert not is_simple(lambda A: jax.lax.cond(A[0, 0] > 0, lambda: A @ A, lambda: A), A)
        assert not is_simple(lambda A: jax.numpy.linalg.solve(A, A[0]), A)


@pytest.mark.parametrize("shape", [(96, 96), (101, 99), (8, 3)], ids=str)
def test_a_product_with_a_matrix_that_is_read_in_place(shape):
    rng = np.random.default_rng(0)
    stack, x, y = rng.normal(size=(3, *shape)), rng.normal(size=shape[0]), rng.normal(size=shape[1])
    with jax.enable_x64(True):
        product = jax.jit(lambda stack, i, x, y: (x @ blocks.OneOf(stack, i), blocks.OneOf(stack, i) @ y))
        for i in range(3):
            left, right = product(stack, np.int32(i), x, y)
            assert np.allclose(left, x @ stack[i], rtol=0, atol=1e-13)
            assert np.allclose(right, stack[i] @ y, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", [amble.IBCD(), amble.APIBCD(tokens=3), amble.Relay(form="scalar")], ids=repr)
def test_a_hop_does_not_copy_the_agent_s_eigenvectors(method):
    rng, p = np.random.default_rng(0), 99
    X = rng.normal(size=(12, p))
    problem = amble.Problem.from_arrays(X, X[:, 0], agents=3, ridge=1e-2, intercept=False)
    made = program(methods.check(method, problem), problem)
    assert MARK in made.as_text()
    assert f"f64[3,{p},{p}]" in made.as_text()  # the matrices of all agents
    assert f"f64[{p},{p}]" not in made.as_text()
    assert f"f64[1,{p},{p}]" not in made.as_text()
    how = {"hops": 60, "progress": False}
    runs = [amble.simulate(method, problem, "ring", engine=engine, **how) for engine in ("compiled", "plain")]
    assert np.allclose(*(run.consensus for run in runs), rtol=0, atol=1e-12)


def test_small_and_large_matrices_are_copied():
    for p, in_place in ((12, False), (90, False), (91, True), (256, True), (362, True), (363, False)):
        assert (blocks.read_in_place(np.empty((1, p, p)), 0) is not None) == in_place


def everything(x, A):
    """Every operation that a kernel may have, but for those of whole numbers."""
    xp, lax = jax.numpy, jax.lax
    y = abs(x - 1.5) * 2 / 3 + xp.exp(-x) + xp.expm1(x / 9) + xp.log(x + 2) + xp.log1p(x) + xp.tanh(x) + xp.sqrt(x + 1)
    flags = ((x > 1) & ~(x <= 2)) | (x < 0) | (x >= 9) | (x == 4) | (x != x)
    y = xp.where(flags, xp.minimum(y, 3.0), xp.maximum(-y, x**3 / 100))
    y = y[xp.array([2, 0, 1])] + A.T @ y + lax.stop_gradient(y) + xp.pad(y[1:], (0, 1)) + xp.diagonal(A)
    y = xp.concatenate([y[:1], y[1:]]).reshape(1, 3)[0] + xp.max(A, axis=0) + xp.min(A) + A.sum(axis=1)
    y = lax.cond(y[0] > 0, lambda y: y * 2, lambda y: y - 1, y)
    y = lax.fori_loop(0, 4, lambda k, y: lax.dynamic_update_slice(y, y[k % 3][None] / 2, (k % 3,)), y)
    return lax.while_loop(lambda y: xp.sum(y) > 5, lambda y: 0.9 * y - 0.1, y) + xp.arange(3.0) + jax.nn.relu(x)


def test_a_kernel_computes_all_that_it_may_have():
    with jax.enable_x64(True):
        x, A, unused = jax.numpy.arange(3.0), jax.numpy.arange(9.0).reshape(3, 3), jax.numpy.zeros((2, 2), bool)
        assert is_simple(everything, x, A)
        assert len({each.primitive.name for each in equations(jax.make_jaxpr(everything)(x, A).jaxpr)}) > 45

        def loop(x, fixed):
            A, hops, *_ = fixed
            return jax.lax.fori_loop(0, hops, lambda _, x: everything(x, A) % 3, x)

        def with_empty(state, fixed):
            return {"x": loop(state["x"], fixed), "none": state["none"]}

        state = {"none": jax.numpy.zeros((0, 2)), "x": x}
        kernel, _ = jax.jit(lambda *given: one_kernel(with_empty, *given))(state, (A, 5, None, unused))
        assert np.allclose(kernel["x"], loop(x, (A, 5)), rtol=1e-12)
        assert kernel["none"].shape == (0, 2)


@pytest.mark.parametrize("method", [amble.APIBCD(tokens=3), amble.Relay(tokens=2), amble.DGD()], ids=lambda m: m.label)
def test_nothing_is_compiled_again_for_the_same_shape(method):
    def run(method, problem, **options):
        amble.simulate(method, problem, "ring", walk="cycle", progress=False, **options)

    run(method, FEW, hops=200)
    before = len(COMPILED)
    other = amble.Problem.from_arrays(
        np.random.default_rng(1).normal(size=(40, P - 1)), np.arange(40.0) ** 2, agents=20
    )
    changed = replace(method, tau=0.7) if hasattr(method, "tau") else method
    run(changed, other, hops=340, seed=5, every=7)
    begun = amble.simulate(method, FEW, "ring", walk="cycle", hops=100, progress=False)
    amble.resume(begun, FEW, hops=220, progress=False)
    assert len(COMPILED) == before


@pytest.mark.parametrize("p", [1, 2, 7, 32, 40])
def test_the_solver_of_small_systems_solves(p):
    rng = np.random.default_rng(p)
    X = rng.normal(size=(3 * p, p))
    scale = 1 / np.sqrt((X * X).sum(axis=0))
    A, b = scale[:, None] * (X.T @ X) * scale, rng.normal(size=p)
    with jax.enable_x64(True):
        x = np.asarray(jax.jit(lambda A, b: solver(A)(b))(A, b))
    assert np.abs(A @ x - b).max() < 1e-12 * np.linalg.cond(A)
    assert np.array_equal(solver(A)(b), np.linalg.solve(A, b))


TWO_RUNS = """
import jax, amble
counts = {"cache_hits": 0, "cache_misses": 0}
def count(event, **_):
    name = event.rpartition("/")[2]
    if name in counts:
        counts[name] += 1
jax.monitoring.register_event_listener(count)
problem = amble.split(amble.load("diabetes"), agents=20)
runs = [amble.simulate(method, problem, hops=60, progress=False) for method in (amble.APIBCD(), amble.DGD())]
assert jax.config.jax_persistent_cache_min_compile_time_secs == float(__import__("sys").argv[1])
print(jax.config.jax_compilation_cache_dir, *counts.values(), *[run.model.sum() for run in runs])
"""


def second_process(**chosen):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    command = [sys.executable, "-c", TWO_RUNS, chosen.get("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "1")]
    done = subprocess.run(command, env={**kept, **chosen}, capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.split()


def test_a_second_process_compiles_nothing_and_the_user_s_settings_stay(tmp_path):
    folder = tmp_path / "cache"
    chosen, _, compiled_now, *models = second_process(AMBLE_CACHE=str(folder))
    assert chosen == "None"
    assert int(compiled_now) == 7  # one for a schedule, and three per method: a start, a loop and a model
    chosen, read, compiled_now, *again = second_process(AMBLE_CACHE=str(folder))
    assert (chosen, compiled_now, again) == ("None", "0", models)
    assert int(read) == 7
    (machine,) = folder.iterdir()
    assert all(path.is_file() for path in machine.iterdir())  # the folders of both processes are gone


def test_a_cache_that_the_user_has_chosen_is_left_alone(tmp_path):
    theirs = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "theirs"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    assert second_process(AMBLE_CACHE=str(tmp_path / "ours"), **theirs)[0] == str(tmp_path / "theirs")
    assert not (tmp_path / "ours").exists()


def test_no_cache_where_it_is_switched_off_or_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert open_cache("off") is None
    assert open_cache(str(tmp_path / "file")) is None


def test_what_is_kept_is_whole_and_not_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr("amble.compiling.kept.PROGRAMS_MAX", 2)
    first = open_cache(str(tmp_path))
    for k in range(4):
        path = first.kept / f"{k}-cache"
        path.write_bytes(bytes(10))
        os.utime(path, (k, k))
    open_cache.cache_clear()
    second = open_cache(str(tmp_path))
    names = sorted(path.name for path in first.kept.glob("*-cache"))
    assert names == ["2-cache", "3-cache"] == sorted(os.listdir(second.own))
    (second.own / "4-cache").write_bytes(b"whole")
    keep(second)
    assert (first.kept / "4-cache").read_bytes() == b"whole"


def test_a_visit_that_xla_cannot_compile_as_one_kernel_is_compiled_without():
    """The inexact form of Relay on logistic rows of 100 columns: XLA fuses a sum over the rows in a way that it cannot
    put into a kernel."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 100))
    labels = (X[:, 0] + rng.normal(size=600) > 0).astype(int)
    problem = amble.Problem.from_arrays(X, labels, task="classification", agents=4, ridge=1e-2)
    both = [
        amble.simulate(amble.Relay(form="inexact"), problem, "ring", hops=40, engine=engine, progress=False)
        for engine in ("compiled", "plain")
    ]
    np.testing.assert_allclose(both[0].consensus, both[1].consensus, rtol=0, atol=1e-12)
