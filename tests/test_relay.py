"""Relay, tokens that share an account, the walk made for them, and tuning, against independent answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amble
from amble import AmbleError, methods, networks
from amble.arrays import named_leaves
from amble.losses import LeastSquares
from amble.methods import relay_dual
from amble.methods.boards import BoardRules
from amble.methods.gifts import GiftRules
from amble.networks import walks
from amble.simulation import tuning
from rival_samples import (
    BOARDED,
    NETWORK,
    NETWORKS,
    PROBLEM,
    ROUND,
    SETTING,
    TUNED,
    A,
    Bare,
    BareHessian,
    BareProx,
    N,
    P,
    Pulled,
    WithHessian,
    WithProx,
    as_rows,
    assert_closed_walks,
    conditioned,
    go,
    grads,
    hop_by_hop,
    make_problem,
    own_problem,
    relative,
    some_examples,
)


@pytest.fixture
def pilots(monkeypatch):
    """(visits, whether it diverged) of each pilot run that tuning makes."""
    made, run_once = [], tuning.run_once

    def counted(method, problem, network, **options):
        run = run_once(method, problem, network, **options)
        made.append((options["hops"], run.history["hop"][-1], run.stopped))
        return run

    monkeypatch.setattr(tuning, "run_once", counted)
    return made


@pytest.mark.parametrize(("agents", "features", "rows"), [(8, 5, 12), (8, 5, 2), (60, 40, 1)])
def test_full_relay_solves_as_it_walks(agents, features, rows):
    """Least squares: after k agents the token holds the exact minimiser of those agents' loss, for every k; while their
    rows are fewer than the unknowns there are many, and it is at one of them. Exact is 1e-9 here."""
    problem, _, _ = conditioned(10.0, agents, features, rows, seed=1)
    network = networks.complete(agents)
    run = go(amble.Relay(form="full"), problem, network, hops=agents, every=1, engine="plain")
    assert sorted(run.schedule.agent.tolist()) == list(range(agents))
    assert not run.consensus[0].any()
    for k in range(1, agents + 1):
        inside = run.schedule.agent[:k]
        gram, right = problem.stacked.A[inside].sum(axis=0), problem.stacked.b[inside].sum(axis=0)
        z = run.consensus[k]
        off = np.linalg.pinv(gram, rcond=1e-10) @ (gram @ z - right)  # the way to the nearest minimiser
        assert np.linalg.norm(off) < 1e-9 * np.linalg.norm(z), k


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("rows", [10, 1])
@pytest.mark.parametrize("condition", [1e1, 1e3, 1e6])
def test_full_relay_is_at_the_optimum_after_one_lap(condition, rows, engine):
    """Within 1e-9 of the centralised optimum after one lap, with nothing set, for a Gram condition up to 1e6; agents
    may have fewer rows than features. The optimum is LAPACK's, from the rows."""
    features, agents = 6, 9
    for seed in range(3):
        problem, X, y = conditioned(condition, agents, features, rows, seed)
        best = np.linalg.lstsq(X, y, rcond=None)[0]
        run = go(amble.Relay(), problem, networks.complete(agents), hops=agents, every=agents, engine=engine)
        assert run.method.form == "full"
        assert run.history["distance"][-1] < 1e-9
        assert relative(run.model, best) < 1e-9


@some_examples
@given(seed=st.integers(0, 2**32 - 1), condition_log=st.floats(0, 6), size_log=st.floats(-4, 4), rows=st.integers(1, 9))
def test_full_relay_after_one_lap_whatever_the_data(seed, condition_log, size_log, rows):
    """The same for any size of the features, and for two laps: a second lap adds nothing."""
    problem, _, _ = conditioned(10**condition_log, 7, 5, rows, seed)
    size = 10**size_log
    objectives = [problem.objective(i) for i in range(7)]
    sized = [LeastSquares.build(*as_rows(f, size), np.ones(5), np.zeros(5)) for f in objectives]
    problem = amble.Problem.from_objectives(sized, 5)
    run = go(amble.Relay(), problem, networks.ring(7), hops=14, every=7, engine="plain")
    assert (run.history["distance"][1:] < 1e-9).all()


@pytest.mark.parametrize("tokens", [1, 3])
def test_scalar_relay_ends_where_duals_cancel(tokens):
    """Fixed point: every x_i = z, sum y_i = 0; each y_i is agent i's slope there."""
    run = go(amble.Relay(tokens=tokens, form="scalar"), hops=4000, every=4000)
    duals = run.state.agents if tokens == 1 else run.state.agents.own
    size = np.abs(duals.y).sum(axis=0).max()
    assert np.abs(duals.y.sum(axis=0)).max() < 1e-9 * size
    assert size > 1
    assert relative(duals.x, np.tile(run.model, (N, 1))) < 1e-9
    assert relative(duals.y, grads(duals.x)) < 1e-8


def test_beta_stays_within_its_bounds_and_is_frozen_at_the_end():
    """Within 1e-3 .. 1e3 of the curvature, and frozen once both residuals are below 1e-9 |z|."""
    curvature = np.trace(A, axis1=1, axis2=2) / P
    for tokens in (1, 3):
        method = amble.Relay(tokens=tokens, form="scalar")
        betas = []
        for _, _, state in hop_by_hop(method, 1600):
            beta = (state.agents if tokens == 1 else state.agents.own).beta
            betas.append(beta.copy())
        betas = np.array(betas)
        assert (betas >= curvature / 1e3 * (1 - 1e-12)).all()
        assert (betas <= curvature * 1e3 * (1 + 1e-12)).all()
        assert (betas.max(axis=0) > betas.min(axis=0)).any()
        assert (betas[-400:] == betas[-1]).all()


@pytest.mark.parametrize("end", ["high", "low"])
def test_beta_stops_at_its_bounds(end):
    """r > 3 s pushes beta up, s > 3 r down; neither beyond a factor 1e3 of the curvature."""
    f, z = PROBLEM.objective(0), np.full(P, 3.0)
    curvature = float(f.curvature)
    nearest = np.linalg.solve(f.A, f.b)
    z = z if end == "high" else nearest  # there the prox stays at z, and r = 0
    z_last = z if end == "high" else z + 1.0
    agent = relay_dual.Dual(z, np.zeros(P), np.float64(curvature), z_last, np.float64(1))
    seen = []
    for _ in range(40):
        agent, _, _ = relay_dual.scalar(f, agent._replace(y=np.zeros(P), z=z_last), z)
        seen.append(float(agent.beta))
    bound = curvature * (1e3 if end == "high" else 1e-3)
    assert np.isclose(seen[-1], bound, rtol=1e-12)
    assert np.isclose(seen[0], curvature * (1.5 if end == "high" else 1 / 1.5))


@pytest.mark.parametrize("walk", ["stretches", "cycles", "metropolis"])
@pytest.mark.parametrize("name", BOARDED)
def test_ledgers_sum_to_gifts_and_versions_count_visits(name, walk):
    """The sum of all ledgers is the sum of all gifts; a ledger's version counts its token's visits; what a board holds
    of another token is what that token's ledger was at that version: old perhaps, never wrong."""
    method, M = BOARDED[name], 3
    visits, ledgers, met = np.zeros(M), {}, set()
    for i, m, state in hop_by_hop(method, 90, walk=walk):
        visits[m] += 1
        board, own = state.tokens.board, np.arange(M)
        assert np.array_equal(board.version[own, own], visits)
        total, given = board.total[own, own].sum(axis=0), state.agents.given
        assert np.allclose(total, given.v.sum(axis=0), rtol=0, atol=1e-11 * np.abs(given.v).sum())
        weight = board.weight[own, own].sum(axis=0)
        expected = N if method.weigh == "agents" else given.w.sum(axis=0)
        assert np.allclose(weight, expected, rtol=1e-11, atol=1e-12)
        ledgers[m, visits[m]] = board.total[m, m].copy()
        assert np.array_equal(state.agents.board.version[i], board.version[m])  # both leave with the same board
        for other in range(M):
            assert board.version[m, other] <= visits[other]
        known = [other for other in range(M) if board.version[m, other] > 0]
        met |= {(m, other) for other in known}
        for other in known:
            assert np.array_equal(board.total[m, other], ledgers[other, board.version[m, other]])
    assert len(met) == M * M


@pytest.mark.parametrize("form", ["full", "scalar", "gradient"])
def test_a_board_of_one_token_is_the_plain_account(form):
    """With M = 1 the board is one ledger: the same gifts and estimates as without boards."""
    method, zero = amble.Relay(form=form), np.zeros(P)
    one, other = GiftRules(method), BoardRules(method)
    f = [PROBLEM.objective(i) for i in range(N)]

    def models(rule):
        agents, slots = [rule.agent(each, zero) for each in f], [rule.slot(zero) for _ in f]
        token = rule.token(zero, N, 0)
        for k in range(40):
            i = k * 3 % N
            agents[i], slots[i], token = rule.visit(f[i], agents[i], slots[i], token)
            yield rule.estimate(token), agents[i].x

    assert np.allclose(list(models(one)), list(models(other)), rtol=1e-12, atol=1e-14)


def test_bytes_of_a_message():
    """Eight bytes a number. p for methods that normalise by N; p + 1 with a weight; p + p(p+1)/2 with a matrix; as
    many with M tokens that meet; on other walks M ledgers, each with its version."""
    numbers = {
        amble.IBCD(): P,
        amble.APIBCD(tokens=3): P,
        amble.WADMM(): P,
        amble.PWADMM(tokens=3): P,
        amble.DGD(): P,
        amble.FedAvg(): P,
        amble.Relay(form="scalar"): P + 1,
        amble.Relay(form="gradient"): P + 1,
        amble.Relay(form="full"): P + P * (P + 1) // 2,
        amble.WPG(tokens=3): P,
        amble.Relay(tokens=3, form="scalar"): P + 1,
        amble.Relay(tokens=3, form="full"): P + P * (P + 1) // 2,
    }
    boards = {amble.WPG(tokens=3): 3 * (P + 1), amble.Relay(tokens=3, form="full"): 3 * (P + P * (P + 1) // 2 + 1)}
    for walk, method, each in [("auto", *pair) for pair in numbers.items()] + [
        ("cycles", *pair) for pair in boards.items()
    ]:
        run = go(method, hops=20, engine="plain", every=20, walk=walk)
        assert methods.message_numbers(method, P, meets=run.meets) == each
        assert run.message_bytes == 8 * each
        assert run.history["bytes"][-1] == 8 * each * run.history["comm_units"][-1] > 0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(agents=st.integers(1, 12), tokens=st.integers(1, 16), density=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_stretches_are_closed_walks_along_links_through_all(agents, tokens, density, seed):
    """One closed walk cut into M stretches, one a token: along links, closed, and together they cover all agents,
    with more tokens than agents too."""
    least = 2 / agents + 0.01
    network = networks.random(agents, min(1.0, max(least, density)), seed) if agents > 3 else networks.complete(agents)
    assert_closed_walks(network, tokens, seed)


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("tokens", [1, 2, 5, 6, 13])
def test_stretches_on_networks_without_a_cycle(network, tokens):
    """The closed walk of a star or a tree passes some agents often; a stretch of one such agent must still lead on."""
    assert_closed_walks(network, tokens, seed=0)


def test_no_token_waits_and_leaves_the_others_no_time():
    """A star of six agents, six tokens, time in hops: every token takes its turns, and the optimum is found."""
    run = go(amble.Relay(tokens=6), make_problem(6), NETWORKS["star"], hops=400, every=400, timing="unit", seed=0)
    assert np.bincount(run.schedule.token, minlength=6).min() > 20
    assert run.history["distance"][-1] < 1e-9


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
@pytest.mark.parametrize("name", ["stretches", "meeting"])
def test_one_stretch_is_the_cycle(network, name):
    one, other = (walks.walk_for(name, network, 1, 5) for name in (name, "cycle"))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_tokens_that_share_an_account_meet():
    """The walk is by default the cycle, and `meeting` for tokens that share an account."""
    chosen = {amble.Relay(): "cycle", amble.Relay(tokens=3): "meeting", amble.WPG(tokens=2): "meeting"}
    for method, walk in {**chosen, amble.APIBCD(tokens=3): "cycle", amble.PWADMM(tokens=3): "cycle"}.items():
        assert go(method, hops=20, engine="plain").walk == walk


def test_more_tokens_than_agents_share_an_account():
    with pytest.warns(UserWarning, match="11 tokens for 8 agents"):
        run = go(amble.Relay(tokens=11), hops=400, every=400)
    assert set(run.schedule.token.tolist()) == set(range(11))
    assert run.history["distance"][-1] < 1e-9


@pytest.mark.parametrize("name", TUNED)
def test_tuning_chooses_what_converges_under_the_same_budget(name, pilots, tmp_path):
    """`tune` chooses each method's step or penalty by a search on pilot runs under a budget of hops, the same for every
    method, and records it in the run."""
    method = TUNED[name]
    run = amble.simulate(method, PROBLEM, NETWORK, hops=8000, every=8000, tune=True, seed=3, progress=False)
    setting = SETTING.get(name, "rho" if name == "D-ADMM" else "tau")
    record = run.tuning
    chosen = getattr(run.method, setting)
    short = [pilot for pilot in pilots if pilot[0] == 50 * N]
    assert 13 <= len(short) == len(record["tried"]) <= 17  # nine, four between, and up to four beyond an end
    assert record["hops"] == 50 * N
    assert {visits for _, visits, stopped in short if stopped != "diverged"} == {50 * N}
    assert pilots[-1] == (
        1000 * N,
        1000 * N,
        "rounds" if methods.is_round(method) else "hops",
    )  # it holds twenty times as long
    assert {asked for asked, _, _ in pilots[len(short) :]} == {1000 * N}
    assert len(pilots) == len(short) + len(record["refused"]) + 1
    assert (record["setting"], record["chosen"]) == (setting, chosen)
    left = [key for key in record["ranked"] if key not in (*record["rising"], *record["refused"])]
    assert f"{chosen:g}" == left[0]
    fall = PROBLEM.value(np.zeros(P)) - min(record["tried"][key] for key in left)
    assert record["tried"][left[0]] <= min(record["tried"][key] for key in left) + 1e-3 * fall
    assert run.stopped in ("hops", "rounds")
    zero = PROBLEM.value(np.zeros(P))
    assert run.history["suboptimality"][-1] < 1e-2 * (zero - PROBLEM.optimum().value)
    run.save(tmp_path / "run")
    loaded = amble.load_run(tmp_path / "run")
    assert (loaded.tuning, loaded.method) == (record, run.method)


def test_pilots_that_diverge_are_never_chosen(pilots):
    """Most of the grid makes WPG diverge; a step that was tried and does not is taken, and holds in a long run."""
    _, record = tuning.tune(amble.WPG(), PROBLEM, NETWORK, walk="cycle", timing="paper", seed=3, engine="auto")
    assert any(stopped == "diverged" for _, _, stopped in pilots)
    assert None in record["tried"].values()
    long = go(amble.WPG(alpha=record["chosen"]), hops=20_000, every=20_000)
    assert long.stopped == "hops"
    assert long.history["distance"][-1] < 1e-8


@pytest.mark.parametrize("kind", [amble.DGD, amble.EXTRA])
def test_tuned_gossip_does_not_tear_its_agents_apart(kind):
    """No method is shown with a diverging setting: where all agents have the same curvature the mean of the x_i moves
    as if they agreed, and a step may look best by it while the x_i run away from each other."""
    rng = np.random.default_rng(0)
    curvatures = np.array([1.0, 0.05, 0.2, 0.5])
    each = [LeastSquares.build(np.eye(P), 1 + rng.normal(size=P), curvatures, np.zeros(P)) for _ in range(N)]
    problem, ring = amble.Problem.from_objectives(each, P), networks.ring(N)
    tuned = go(kind(), problem, ring, hops=80, tune=True)
    long = go(tuned.method, problem, ring, rounds=1000, every=1000)  # warns, if it diverges
    assert long.stopped == "rounds"
    assert np.abs(long.models).max() < 1e3


def test_relay_has_nothing_to_tune(pilots):
    for form in ("full", "scalar", "gradient"):
        run = amble.simulate(
            amble.Relay(form=form), PROBLEM, NETWORK, hops=20, tune=True, engine="plain", progress=False
        )
        assert (run.tuning, run.method) == ({}, amble.Relay(form=form))
    assert pilots == []


@pytest.mark.parametrize(("kind", "form"), [(WithHessian, "full"), (WithProx, "scalar"), (Pulled, "gradient")])
def test_auto_relay_takes_the_form_that_objectives_of_one_s_own_allow(kind, form):
    """auto takes full where there is a Hessian, then scalar where there is a prox, gradient where nothing else goes."""
    problem, best = own_problem(kind)
    run = go(amble.Relay(), problem, hops=1500, every=1500)
    assert run.method.form == form
    assert relative(run.model, best) < 1e-8


@pytest.mark.parametrize(
    ("kind", "method", "missing"),
    [
        (Bare, amble.Relay(form="gradient"), "smoothness"),
        (BareHessian, amble.Relay(form="full"), "curvature"),
        (BareProx, amble.Relay(form="scalar"), "curvature"),
        (Pulled, amble.Relay(form="full"), "hessian"),
        (Pulled, amble.Relay(form="scalar"), "prox"),
        (Bare, amble.GAPIBCD(tokens=2), "smoothness"),
    ],
)
def test_what_objectives_of_one_s_own_lack_is_said(kind, method, missing):
    """An error says what was given, what was expected and what to do, and is raised before any work starts."""
    with pytest.raises(AmbleError, match=f"{method.label}.*{missing}"):
        go(method, own_problem(kind)[0], hops=20)


@pytest.mark.parametrize("name", ROUND)
def test_round_methods_take_objectives_of_one_s_own(name):
    """An objective of your own needs `grad` or `prox`, whichever the method calls, and `value`: nothing more."""
    problem, best = own_problem(BareProx)
    run = go(ROUND[name], problem, rounds=300, every=300)
    assert relative(run.model, best) < 1e-3


def test_auto_relay_is_full_up_to_500_unknowns():
    """Full up to 500 unknowns, a message of 1 MB, if the gifts of all agents fit in 1 GB; then scalar."""
    for features, agents, form in ((500, 2, "full"), (501, 2, "scalar"), (500, 500, "full"), (500, 501, "scalar")):
        eye = np.eye(features)
        f = LeastSquares(eye, eye[0], np.float64(0), np.ones(features), eye, np.float64(1))
        chosen = amble.Relay().for_problem(amble.Problem.from_objectives([f] * agents, features))
        assert chosen.form == form
    assert 8 * methods.message_numbers(amble.Relay(form="full"), 500) == 1_006_000


def test_relay_carries_no_number_of_agents():
    """No agent knows N: a token that starts empty is the same for any number of agents."""
    for form in ("full", "scalar", "gradient"):
        for tokens in (1, 3):
            rule = methods.rules(amble.Relay(tokens=tokens, form=form))
            few, many = (named_leaves(rule.token(np.zeros(P), agents, 0), "token") for agents in (2, 1000))
            assert all(np.array_equal(few[key], many[key]) for key in few)
