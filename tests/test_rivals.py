"""The rivals and Relay, checked on their own: literal transcriptions, costs, clocks, accounts, walks, tuning."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import amble
from amble import AmbleError, methods, networks, replay, tuning
from amble import rounds as clock
from amble import timing as timings
from amble import walk as walks
from amble.arrays import named_leaves
from amble.methods import relay
from amble.methods.boards import BoardRules
from amble.methods.gifts import GiftRules
from amble.objectives import LeastSquares
from amble.replay import compiled

N, P = 8, 4
NETWORK = networks.random(N, 0.6, seed=1)
GOSSIP = {"DGD": amble.DGD(alpha=0.1), "EXTRA": amble.EXTRA(alpha=0.1), "D-ADMM": amble.DADMM(rho=0.3)}
SERVER = {"Central": amble.Central(tau=1.0), "FedAvg": amble.FedAvg(alpha=0.1, local_steps=3)}
ROUND = {**GOSSIP, **SERVER, "SyncWalks": amble.SyncWalks(tau=0.3, tokens=3)}
some_examples = settings(max_examples=15, deadline=None, derandomize=True)


def make_problem(agents=N, features=P, sizes=(5, 7, 9, 12, 16, 21, 30, 40), seed=5, **options):
    """Least squares; each agent has its own true model."""
    rng = np.random.default_rng(seed)
    rows = []
    for d in np.resize(sizes, agents):
        X = rng.normal(size=(d, features))
        rows.append((X, X @ (1 + rng.normal(size=features)) + 0.1 * rng.normal(size=d)))
    return amble.Problem.from_agents(rows, **{"ridge": 0.1, "intercept": False, "scale": False, **options})


PROBLEM = make_problem()
A, B = PROBLEM.stacked.A, PROBLEM.stacked.b


def go(method, problem=PROBLEM, network=NETWORK, **options):
    return amble.simulate(method, problem, network, **{"progress": False, "seed": 3, **options})


def relative(one, other):
    return np.linalg.norm(one - other) / np.linalg.norm(other)


def adjacency(network):
    links = np.zeros((network.agents, network.agents))
    for i, j in network.edges.tolist():
        links[i, j] = links[j, i] = 1.0
    return links


def metropolis_matrix(network):
    """W_ij = 1/max(d_i+1, d_j+1) on links, W_ii the rest."""
    d = adjacency(network).sum(axis=1)
    W = adjacency(network) / (1 + np.maximum(d[:, None], d[None, :]))
    return W + np.diag(1 - W.sum(axis=1))


def grads(x):
    return np.einsum("ijk,ik->ij", A, x) - B


def rounds_of(engine, method, network=NETWORK, rounds=30, problem=PROBLEM):
    """The agents' x after each of so many rounds, by the library."""
    machine = replay.make(engine, method, problem, network)
    state, found = machine.start(), []
    for k in range(rounds):
        state = machine.advance(state, None, k, k + 1)
        found.append(np.array(state.agents.x))
    return np.array(found)


def dgd(alpha, W, rounds):
    """x' = W x - alpha grad f(x)."""
    x = np.zeros((N, P))
    for _ in range(rounds):
        x = W @ x - alpha * grads(x)
        yield x


def extra(alpha, W, rounds):
    """x^1 = W x^0 - alpha grad f(x^0);
    x^{k+2} = (I+W) x^{k+1} - (I+W)/2 x^k - alpha [grad f(x^{k+1}) - grad f(x^k)]."""
    eye, old = np.eye(N), np.zeros((N, P))
    x = W @ old - alpha * grads(old)
    yield x
    for _ in range(rounds - 1):
        old, x = x, (eye + W) @ x - (eye + W) / 2 @ old - alpha * (grads(x) - grads(old))
        yield x


def dadmm(rho, links, rounds):
    """x_i' = argmin f_i(x) + rho d_i |x|^2 - x.[rho (d_i x_i + sum_j x_j) - a_i];
    a_i' = a_i + rho (d_i x_i' - sum_j x_j')."""
    d, x, a = links.sum(axis=1), np.zeros((N, P)), np.zeros((N, P))
    for _ in range(rounds):
        right = B + rho * (d[:, None] * x + links @ x) - a
        x = np.array([np.linalg.solve(A[i] + 2 * rho * d[i] * np.eye(P), right[i]) for i in range(N)])
        a = a + rho * (d[:, None] * x - links @ x)
        yield x


LITERAL = {
    "DGD": lambda method: dgd(method.alpha, metropolis_matrix(NETWORK), 30),
    "EXTRA": lambda method: extra(method.alpha, metropolis_matrix(NETWORK), 30),
    "D-ADMM": lambda method: dadmm(method.rho, adjacency(NETWORK), 30),
}


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("name", GOSSIP)
def test_gossip_methods_are_their_formulas(name, engine):
    """DGD, EXTRA and D-ADMM written out with dense matrices: every agent's x in each of 30 rounds."""
    found = rounds_of(engine, GOSSIP[name])
    expected = np.array(list(LITERAL[name](GOSSIP[name])))
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("weights", ["agents", "rows"])
def test_server_methods_are_their_formulas(weights):
    """Central: x_i' = prox_i(z, tau), z' = mean x_i'. FedAvg: E steps of alpha grad f_i(x)/share_i from z, the mean."""
    problem = make_problem(weights=weights)
    A, b, share = problem.stacked.A, problem.stacked.b, problem.stacked.share
    sizes = np.array([len(part) for part in problem.parts])
    assert np.allclose(share, 1 if weights == "agents" else N * sizes / sizes.sum())
    central, fedavg = (rounds_of("compiled", method, problem=problem) for method in SERVER.values())
    z = z_fed = np.zeros(P)
    for k in range(30):
        x = np.array([np.linalg.solve(A[i] + np.eye(P), b[i] + z) for i in range(N)])
        assert relative(central[k], x) < 1e-12
        z = x.mean(axis=0)
        x = np.tile(z_fed, (N, 1))
        for _ in range(3):
            x = x - 0.1 * (np.einsum("ijk,ik->ij", A, x) - b) / share[:, None]
        assert relative(fedavg[k], x) < 1e-12
        z_fed = (share[:, None] * x).sum(axis=0) / N


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_the_model_of_fedavg_is_what_its_server_holds(engine):
    """z' = 1/N sum_i share_i x_i', "which is FedAvg's mean by rows": the run's model is that mean, at every record."""
    problem = make_problem(weights="rows")
    run = go(SERVER["FedAvg"], problem, rounds=5, every=1, engine=engine)
    share = problem.stacked.share[:, None]
    each = rounds_of(engine, SERVER["FedAvg"], rounds=5, problem=problem)
    for model, local, x in zip(run.consensus[1:], run.local[1:], each, strict=True):
        assert relative(local, x.mean(axis=0)) < 1e-12
        assert relative(model, (share * x).mean(axis=0)) < 1e-12


NETWORKS = {
    "random": NETWORK,
    "ring": networks.ring(7),
    "complete": networks.complete(5),
    "star": networks.from_edges(6, [(0, i) for i in range(1, 6)]),
    "grid": networks.grid(3, 4),
    "one": networks.ring(1),
}


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_metropolis_weights(network):
    """W_ij = 1/max(d_i+1, d_j+1): symmetric, doubly stochastic, zero where there is no link."""
    across, own = network.metropolis()
    W = np.diag(own)
    W[np.repeat(np.arange(network.agents), network.degrees), network.neighbours] = across
    assert np.array_equal(W, W.T)
    assert np.allclose(W.sum(axis=0), 1, atol=1e-15)
    assert np.allclose(W.sum(axis=1), 1, atol=1e-15)
    assert (np.diag(W) > 0).all()
    assert np.array_equal(W - np.diag(own) > 0, adjacency(network) > 0)
    assert np.allclose(W, metropolis_matrix(network), atol=1e-15)


@pytest.mark.parametrize("name", GOSSIP)
def test_gossip_by_link_sums_as_the_matrix_does(name, monkeypatch):
    """A matrix for few agents, by link for many: the same sums."""
    dense = replay.make("compiled", GOSSIP[name], PROBLEM, NETWORK)
    assert "W" in dense.links
    by_matrix = rounds_of("compiled", GOSSIP[name])
    monkeypatch.setattr(compiled, "DENSE_FROM", 2)
    assert "W" not in replay.make("compiled", GOSSIP[name], PROBLEM, NETWORK).links
    by_link = rounds_of("compiled", GOSSIP[name])
    assert np.abs(by_link - by_matrix).max() < 1e-13 * np.abs(by_matrix).max()


def test_costs_of_a_round():
    """A gossip round costs 2|E| units, a server round 2N (for each of M tokens), of 8 p bytes each; it is N visits."""
    edges = len(NETWORK.edges)
    units = {"DGD": 2 * edges, "EXTRA": 2 * edges, "D-ADMM": 2 * edges, "Central": 2 * N, "FedAvg": 2 * N}
    for name, each in {**units, "SyncWalks": 2 * N * 3}.items():
        run = go(ROUND[name], rounds=6, every=1, engine="plain")
        assert run.history["comm_units"].tolist() == [each * k for k in range(7)]
        assert run.history["bytes"].tolist() == [each * 8 * P * k for k in range(7)]
        assert run.history["hop"].tolist() == [N * k for k in range(7)]
        assert go(ROUND[name], comm_units=3 * each + 1, engine="plain").recorded[-1] == 3


@pytest.mark.parametrize("name", GOSSIP)
def test_gossip_alone_never_communicates(name):
    """One agent has no links: no units to stop by, and a sentence that says so, as for tokens."""
    with pytest.raises(AmbleError, match="one agent never communicates, so comm_units cannot be reached"):
        go(GOSSIP[name], make_problem(1), networks.ring(1), comm_units=10)


def test_a_round_waits_for_its_slowest_agent_and_link():
    """Gossip: the slowest visit, then the slowest link. A server: hear, compute, say, for the slowest agent."""
    slow = timings.link(1.0, compute=0.5, slowdown={1: 4.0})
    for name, method in ROUND.items():
        each = 2.0 + 1.0 if name in GOSSIP else 1.0 + 2.0 + 1.0
        assert np.allclose(go(method, rounds=6, timing=slow, engine="plain").schedule.time_s, each * np.arange(1, 7))
    by_bytes = timings.link(0.0, bytes_per_s=8 * P, compute=0.0)
    assert np.allclose(go(ROUND["DGD"], rounds=3, timing=by_bytes, engine="plain").schedule.time_s, [1, 2, 3])
    alone = go(
        ROUND["DGD"], make_problem(1), networks.ring(1), rounds=3, timing=timings.link(1.0, compute=0.5), engine="plain"
    )
    assert np.allclose(alone.schedule.time_s, [0.5, 1.0, 1.5])  # no links to wait for


@pytest.mark.parametrize("named", ["paper", "walkman"])
@pytest.mark.parametrize("links", [1, 17])
def test_the_slowest_link_of_a_gossip_round_has_the_right_distribution(named, links):
    """Two messages cross every link: a round's link time is distributed as the largest of 2|E| link draws."""
    timing, rounds = timings.make({"model": named, "compute": 0.0}), 4000
    link = timing.link(8 * P)
    made = clock.make(timing, compute_s=np.zeros(N), message_bytes=8 * P, seed=11, rounds=rounds, links=links)
    spans = np.diff(made.time_s, prepend=0)
    each = timings.link_seconds(np, link, np.random.default_rng(0).random((rounds, 2 * links)))
    assert stats.ks_2samp(spans, each.max(axis=1)).pvalue > 0.01
    assert stats.ks_2samp(spans, each[:, :-1].max(axis=1) if links == 1 else each[:, :links].max(axis=1)).pvalue < 1e-6


@pytest.mark.parametrize("named", ["paper", "walkman"])
def test_the_slowest_agent_of_a_server_round_has_the_right_distribution(named):
    """The server waits for the largest over agents of one message there, the visit and one back."""
    timing, rounds = timings.make({"model": named}), 4000
    compute = np.linspace(0, 2e-5 if named == "paper" else 1.0, N)
    made = clock.make(timing, compute_s=compute, message_bytes=8 * P, seed=11, rounds=rounds)
    draws = np.random.default_rng(0).random((2, rounds, N))
    hear, say = timings.link_seconds(np, timing.link(8 * P), draws)
    assert stats.ks_2samp(np.diff(made.time_s, prepend=0), (hear + compute + say).max(axis=1)).pvalue > 0.01


def hop_by_hop(method, hops, problem=PROBLEM, network=NETWORK, **options):
    """(agent, token, state after) for each hop, on the plain engine."""
    schedule = go(method, problem, network, hops=hops, engine="plain", every=hops, **options).schedule
    machine = replay.make("plain", method, problem, network)
    state = machine.start()
    for k in range(hops):
        state = machine.advance(state, schedule, k, k + 1)
        yield int(schedule.agent[k]), int(schedule.token[k]), state


def prox(i, center, weight, problem=PROBLEM):
    f = problem.objective(i)
    return np.linalg.solve(f.A + weight * np.eye(len(f.b)), f.b + weight * center)


@pytest.mark.parametrize("form", ["prox", "gradient"])
def test_wadmm_line_by_line(form):
    """x' = prox(z + y/beta, beta), or z + (y - grad f(x))/beta at the OLD x; y' = y + beta (z - x');
    z' = z + [(x' - y'/beta) - (x - y/beta)]/N."""
    beta = 1.3 if form == "prox" else 12.0
    x, y, z = np.zeros((N, P)), np.zeros((N, P)), np.zeros(P)
    for i, _, state in hop_by_hop(amble.WADMM(beta=beta, form=form), 60):
        new = prox(i, z + y[i] / beta, beta) if form == "prox" else z + (y[i] - (A[i] @ x[i] - B[i])) / beta
        dual = y[i] + beta * (z - new)
        z = z + ((new - dual / beta) - (x[i] - y[i] / beta)) / N
        x[i], y[i] = new, dual
        assert np.allclose(state.agents.x, x, rtol=0, atol=1e-12)
        assert np.allclose(state.agents.y, y, rtol=0, atol=1e-11)
        assert np.allclose(state.tokens.total[0] / N, z, rtol=0, atol=1e-12)


@pytest.mark.parametrize("form", ["copies", "own"])
def test_pw_admm_line_by_line(form):
    """As WADMM on the visiting token with M/N for 1/N, or with the mean of the copies in the x and y steps; and
    mean_m z_m = mean_i (x_i - y_i/beta) at every hop."""
    beta, M = 1.3, 3
    x, y, z, copies = np.zeros((N, P)), np.zeros((N, P)), np.zeros((M, P)), np.zeros((N, M, P))
    for i, m, state in hop_by_hop(amble.PWADMM(beta=beta, tokens=M, form=form), 60):
        copies[i, m] = z[m]
        c = z[m] if form == "own" else copies[i].mean(axis=0)
        new = prox(i, c + y[i] / beta, beta)
        dual = y[i] + beta * (c - new)
        z[m] += M / N * ((new - dual / beta) - (x[i] - y[i] / beta))
        x[i], y[i], copies[i, m] = new, dual, z[m]
        assert np.allclose(state.agents.x, x, rtol=0, atol=1e-12 * (1 + np.abs(x).max()))
        assert np.allclose(state.tokens.total / N, z, rtol=0, atol=1e-12 * (1 + np.abs(z).max()))
        assert np.allclose(z.mean(axis=0), (x - y / beta).mean(axis=0), rtol=0, atol=1e-12 * (1 + np.abs(y).max()))


def test_scalar_relay_line_by_line():
    """x' = prox(z + y/beta, beta); y' = y + beta (z - x'), skipped when the token is empty; r = |x' - z|,
    s = |z - z_last|; r > 3 s: beta * 1.5; s > 3 r: beta / 1.5, from visit two on; v = beta' x' - y', w = beta'."""
    curvature = np.trace(A, axis1=1, axis2=2) / P
    y, beta, last, visits = np.zeros((N, P)), curvature.copy(), np.zeros((N, P)), np.zeros(N)
    given_v, given_w, total, weight = np.zeros((N, P)), np.zeros(N), np.zeros(P), 0.0
    changes = 0
    for i, _, state in hop_by_hop(amble.Relay(form="scalar"), 120):
        z = total / weight if weight > 0 else np.zeros(P)
        x = prox(i, z + y[i] / beta[i], beta[i])
        if weight > 0:
            y[i] = y[i] + beta[i] * (z - x)
        r, s = np.linalg.norm(x - z), np.linalg.norm(z - last[i])
        if visits[i] > 0:
            factor = 1.5 if r > 3 * s else 1 / 1.5 if s > 3 * r else 1.0
            beta[i] *= factor
            changes += factor != 1
        last[i], visits[i] = z, visits[i] + 1
        v, w = beta[i] * x - y[i], beta[i]
        total, weight = total + v - given_v[i], weight + w - given_w[i]
        given_v[i], given_w[i] = v, w
        assert np.allclose(state.agents.beta, beta, rtol=1e-12)
        assert np.allclose(state.agents.y, y, rtol=0, atol=1e-11)
        assert np.allclose(state.tokens.total[0], total, rtol=0, atol=1e-11)
        assert np.isclose(state.tokens.weight[0], weight, rtol=1e-12)
    assert changes > 5


def conditioned(condition, agents, features, rows, seed):
    """Rows whose summed Gram has this condition, dealt to agents whose targets follow models of their own."""
    rng = np.random.default_rng(seed)
    tall = np.linalg.qr(rng.normal(size=(agents * rows, features)))[0] * np.sqrt(agents * rows)
    turn = np.linalg.qr(rng.normal(size=(features, features)))[0]
    X = (tall * np.logspace(0, -np.log10(condition) / 2, features)) @ turn
    parts = np.split(X, agents)
    rows_of = [(part, part @ (1 + rng.normal(size=features)) + 0.1 * rng.normal(size=rows)) for part in parts]
    problem = amble.Problem.from_agents(rows_of, ridge=0.0, intercept=False, scale=False)
    assert np.isclose(np.linalg.cond(problem.total.A), condition, rtol=1e-3)
    return problem, X, np.concatenate([y for _, y in rows_of])


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


def as_rows(f, size):
    """Five rows X with X'X = A size^2, and targets with X'y = b size."""
    root = size * np.sqrt(f.values)[:, None] * f.vectors.T
    kept = f.values > 1e-12 * f.values.max()
    return root, np.where(kept, size * (f.vectors.T @ f.b) / np.where(kept, size * np.sqrt(f.values), 1.0), 0.0)


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
    agent = relay.Dual(z, np.zeros(P), np.float64(curvature), z_last, np.float64(1))
    seen = []
    for _ in range(40):
        agent, _, _ = relay.scalar(f, agent._replace(y=np.zeros(P), z=z_last), z)
        seen.append(float(agent.beta))
    bound = curvature * (1e3 if end == "high" else 1e-3)
    assert np.isclose(seen[-1], bound, rtol=1e-12)
    assert np.isclose(seen[0], curvature * (1.5 if end == "high" else 1 / 1.5))


BOARDED = {
    **{f"Relay, {form}": amble.Relay(tokens=3, form=form) for form in ("full", "scalar", "gradient")},
    "WPG": amble.WPG(alpha=0.2, tokens=3),
    "WADMM": amble.WADMM(beta=1.0, tokens=3),
}


@pytest.mark.parametrize("walk", ["stretches", "cycles", "metropolis"])
@pytest.mark.parametrize("name", BOARDED)
def test_ledgers_sum_to_gifts_and_versions_count_visits(name, walk):
    """The sum of all ledgers is the sum of all gifts; a ledger's version counts its token's visits; what a board holds
    of another token is what that token's ledger was at that version: old perhaps, never wrong."""
    method, M = BOARDED[name], 3
    visits, ledgers = np.zeros(M), {}
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
            version = board.version[m, other]
            assert version <= visits[other]
            if version > 0:
                assert np.array_equal(board.total[m, other], ledgers[other, version])


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
    """Eight bytes a number. p for methods that normalise by N; p + 1 with a weight; p + p(p+1)/2 with a matrix; with M
    tokens that share an account M ledgers, each with its version."""
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
        amble.WPG(tokens=3): 3 * (P + 1),
        amble.Relay(tokens=3, form="scalar"): 3 * (P + 1 + 1),
        amble.Relay(tokens=3, form="full"): 3 * (P + P * (P + 1) // 2 + 1),
    }
    for method, each in numbers.items():
        assert methods.message_numbers(method, P) == each
        run = go(method, hops=20, engine="plain", every=20)
        assert run.message_bytes == 8 * each
        assert run.history["bytes"][-1] == 8 * each * run.history["comm_units"][-1] > 0


def links_of(network):
    return {(i, j) for a, b in network.edges.tolist() for i, j in ((a, b), (b, a))}


def assert_closed_walks(network, tokens, seed):
    walk = walks.make("stretches", network, tokens, seed)
    links, visited = links_of(network), set()
    for m in range(tokens):
        row = walk.order[walk.row[m], : walk.lengths[walk.row[m]]].tolist()
        visited |= set(row)
        steps = list(zip(row, row[1:] + row[:1], strict=True))
        assert network.agents == 1 or set(steps) <= links
    assert visited == set(range(network.agents))
    return walk


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


def test_no_token_stands_still_and_leaves_the_others_no_time():
    """A star of six agents, six tokens, time in hops: every token takes its turns, and the optimum is found."""
    run = go(amble.Relay(tokens=6), make_problem(6), NETWORKS["star"], hops=400, every=400, timing="unit", seed=0)
    assert np.bincount(run.schedule.token, minlength=6).min() > 20
    assert run.history["distance"][-1] < 1e-9


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_one_stretch_is_the_cycle(network):
    one, other = (walks.make(name, network, 1, 5) for name in ("stretches", "cycle"))
    assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_the_walk_is_stretches_where_tokens_share_an_account():
    """The walk is by default the cycle, and `stretches` for tokens that share an account."""
    chosen = {amble.Relay(): "cycle", amble.Relay(tokens=3): "stretches", amble.WPG(tokens=2): "stretches"}
    for method, walk in {**chosen, amble.APIBCD(tokens=3): "cycle", amble.PWADMM(tokens=3): "cycle"}.items():
        assert go(method, hops=20, engine="plain").walk == walk


def test_more_tokens_than_agents_share_an_account():
    with pytest.warns(UserWarning, match="11 tokens for 8 agents"):
        run = go(amble.Relay(tokens=11), hops=400, every=400)
    assert set(run.schedule.token.tolist()) == set(range(11))
    assert run.history["distance"][-1] < 1e-9


TUNED = {
    "I-BCD": amble.IBCD(),
    "API-BCD": amble.APIBCD(tokens=3, token_rule="tracked"),
    "gAPI-BCD": amble.GAPIBCD(tokens=3, token_rule="tracked"),
    "WPG": amble.WPG(),
    "WADMM": amble.WADMM(),
    "PW-ADMM": amble.PWADMM(tokens=3),
    **{label: methods.METHODS[label]() for label in ("DGD", "EXTRA", "D-ADMM", "Central", "SyncWalks", "FedAvg")},
}
SETTING = {"WPG": "alpha", "DGD": "alpha", "EXTRA": "alpha", "FedAvg": "alpha", "WADMM": "beta", "PW-ADMM": "beta"}


@pytest.fixture
def pilots(monkeypatch):
    """(visits, whether it diverged) of each pilot run that tuning makes."""
    made, simulate = [], tuning.simulations.simulate

    def counted(method, problem, network, **options):
        run = simulate(method, problem, network, **options)
        made.append((options["hops"], run.history["hop"][-1], run.stopped))
        return run

    monkeypatch.setattr(tuning.simulations, "simulate", counted)
    return made


@pytest.mark.parametrize("name", TUNED)
def test_tuning_chooses_what_converges_under_the_same_budget(name, pilots, tmp_path):
    """`tune` chooses each method's step or penalty by a search on pilot runs under a budget of hops, the same for every
    method, and records it in the run."""
    method = TUNED[name]
    run = amble.simulate(method, PROBLEM, NETWORK, hops=8000, every=8000, tune=True, seed=3, progress=False)
    setting = SETTING.get(name, "rho" if name == "D-ADMM" else "tau")
    record = run.tuning
    chosen = getattr(run.method, setting)
    assert len(pilots) == len(record["tried"]) == 13
    assert {asked for asked, _, _ in pilots} == {50 * N} == {record["hops"]}
    assert {visits for _, visits, stopped in pilots if stopped != "diverged"} == {50 * N}
    assert (record["setting"], record["chosen"]) == (setting, chosen)
    finite = [loss for loss in record["tried"].values() if np.isfinite(loss)]
    assert record["tried"][f"{chosen:g}"] == min(finite)
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
    assert np.isinf(list(record["tried"].values())).any()
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


class Pulled:
    """An objective of one's own: 1/2 |w - c|^2, with value and slope only."""

    smoothness = 1.0

    def __init__(self, c):
        self.c = c

    def value(self, w):
        return 0.5 * np.sum((w - self.c) ** 2)

    def grad(self, w):
        return w - self.c


class WithProx(Pulled):
    curvature = 1.0

    def prox(self, center, weight, start):
        assert start.shape == self.c.shape
        return (self.c + weight * center) / (1 + weight)


class WithHessian(WithProx):
    def hessian(self, w):
        return np.eye(len(w))


class BareProx(WithProx):
    curvature = property()


class BareHessian(Pulled):
    smoothness = property()

    def hessian(self, w):
        return np.eye(len(w))


class Bare(Pulled):
    smoothness = property()


def own_problem(kind):
    centres = np.random.default_rng(0).normal(size=(N, P))
    return amble.Problem.from_objectives([kind(c) for c in centres], P), centres.mean(axis=0)


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


def test_auto_relay_is_full_up_to_128_unknowns():
    """Full up to 128 unknowns, a message of 67 kB, then scalar."""
    for features, form in ((128, "full"), (129, "scalar")):
        eye = np.eye(features)
        f = LeastSquares(eye, eye[0], np.float64(0), np.ones(features), eye, np.float64(1))
        chosen = amble.Relay().for_problem(amble.Problem.from_objectives([f, f], features))
        assert chosen.form == form
    assert 8 * methods.message_numbers(amble.Relay(form="full"), 128) == 67_072


def test_relay_carries_no_number_of_agents():
    """No agent knows N: a token that starts empty is the same for any number of agents."""
    for form in ("full", "scalar", "gradient"):
        for tokens in (1, 3):
            rule = methods.rules(amble.Relay(tokens=tokens, form=form))
            few, many = (named_leaves(rule.token(np.zeros(P), agents, 0), "token") for agents in (2, 1000))
            assert all(np.array_equal(few[key], many[key]) for key in few)
