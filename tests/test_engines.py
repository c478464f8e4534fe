"""Two engines, the same numbers: every method on every objective, compiled and plain."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import amble
from amble import AmbleError, engines, networks
from amble.arrays import named_leaves

N = 5
METHODS = {
    "I-BCD": amble.IBCD(tau=0.7),
    "API-BCD, published": amble.APIBCD(tau=0.3, tokens=3),
    "API-BCD, scaled": amble.APIBCD(tau=0.3, tokens=3, token_rule="scaled"),
    "API-BCD, tracked": amble.APIBCD(tau=0.3, tokens=3, token_rule="tracked"),
    "gAPI-BCD": amble.GAPIBCD(tau=0.3, tokens=2),
    "WPG": amble.WPG(alpha=0.1),
    "SyncWalks": amble.SyncWalks(tau=0.2, tokens=2),
}


def rows_of(kind):
    """Unlike agents: 47 rows do not divide by 5, so some agents are padded."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(47, 3)) * [1, 3, 0.5] + [0, 1, -1]
    score = X @ [1.0, -0.5, 2.0] + rng.normal(size=47)
    labels = {"least squares": score, "logistic": score > 0, "softmax": np.digitize(score, [-1, 1])}
    return X, labels[kind]


def make_problem(kind, agents=N):
    X, y = rows_of(kind)
    task = "regression" if kind == "least squares" else "classification"
    return amble.Problem.from_arrays(X, y, task=task, agents=agents, ridge=1e-2)


PROBLEMS = {kind: make_problem(kind) for kind in ("least squares", "logistic", "softmax")}
NETWORK = networks.random(N, 0.7, seed=0)


def limits_of(method, hops):
    return {"rounds": hops // N} if isinstance(method, amble.SyncWalks) else {"hops": hops}


def go(method, problem, hops=120, network=NETWORK, **options):
    return amble.simulate(method, problem, network, seed=3, **{"every": 4, **limits_of(method, hops), **options})


def arrays_of(run):
    """Every array of a run by name."""
    state = {
        f"{part}.{name}": leaf
        for part in ("agents", "slots", "tokens")
        for name, leaf in (getattr(run.state, part)._asdict() if getattr(run.state, part) else {}).items()
    }
    named = {"recorded": run.recorded, "consensus": run.consensus, "local": run.local, "x_sum": run.state.x_sum}
    schedule = {name: column for name, column in run.schedule._asdict().items() if column is not None}
    return {**state, **named, **run.history, **schedule}


def assert_same_bits(one, other):
    first, second = arrays_of(one), arrays_of(other)
    assert first.keys() == second.keys()
    for name in first:
        assert np.array_equal(first[name], second[name], equal_nan=True), name


def assert_close(one, other):
    scale = np.abs(other).max()
    assert scale > 0
    assert np.abs(one - other).max() <= 1e-9 * scale


@pytest.mark.parametrize("kind", PROBLEMS)
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_compiled_and_plain_agree_at_every_record(method, kind):
    compiled, plain = (go(method, PROBLEMS[kind], engine=engine) for engine in ("compiled", "plain"))
    assert len(compiled.recorded) >= 7
    assert np.array_equal(compiled.recorded, plain.recorded)
    for k in range(1, len(compiled.recorded)):
        assert_close(compiled.consensus[k], plain.consensus[k])
        assert_close(compiled.local[k], plain.local[k])
    assert_close(compiled.models, plain.models)
    assert_close(compiled.models.mean(axis=0), compiled.local[-1])


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("kind", ["least squares", "logistic"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_the_same_seed_gives_the_same_bits(method, kind, engine):
    hops = 40
    assert_same_bits(*(go(method, PROBLEMS[kind], hops, engine=engine) for _ in range(2)))


def test_another_seed_gives_another_run():
    one, other = (amble.simulate(amble.IBCD(), PROBLEMS["logistic"], NETWORK, hops=33, seed=seed) for seed in (0, 1))
    assert not np.array_equal(one.model, other.model)


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("kind", ["least squares", "logistic"])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_run_in_pieces_has_the_bits_of_a_run_in_one(method, kind, engine):
    run = go(method, PROBLEMS[kind], 60)
    hops = run.schedule.hops
    machine = engines.engine_for(engine, method, PROBLEMS[kind], NETWORK, meets=run.meets)
    whole = machine.advance(machine.start(), run.schedule, 0, hops).on_numpy()
    state, cuts = machine.start(), [0, 1, hops // 3, hops // 3, hops - 2, hops]
    for begin, end in pairwise(cuts):
        state = machine.advance(state, run.schedule, begin, end)
    pieces = state.on_numpy()
    one, other = named_leaves(whole, "state"), named_leaves(pieces, "state")
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("method", [METHODS["API-BCD, tracked"], METHODS["SyncWalks"]], ids=lambda m: m.label)
def test_recording_more_often_changes_no_bits(method):
    seldom, often = (go(method, PROBLEMS["logistic"], every=every) for every in (12, 1))
    shared = np.isin(often.recorded, seldom.recorded)
    assert np.array_equal(often.consensus[shared], seldom.consensus)
    assert np.array_equal(often.models, seldom.models)


def test_a_block_of_the_compiled_engine_ends_without_a_trace():
    """Longer than one block of hops, and so slow that every hop still shows."""
    from amble.engines.compiled import BLOCK

    method, problem = amble.WPG(alpha=1e-6), PROBLEMS["least squares"]
    long, short = (go(method, problem, hops, every=BLOCK // 2) for hops in (BLOCK + 40, BLOCK))
    by_hand = engines.engine_for("plain", method, problem, short.network).advance(
        short.state, long.schedule, BLOCK, BLOCK + 40
    )
    assert np.array_equal(long.consensus[:3], short.consensus)
    assert_close(long.models, by_hand.agents.x)


class Pulled:
    """An objective of one's own, plain Python, with only what the methods call: a/2 |w - c|^2."""

    def __init__(self, a, c):
        self.a, self.c = a, np.asarray(c, float)

    def value(self, w):
        return 0.5 * self.a * np.sum((w - self.c) ** 2)

    def grad(self, w):
        return self.a * (w - self.c)

    def prox(self, center, weight, start):
        assert start.shape == self.c.shape
        return (self.a * self.c + weight * center) / (self.a + weight)


def own_problem():
    rng = np.random.default_rng(1)
    pulls = zip(rng.random(N), rng.normal(size=(N, 4)), strict=True)
    return amble.Problem.from_objectives([Pulled(a, c) for a, c in pulls], dimension=4)


def least_squares_problem():
    """The same losses as built-in objectives."""
    each = [amble.LeastSquares.build(np.eye(4), f.c, np.full(4, f.a), np.zeros(4)) for f in own_problem().own]
    return amble.Problem.from_objectives(each, dimension=4)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_objectives_of_one_s_own_run_on_the_plain_engine(method):
    if isinstance(method, amble.GAPIBCD):  # its default rho is the smoothness, which these objectives do not know
        method = replace(method, rho=2.0)
    timing = {"compute": 1e-6}  # the cost model counts the built-in objective's operations, and cannot count ours
    own, built_in = (go(method, problem, timing=timing) for problem in (own_problem(), least_squares_problem()))
    assert np.array_equal(own.schedule.time_s, built_in.schedule.time_s)
    assert_close(own.consensus, built_in.consensus)
    assert_close(own.models, built_in.models)


def test_the_optimum_of_objectives_of_one_s_own():
    problem = own_problem()
    a, c = np.array([f.a for f in problem.own]), np.array([f.c for f in problem.own])
    assert np.allclose(problem.optimum().w, a @ c / a.sum(), atol=1e-7)


def test_the_compiled_engine_refuses_objectives_of_one_s_own():
    with pytest.raises(AmbleError, match="built-in objectives and JaxLoss only; use engine='plain'"):
        go(amble.IBCD(), own_problem(), engine="compiled")


@pytest.mark.parametrize(
    ("kind", "engine"),
    [("least squares", "compiled"), ("least squares", "plain"), ("logistic", "compiled"), ("softmax", "plain")],
)
def test_one_agent_with_one_token_is_the_centralised_baseline(kind, engine):
    problem = make_problem(kind, agents=1)
    run = amble.simulate(amble.IBCD(tau=1e-3), problem, networks.ring(1), hops=40, engine=engine)
    assert np.allclose(run.model, problem.optimum().w, rtol=1e-7, atol=1e-9)
    assert run.history["comm_units"][-1] == 0
    assert run.history["suboptimality"][-1] < 1e-12


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_more_tokens_than_agents_warns_and_works(engine):
    method = amble.APIBCD(tau=0.5, tokens=7, token_rule="tracked")
    with pytest.warns(UserWarning, match="7 tokens for 5 agents"):
        run = go(method, PROBLEMS["least squares"], 2000, engine=engine, every=1000)
    assert set(run.schedule.token.tolist()) == set(range(7))
    assert run.state.tokens.total.shape == (7, 4)
    assert run.history["distance"][-1] < 0.2


def test_as_many_tokens_as_agents_do_not_warn():
    run = go(amble.APIBCD(tokens=5), PROBLEMS["least squares"], 20, engine="plain")  # warnings are errors here
    assert set(run.schedule.token.tolist()) == set(range(5))


def test_numbers_given_as_whole_numbers_or_numpy_s_are_the_same_settings():
    runs = [go(amble.IBCD(tau=tau), PROBLEMS["least squares"], 20) for tau in (2.0, 2, np.float64(2))]
    assert np.array_equal(runs[0].model, runs[1].model)
    assert np.array_equal(runs[0].model, runs[2].model)
