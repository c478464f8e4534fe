"""The paper, tested sentence by sentence: each docstring quotes what its test checks.

Hao Chen, Yu Ye, Ming Xiao, Mikael Skoglund: "Asynchronous Parallel Incremental Block-Coordinate Descent for
Decentralized Machine Learning".
Equations, theorems and algorithms have the paper's numbers; (12) is the group of API-BCD's three updates.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import kstest

import amble
from amble import engines
from paper_samples import (
    KINDS,
    TOKEN_RULES,
    argmin_with_penalties,
    fresh_hop,
    hidden_ridge_limit,
    hop_seconds,
    relative,
    simulate,
    some_problem,
    some_rows,
    tokens_of,
)


@pytest.mark.parametrize("kind", KINDS)
def test_local_loss_is_the_mean_over_local_data(kind):
    """Below eq. (2): "f_i(x_i) = 1/d_i sum_l l_i(x_i; xi_{i,l}) ... given its local training data D_i"."""
    rng = np.random.default_rng(1)
    task = "regression" if kind == "least squares" else "classification"
    held = [some_rows(kind, rng, d, 3) for d in (2, 9, 5)]
    held[0][1][:] = [0, 1]
    problem = amble.Problem.from_agents(held, task=task, ridge=0.0, intercept=False, scale=False, weights="agents")
    w = rng.normal(size=3)
    for i, (X, y) in enumerate(held):
        losses = (X @ w - y) ** 2 / 2 if kind == "least squares" else np.log(1 + np.exp(-(2 * y - 1) * (X @ w)))
        assert problem.objective(i).value(w) == pytest.approx(losses.mean(), rel=1e-12)
    assert problem.value(w) == pytest.approx(sum(problem.objective(i).value(w) for i in range(3)), rel=1e-12)  # eq. (1)


def test_larger_tau_brings_the_problems_together():
    """Below eq. (3): "a larger tau implies better agreement between the problems"."""
    problem = some_problem()
    distances = []
    for tau in (0.1, 1.0, 10.0, 100.0):
        run = simulate(amble.IBCD(tau=tau), problem, hops=20_000, engine="compiled")
        limit = hidden_ridge_limit(problem, tau, 1)  # one token hides no ridge: this is the minimiser of eq. (3)
        assert relative(run.model, limit) < 1e-8
        distances.append(relative(limit, problem.optimum().w))
        assert run.history["distance"][-1] == pytest.approx(distances[-1], rel=1e-6)
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.1 < 0.5 < distances[0]


# Section II: I-BCD


def test_algorithm_1_starts_at_zero():
    """Algorithm 1, step 1: "Initialize: {x_i^0 = 0, z^0 = 0 | i in N}"."""
    problem = some_problem(agents=4, features=3)
    for engine in ("plain", "compiled"):
        state = engines.engine_for(
            engine, amble.IBCD(tau=1.0), problem, amble.networks.complete(problem.agents)
        ).start()
        assert np.shape(state.agents.x) == (4, 3)
        assert np.shape(state.tokens.total) == (1, 3)
        assert not np.any(state.agents.x)
        assert not np.any(state.tokens.total)
    run = simulate(amble.IBCD(tau=1.0), problem, hops=4)
    assert run.recorded[0] == 0
    assert not run.consensus[0].any()
    assert not run.local[0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_algorithm_1_line_by_line(kind):
    """Eq. (7) and (8): "x_i^{k+1} := argmin f_i(x_i) + tau/2 |x_i - z^k|^2, i = i_k; x_i^k, otherwise" and
    "z^{k+1} := z^k + 1/N (x_{i_k}^{k+1} - x_{i_k}^k)"."""
    problem = some_problem(kind, agents=6, features=3)
    tau = 0.7
    run = simulate(amble.IBCD(tau=tau), problem, hops=120, every=1, walk="metropolis", seed=3)
    x, z = np.zeros((6, 3 + (kind == "logistic"))), np.zeros(problem.dimension)
    for k, i in enumerate(run.schedule.agent):
        x_new = argmin_with_penalties(problem.objective(i), [z], tau)
        z = z + (x_new - x[i]) / 6
        x[i] = x_new
        np.testing.assert_allclose(run.consensus[k + 1], z, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(run.models, x, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("kind", KINDS)
def test_token_of_ibcd_is_the_mean_of_local_models(engine, kind):
    """Eq. (6), "z^0 := 1/N sum_i x_i^0", and the proof of theorem 1: "(b) is from z^{k+1} = 1/N sum_i x_i^{k+1}"."""
    problem = some_problem(kind, agents=7, features=4)
    run = simulate(amble.IBCD(tau=0.5), problem, hops=150, every=1, engine=engine)
    assert len(run.recorded) == 151
    np.testing.assert_allclose(run.consensus, run.local, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(run.model, run.models.mean(axis=0), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("walk", ["cycle", "metropolis", "uniform", "least-visited"])
def test_tokens_walk_over_links(walk):
    """Section II: "We call (i_k)_{k>=0} a walk of G if every (i_k, i_{k+1}) in E", and algorithm 1, step 6,
    chooses i_{k+1} among the direct neighbours of i_k and i_k itself."""
    problem = some_problem(agents=9, features=2)
    network = amble.networks.random(9, 0.4, seed=1)
    run = simulate(amble.APIBCD(tokens=3), problem, network, hops=600, walk=walk)
    links = {frozenset(link) for link in network.edges.tolist()}
    for m in range(3):
        route = run.schedule.agent[run.schedule.token == m].tolist()
        steps = [frozenset(step) for step in pairwise(route)]
        assert len(steps) > 100
        assert all(step in links or len(step) == 1 for step in steps)


# Section III: API-BCD


@pytest.mark.parametrize("kind", KINDS)
def test_synchronous_form_with_explicit_tokens(kind):
    """Eq. (11): "x_i^{k+1} := argmin f_i(x_i) + tau/2 sum_m |x_i - z_m^k|^2, i in N; z_m^{k+1} := 1/N sum_i x_i^{k+1},
    m in M", here with M token vectors, is SyncWalks; and eq. (4)-(5), the form with a server, with penalty tau M."""
    problem = some_problem(kind, agents=4, features=3)
    N, M, tau, rounds = 4, 3, 0.4, 12
    many = simulate(amble.SyncWalks(tau=tau, tokens=M), problem, rounds=rounds, every=1)
    server = simulate(amble.SyncWalks(tau=tau * M, tokens=1), problem, rounds=rounds, every=1)
    z = [np.zeros(problem.dimension) for _ in range(M)]
    z_server = np.zeros(problem.dimension)
    for k in range(rounds):
        x = [argmin_with_penalties(problem.objective(i), z, tau) for i in range(N)]
        z = [sum(x) / N for _ in range(M)]
        x_server = [argmin_with_penalties(problem.objective(i), [z_server], tau * M) for i in range(N)]
        z_server = sum(x_server) / N
        np.testing.assert_allclose(many.consensus[k + 1], z[0], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(server.consensus[k + 1], z_server, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(z[0], z_server, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(many.models, x, rtol=1e-7, atol=1e-9)


def test_algorithm_2_starts_at_zero():
    """Algorithm 2, step 1: "Initialize: {x_i^0 = 0, zhat_{i,m}^0 = 0 | i in N, m in M} and {z_m^0 = 0}"."""
    problem = some_problem(agents=4, features=3)
    for engine in ("plain", "compiled"):
        state = engines.engine_for(
            engine, amble.APIBCD(tau=0.1, tokens=2), problem, amble.networks.complete(problem.agents)
        ).start()
        shapes = [np.shape(part) for part in (state.agents.x, state.slots.copy, state.tokens.total)]
        assert shapes == [(4, 3), (4, 2, 3), (2, 3)]
        for part in (state.agents.x, state.agents.s, state.slots.copy, state.slots.given, state.tokens.total):
            assert not np.any(part)


@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("kind", KINDS)
def test_algorithm_2_line_by_line(engine, kind):
    """Algorithm 2, steps 3-6: "receive token z_m^k and set zhat_{i,m} <- z_m with i = i_k and m = i_m", then eq. (12a)
    "x_i^{k+1} := argmin f_i(x_i) + tau/2 sum_m |x_i - zhat_{i,m}^k|^2", (12b) "z_{i_m}^{k+1} := z_{i_m}^k +
    1/N (x_{i_k}^{k+1} - x_{i_k}^k)" and (12c) "zhat_{i,m}^{k+1} := z_{i_m}^{k+1}, i = i_k, m = i_m"."""
    N, M, tau = 6, 3, 0.3
    problem = some_problem(kind, agents=N, features=4)
    p = problem.dimension
    timing = amble.Timing(compute=2e-5, slowdown=((2, 7.0),))  # one slow agent, so that tokens overtake and wait
    run = simulate(
        amble.APIBCD(tau=tau, tokens=M), problem, hops=300, every=1, walk="metropolis", engine=engine, timing=timing
    )
    assert len(set(run.schedule.token.tolist())) == M
    x = {i: np.zeros(p) for i in range(N)}
    copy = {(i, m): np.zeros(p) for i in range(N) for m in range(M)}
    z = {m: np.zeros(p) for m in range(M)}
    for k, (i, m) in enumerate(zip(run.schedule.agent.tolist(), run.schedule.token.tolist(), strict=True)):
        copy[i, m] = z[m]
        x_new = argmin_with_penalties(problem.objective(i), [copy[i, j] for j in range(M)], tau)
        z[m] = z[m] + (x_new - x[i]) / N
        x[i] = x_new
        copy[i, m] = z[m]
        np.testing.assert_allclose(run.consensus[k + 1], sum(z.values()) / M, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(run.local[k + 1], sum(x.values()) / N, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(run.models, list(x.values()), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(tokens_of(run), list(z.values()), rtol=1e-6, atol=1e-8)
    copied = np.array(list(copy.values())).reshape(N, M, p)
    np.testing.assert_allclose(run.state.slots.copy, copied, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(run.state.agents.s, copied.sum(axis=1), rtol=1e-6, atol=1e-8)


def test_active_token_alone_moves():
    """Eq. (12b) updates the "active token z_{i_m} of the i_m-th walk" and eq. (12c) the copies of agent i_k alone; of
    those, all but zhat_{i_k,i_m} keep what they were (the printed "z_{i_m}^k, otherwise" would overwrite them)."""
    problem = some_problem(agents=5, features=3)
    method = amble.APIBCD(tau=0.2, tokens=3)
    run = simulate(method, problem, hops=40, walk="metropolis")
    machine = engines.engine_for("plain", method, problem, amble.networks.complete(problem.agents))
    state, changes = machine.start(), 0
    for k, (i, m) in enumerate(zip(run.schedule.agent.tolist(), run.schedule.token.tolist(), strict=True)):
        after = machine.advance(state, run.schedule, k, k + 1)
        copies_changed, tokens_changed, agents_changed = (
            np.argwhere((new != old).any(axis=-1)).tolist()
            for new, old in (
                (after.slots.copy, state.slots.copy),
                (after.tokens.total, state.tokens.total),
                (after.agents.x, state.agents.x),
            )
        )
        assert copies_changed in ([[i, m]], [])  # nothing changes where all has converged
        assert tokens_changed in ([[m]], [])
        assert agents_changed in ([[i]], [])
        changes += len(copies_changed)
        np.testing.assert_allclose(after.slots.copy[i, m], after.tokens.total[m] / 5, rtol=1e-14)
        state = after
    assert changes > 20
    np.testing.assert_allclose(machine.read(state)[0], run.model, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rule", TOKEN_RULES)
def test_one_walk_of_api_bcd_is_ibcd(kind, rule):
    """Section III: "To parallelize I-BCD ... by allowing multiple walks": with one walk, M = 1, eq. (12) is (7)-(8)."""
    problem = some_problem(kind, agents=6, features=4)
    one = simulate(amble.IBCD(tau=0.3), problem, hops=200, every=1)
    many = simulate(amble.APIBCD(tau=0.3, tokens=1, token_rule=rule), problem, hops=200, every=1)
    np.testing.assert_array_equal(one.schedule.agent, many.schedule.agent)
    np.testing.assert_allclose(many.consensus, one.consensus, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(many.models, one.models, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("method", [amble.APIBCD(tau=0.2, tokens=4), amble.GAPIBCD(tau=0.2, tokens=4)])
def test_published_tokens_sum_to_the_mean_of_local_models(engine, method):
    """Eq. (12b) gives each increment to one token only, "z_{i_m}^{k+1} := z_{i_m}^k + 1/N (...)", so
    sum_m z_m = mean_i x_i, where eq. (11b) has z_m = mean_i x_i."""
    problem = some_problem(agents=8, features=5)
    run = simulate(method, problem, hops=200, every=1, engine=engine)
    np.testing.assert_allclose(4 * run.consensus, run.local, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(tokens_of(run).sum(axis=0), run.models.mean(axis=0), rtol=1e-10, atol=1e-12)
    assert np.linalg.norm(run.local[-1]) > 0.1


def test_published_rule_ends_where_a_hidden_ridge_puts_it():
    """Under eq. (12b) the tokens' mean tends to mean(x)/M, and the fixed point satisfies
    grad f_i(x_i) + tau (M x_i - mean x) = 0: a hidden ridge of tau (M-1) per agent. N=20, p=12, M=5, tau=0.1."""
    problem = some_problem(agents=20, features=12)
    M, tau = 5, 0.1
    run = simulate(amble.APIBCD(tau=tau, tokens=M), problem, hops=20_000, engine="compiled")
    mean_x = hidden_ridge_limit(problem, tau, M)
    best = problem.optimum().w
    assert relative(run.model, mean_x / M) < 1e-9
    assert relative(run.local[-1], mean_x) < 1e-9
    predicted = relative(mean_x / M, best)
    assert run.history["distance"][-1] == pytest.approx(predicted, rel=1e-8)
    assert predicted > 0.5  # far from the solution: what the prediction is about
    for i, x_i in enumerate(run.models):
        left = problem.objective(i).grad(x_i) + tau * (M * x_i - run.models.mean(axis=0))
        assert np.linalg.norm(left) < 1e-9 * np.linalg.norm(problem.objective(i).b)


def test_tracked_tokens_end_where_fresh_ones_do():
    """Theorem 2 is for "sharing fresh tokens"; then z_m = mean_i x_i as in eq. (11b) and API-BCD is I-BCD with penalty
    tau M. The tracked rule has that limit, and every single token reaches it."""
    problem = some_problem(agents=20, features=12)
    M, tau = 5, 0.1
    tracked = simulate(amble.APIBCD(tau=tau, tokens=M, token_rule="tracked"), problem, hops=20_000, engine="compiled")
    single = simulate(amble.IBCD(tau=tau * M), problem, hops=20_000, engine="compiled")
    limit = hidden_ridge_limit(problem, tau * M, 1)
    assert relative(single.model, limit) < 1e-9
    assert relative(tracked.model, limit) < 1e-9
    for z in tokens_of(tracked):
        assert relative(z, single.model) < 1e-9
    np.testing.assert_allclose(tracked.models, single.models, rtol=1e-7, atol=1e-9)


def test_fresh_tokens_are_ibcd_with_penalty_tau_m():
    """Theorem 2's setting, "all agents share fresh {z_m}": tokens stay equal to mean_i x_i, as eq. (11b) has them."""
    problem = some_problem(agents=6, features=4)
    M, tau = 4, 0.15
    single = simulate(amble.IBCD(tau=tau * M), problem, hops=150, every=1)
    x, z = np.zeros((6, 4)), np.zeros((M, 4))
    for k, i in enumerate(single.schedule.agent):
        x, z = fresh_hop(amble.APIBCD(tau=tau, tokens=M), problem.objective(i), x, z, i, k % M)
        np.testing.assert_allclose(z, np.tile(x.mean(axis=0), (M, 1)), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(z[0], single.consensus[k + 1], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_mean_of_scaled_tokens_is_the_mean_of_local_models(engine):
    """Eq. (11b), "z_m^{k+1} := 1/N sum_i x_i^{k+1}", held by the tokens' mean when increments are scaled by M."""
    problem = some_problem(agents=8, features=5)
    run = simulate(amble.APIBCD(tau=0.1, tokens=4, token_rule="scaled"), problem, hops=200, every=1, engine=engine)
    np.testing.assert_allclose(run.consensus, run.local, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(tokens_of(run).mean(axis=0), run.models.mean(axis=0), rtol=1e-10, atol=1e-12)
    assert np.linalg.norm(run.local[-1]) > 0.1


@pytest.mark.parametrize("agents", [4, 10, 20, 50])
@pytest.mark.parametrize("density", [0.5, 0.7, 1.0])
def test_network_has_the_papers_number_of_links(agents, density):
    """Section V: "the considered connected network G consists of N agents and |E| = N(N-1)/2 xi links"."""
    network = amble.networks.random(agents, density, seed=3)
    links = {tuple(sorted(link)) for link in network.edges.tolist()}
    assert len(links) == len(network.edges) == round(agents * (agents - 1) / 2 * density)
    assert all(i != j for i, j in links)
    reached = {0}
    for _ in range(agents):
        reached |= {k for link in links if reached & set(link) for k in link}
    assert len(reached) == agents


@pytest.mark.parametrize("method", [amble.IBCD(tau=1.0), amble.WPG(alpha=0.1), amble.APIBCD(tokens=3)])
@pytest.mark.parametrize("walk", ["cycle", "metropolis"])
def test_a_link_costs_one_unit(method, walk):
    """Section V: "We consider unicast among agents ... The communication cost per link is 1 unit"."""
    problem = some_problem(agents=8, features=3)
    run = simulate(method, problem, hops=200, every=1, walk=walk)
    at, units = {}, [0]
    for i, m in zip(run.schedule.agent.tolist(), run.schedule.token.tolist(), strict=True):
        units.append(units[-1] + (m in at and at[m] != i))
        at[m] = i
    np.testing.assert_array_equal(run.history["comm_units"], units)
    assert units[-1] > 100


@pytest.mark.parametrize("tokens", [1, 4])
def test_a_hop_takes_the_papers_time(tokens):
    """Section V: "the consumed time for each communication is assumed to follow U(10^-5, 10^-4) s"."""
    problem = some_problem(agents=9, features=2)
    timing = amble.Timing(compute=0.0)
    run = simulate(amble.APIBCD(tokens=tokens), problem, hops=2_000, every=2_000, timing=timing)
    spans = hop_seconds(run)
    assert len(spans) == 2_000 - tokens
    assert spans.min() >= 1e-5
    assert spans.max() <= 1e-4
    assert kstest(spans, "uniform", args=(1e-5, 9e-5)).pvalue > 0.01


def test_running_time_is_computation_and_communication():
    """Section V: "The running time is measured by both computation time in local agents and communication time between
    agents"."""
    problem = some_problem(agents=9, features=2)
    network = amble.networks.ring(9)
    timing = amble.Timing(compute=3e-4, slowdown=((4, 2.0),))
    run = simulate(amble.IBCD(tau=1.0), problem, network, hops=500, timing=timing)
    seconds = np.where(run.schedule.agent == 4, 6e-4, 3e-4)
    assert run.schedule.time_s[0] == pytest.approx(seconds[0], rel=1e-12)
    links = np.diff(run.schedule.time_s) - seconds[1:]
    assert links.min() >= 1e-5 - 1e-12
    assert links.max() <= 1e-4 + 1e-12
    np.testing.assert_allclose(run.history["time_s"], np.append(0.0, run.schedule.time_s)[run.recorded], rtol=1e-14)


def test_paper_timing_is_the_default():
    """Section V again: unless told otherwise, communication "is assumed to follow U(10^-5, 10^-4) s"."""
    run = simulate(amble.IBCD(tau=1.0), some_problem(agents=5, features=2), hops=10)
    timing = run.timing
    assert (timing.low_s, timing.high_s, timing.mean_s) == (1e-5, 1e-4, 0.0)


@pytest.mark.parametrize("engine", ["plain", "compiled"])
@pytest.mark.parametrize("kind", KINDS)
def test_wpg_line_by_line(engine, kind):
    """Section V, eq. (19): "x_i^{k+1} := z^k - alpha grad f_i(z^k), i = i_k; z^{k+1} := z^k +
    1/N (x_{i_k}^{k+1} - x_{i_k}^k)"."""
    problem = some_problem(kind, agents=6, features=3)
    alpha = 0.2
    run = simulate(amble.WPG(alpha=alpha), problem, hops=200, every=1, engine=engine)
    x, z = np.zeros((6, problem.dimension)), np.zeros(problem.dimension)
    for k, i in enumerate(run.schedule.agent):
        x_new = z - alpha * problem.objective(i).grad(z)
        z, x[i] = z + (x_new - x[i]) / 6, x_new
        np.testing.assert_allclose(run.consensus[k + 1], z, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(run.models, x, rtol=1e-10, atol=1e-12)
    assert np.linalg.norm(z) > 0.1


def test_wpg_walks_a_hamiltonian_cycle():
    """Section V: "WPG, where agents are activated in a predefined circulant pattern, i.e., Hamiltonian cycle"."""
    problem = some_problem(agents=12, features=2)
    run = simulate(amble.WPG(alpha=0.1), problem, amble.networks.random(12, 0.7, seed=5), hops=48)
    laps = run.schedule.agent.reshape(4, 12)
    assert sorted(laps[0].tolist()) == list(range(12))
    assert (laps == laps[0]).all()
