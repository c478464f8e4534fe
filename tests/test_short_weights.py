"""Full Relay with matrices that travel in float32: as exact as float64, exactly what is sent, and half the bytes."""

from dataclasses import replace

import numpy as np
import pytest

import amble
from amble import AmbleError, methods, networks
from amble.live.cluster import up
from amble.live.core.message import Epoch, Token
from amble.live.core.packing import Packing, flat
from amble.live.core.short import Short, ShortPacking
from amble.live.core.visits import visits_for
from amble.live.formats import wire
from amble.live.records import collect
from amble.losses import LOSSES
from amble.methods.rounding import rounded
from amble.simulation.experiment import Experiment, parse
from loss_samples import targets
from rival_samples import PROBLEM, go, hop_by_hop
from test_live_own import killed_and_back

FULL, SHORT = amble.Relay(form="full"), amble.Relay(form="full", message="float32")
NETWORK = networks.random(8, 0.6, seed=1)
LOGISTIC = amble.split(amble.load("breast_cancer"), agents=8, ridge=1e-3)
WALKS = {"one": (1, "cycle"), "boards": (3, "cycles"), "meetings": (3, "meeting")}


def is_float32(numbers):
    return np.array_equal(rounded(numbers, "float32"), numbers)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize("problem", [PROBLEM, LOGISTIC], ids=["squares", "logistic"])
def test_the_optimum_is_as_near_as_without_rounding(problem, walk):
    """To 1e-11, one lap later at most: what rounding adds to a weight is in the gifts, with the slopes kept."""
    tokens, walk = WALKS[walk]
    whole, less = (
        go(
            amble.Relay(tokens=tokens, form="full", message=kind),
            problem,
            NETWORK,
            hops=400,
            every=1,
            walk=walk,
            engine="plain",
        )
        for kind in ("float64", "float32")
    )
    reached, near = (
        [int(np.flatnonzero(run.history["distance"] > distance)[-1]) for run in (whole, less)]
        for distance in (1e-11, 1e-6)
    )
    assert reached[0] < 300
    assert reached[1] - reached[0] <= 8 * tokens
    assert near[1] - near[0] <= 2 * tokens
    assert not np.array_equal(whole.model, less.model)
    p = problem.dimension
    ledgers = {"cycles": 3}.get(walk, 1)
    assert less.message_bytes == ledgers * (8 * p + 4 * (p * (p + 1) // 2)) + 8 * (ledgers if walk == "cycles" else 0)
    assert whole.message_bytes - less.message_bytes == ledgers * 4 * (p * (p + 1) // 2)


@pytest.mark.parametrize("walk", WALKS)
def test_engines_agree(walk):
    tokens, walk = WALKS[walk]
    runs = [
        go(replace(SHORT, tokens=tokens), LOGISTIC, NETWORK, hops=60, every=60, walk=walk, engine=engine)
        for engine in ("plain", "compiled")
    ]
    np.testing.assert_allclose(
        runs[0].model, runs[1].model, rtol=1e-6
    )  # the last digits decide how a number is rounded
    for run in runs:
        tokens = run.state.tokens
        assert is_float32(np.asarray(tokens.board.weight if walk == "cycles" else tokens.weight))


def test_what_is_given_is_what_the_tokens_hold():
    """After every hop the token's weight is the sum of all gifts' weights, and each slope w x - v is the agent's."""
    for i, _, state in hop_by_hop(SHORT, 60):
        v, w = state.slots.v[:, 0], state.slots.w[:, 0]
        np.testing.assert_allclose(w.sum(axis=0), state.tokens.weight[0], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(v.sum(axis=0), state.tokens.total[0], rtol=1e-12, atol=1e-12)
        x, f = state.agents.x[i], PROBLEM.objective(i)
        np.testing.assert_allclose(w[i] @ x - v[i], f.grad(x), rtol=1e-9, atol=1e-12)


def few_rows(agents=30, p=12):
    """One row per agent: most of the first lap the account is singular."""
    rng = np.random.default_rng(0)
    rows = [(rng.normal(size=(1, p)), rng.normal(size=1)) for _ in range(agents)]
    return amble.Problem.from_agents(rows, ridge=0.0, intercept=False, scale=False)


def collinear(agents=8, p=5):
    """The second column is the first, but for 1e-5."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(agents):
        X = rng.normal(size=(20, p))
        X[:, 1] = X[:, 0] + 1e-5 * rng.normal(size=20)
        rows.append((X, X @ np.ones(p) + 0.1 * rng.normal(size=20)))
    return amble.Problem.from_agents(rows, ridge=1e-7, intercept=False, scale=False)


@pytest.mark.parametrize("walk", WALKS)
@pytest.mark.parametrize(("make", "reached"), [(few_rows, 1e-9), (collinear, 1.0)])
def test_a_singular_account_leads_nobody_away(make, reached, walk):
    """Rounded weights are no less definite, so the model goes about as far off as in float64. When they were rounded to
    nearest, it went 1e7 and 1e51 times as far as the optimum is."""
    problem, (tokens, walk) = make(), WALKS[walk]
    options = {"hops": 4 * problem.agents * tokens, "every": 1, "walk": walk}
    whole, *runs = (
        go(replace(method, tokens=tokens), problem, networks.ring(problem.agents), engine=engine, **options)
        for method, engine in ((FULL, "plain"), (SHORT, "plain"), (SHORT, "compiled"))
    )
    for run in runs:
        assert run.history["distance"].max() < 3 * whole.history["distance"].max()
        assert run.history["distance"][-1] < reached


def test_a_lasso_has_its_minimiser():
    problem = amble.split(amble.load("diabetes"), agents=8, l1=0.05)
    whole, less = (go(method, problem, NETWORK, hops=40, engine="plain") for method in (FULL, SHORT))
    np.testing.assert_allclose(less.model, whole.model, rtol=1e-9, atol=1e-12)
    assert ((less.model == 0) == (whole.model == 0)).all()
    p = problem.dimension
    assert less.message_bytes == 8 * (p + 1) + 4 * (p * (p + 1) // 2)


def test_forms_without_a_matrix_refuse_it():
    for form in ("scalar", "gradient", "inexact"):
        with pytest.raises(
            AmbleError, match=f"message='float32' of Relay is for the matrices.*'{form}'.*leave message out"
        ):
            go(amble.Relay(form=form, message="float32"), LOGISTIC, NETWORK, hops=4)
    with pytest.raises(AmbleError, match=r"message of Relay.*float16.*float64"):
        amble.Relay(message="float16")
    assert methods.message_bytes(amble.Relay(form="scalar"), 10) == 88


# --- live -----------------------------------------------------------------------------------------------------------


def shape_of(method, p):
    visits = visits_for(method, p, 2)
    return visits, wire.Shape(wire.run_digest({}), ("a", "b"), method.tokens, visits.parcel(0), short=visits.short)


def sent(shape, parcel):
    data = wire.encode(shape, Token(0, Epoch(0, 0), 0, "a", parcel))
    assert len(data) <= shape.bytes_max
    np.testing.assert_array_equal(flat(wire.decode_question(shape, data, "a").payload), flat(parcel))
    return len(data)


def weighing(parcel, weight):
    account = parcel.token.account
    board = account.board._replace(weight=weight)
    return parcel._replace(token=parcel.token._replace(account=account._replace(board=board)))


@pytest.mark.parametrize("tokens", [1, 3])
def test_a_message_has_the_upper_halves(tokens):
    """In float64 too, where that saves a kilobyte or more. Matrices that do not fit are sent whole."""
    p, rng = 30, np.random.default_rng(0)
    A = rng.normal(size=(tokens, p, p))
    A = A + A.swapaxes(1, 2)
    visits, shape = shape_of(amble.Relay(tokens=tokens, form="full"), p)
    small, less = shape_of(amble.Relay(tokens=tokens, form="full", message="float32"), p)
    assert visits.short == {"token.account.board.weight": Short("float64", symmetric=True)}
    halves, whole = tokens * p * (p + 1) // 2, 8 * shape.parcel.numbers
    header = sent(shape, weighing(visits.parcel(0), A)) - (whole - 8 * (tokens * p * p - halves))
    assert sent(shape, weighing(visits.parcel(0), A + np.tri(p))) == header + whole
    assert (
        sent(less, weighing(small.parcel(0), rounded(A, "float32"))) == header + whole - 8 * tokens * p * p + 4 * halves
    )
    assert sent(less, weighing(small.parcel(0), A)) == header + whole
    assert len({shape.fingerprint, less.fingerprint}) == 2
    assert visits_for(amble.Relay(form="full"), 10, 2).short == {}  # 360 bytes
    assert visits_for(amble.Relay(form="scalar"), 100, 2).short == {}


@pytest.mark.parametrize("message", ["float64", "float32"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_message_of_every_loss_is_short(loss, message):
    """What an agent passes on fits, to the last digit: its matrices are symmetric, and in float32 if asked for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 20))
    eta = X @ rng.normal(size=20) / 5
    if loss in ("logistic", "softmax"):
        y = np.digitize(eta, [0.0] if loss == "logistic" else [-0.3, 0.3]) * 1.0
    else:
        y = eta if loss == "least-squares" else targets(loss, rng, eta, 1.0)
    kind = "classification" if loss in ("logistic", "softmax") else "regression"
    weight = rng.uniform(0.5, 2, len(y))
    problem = amble.Problem.from_arrays(X, y, agents=3, task=kind, loss=loss, ridge=1e-3, sample_weight=weight)
    visits = visits_for(amble.Relay(form="full", message=message), problem.dimension, 3)
    packing = ShortPacking(Packing(visits.parcel(0)), visits.short)
    losses = [problem.objective(i) for i in range(3)]
    holders, shares, parcel = [visits.holder(f) for f in losses], [visits.share()] * 3, visits.parcel(0)
    for hop in range(1, 10):
        i = hop % 3
        holders[i], shares[i], parcel = visits.visit(losses[i], holders[i], shares[i], parcel, i, hop, hop < 4)
        assert len(packing.pack(parcel)) == packing.size < packing.most


@pytest.mark.long
def test_a_live_run_in_float32_survives_kill_9(tmp_path):
    """Real processes, one killed while it trains and started again: the model is the optimum, and the replay equal."""
    chosen = {"data": "breast_cancer", "agents": 4, "network": "ring", "ridge": 1e-3}
    settings = Experiment().with_settings({**chosen, "methods": [parse("Relay:message=float32")]})
    plan = up.prepare(settings, {"hops": 10**6}, tmp_path / "run", False)
    plan, model = killed_and_back(plan, before=10, after=10)
    outcome = up.again(collect.agent_folders([plan.folder]), plan=plan)
    assert outcome.whole, outcome
    np.testing.assert_allclose(model.w, plan.problem.optimum().w, rtol=1e-9, atol=1e-11)
    run, p, places = amble.load_run(plan.folder / "run.json"), plan.problem.dimension, plan.config.room + 4
    assert run.method == amble.Relay(form="full", message="float32")
    # the matrix; the total and the model of a recount; five numbers per agent; and seven more
    assert run.message_bytes == 4 * (p * (p + 1) // 2) + 8 * (2 * p + 5 * places + 7)
