"""The baselines, checked on their own: literal transcriptions, costs and clocks."""

import heapq

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import amble
from amble import AmbleError, engines, networks
from amble.engines import compiled
from amble.networks.network import layers
from amble.schedule import rounds as clock
from amble.schedule import timing as timings
from rival_samples import (
    GOSSIP,
    LITERAL,
    NETWORK,
    NETWORKS,
    PROBLEM,
    ROUND,
    SERVER,
    A,
    B,
    N,
    P,
    adjacency,
    go,
    hop_by_hop,
    make_problem,
    metropolis_matrix,
    prox,
    relative,
    rounds_of,
)


@pytest.mark.parametrize("engine", ["compiled", "plain"])
@pytest.mark.parametrize("name", GOSSIP)
def test_gossip_methods_are_their_formulas(name, engine):
    """DGD, EXTRA, DIGing, DATOS and D-ADMM written out with dense matrices: every agent's x in each of 30 rounds."""
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
    dense = engines.engine_for("compiled", GOSSIP[name], PROBLEM, NETWORK)
    assert "W" in dense.links
    by_matrix = rounds_of("compiled", GOSSIP[name])
    monkeypatch.setattr(compiled, "DENSE_FROM", 2)
    assert "W" not in engines.engine_for("compiled", GOSSIP[name], PROBLEM, NETWORK).links
    by_link = rounds_of("compiled", GOSSIP[name])
    assert np.abs(by_link - by_matrix).max() < 1e-13 * np.abs(by_matrix).max()


def test_costs_of_a_round():
    """A gossip round costs 2|E| units, a server round 2N (for each of M tokens), of 8 p bytes each; it is N visits.
    DIGing says two vectors, so its messages have 16 p bytes."""
    edges = len(NETWORK.edges)
    units = {"DGD": 2 * edges, "EXTRA": 2 * edges, "DIGing": 2 * edges, "D-ADMM": 2 * edges}
    units |= {"Central": 2 * N, "FedAvg": 2 * N}
    for name, each in {**units, "SyncWalks": 2 * N * 3}.items():
        run = go(ROUND[name], rounds=6, every=1, engine="plain")
        assert run.history["comm_units"].tolist() == [each * k for k in range(7)]
        assert run.history["bytes"].tolist() == [each * 8 * P * (1 + (name == "DIGing")) * k for k in range(7)]
        assert run.history["hop"].tolist() == [N * k for k in range(7)]
        assert go(ROUND[name], comm_units=3 * each + 1, engine="plain").recorded[-1] == 3


def test_costs_of_agreeing_on_a_number():
    """DATOS: 2|E| messages of 16 p bytes, and 2(N - 1) of 8 bytes for the minimum."""
    links, tree = 2 * len(NETWORK.edges), 2 * (N - 1)
    run = go(amble.DATOS(), rounds=4, every=1, engine="plain")
    assert run.history["comm_units"].tolist() == [(links + tree) * k for k in range(5)]
    assert run.history["bytes"].tolist() == [(links * 16 * P + tree * 8) * k for k in range(5)]


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS)
def test_layers_are_the_distances_from_agent_0(network):
    graph = nx.Graph(network.edges.tolist())
    graph.add_nodes_from(range(network.agents))
    distances = nx.single_source_shortest_path_length(graph, 0)
    found = {int(i): depth for depth, layer in enumerate(layers(network)) for i in layer}
    assert found == distances


def test_agreeing_waits_for_the_slowest_message_of_each_layer():
    """Two layers of 3 and 2 agents: the mean of the slowest of n uniform times is n/(n+1), each layer counts twice."""
    spans = clock.agreement(np.array([0.0, 1.0, 0.0]), seed=1, rounds=40_000, layers=[3, 2])
    assert abs(spans.mean() - 2 * (3 / 4 + 2 / 3)) < 0.01
    assert not clock.agreement(np.array([0.0, 1.0, 0.0]), seed=1, rounds=5, layers=[]).any()


@pytest.mark.parametrize("loss", ["least squares", "logistic", "softmax"])
def test_datos_needs_no_step(loss):
    """Linear convergence with nothing to set, whatever the units of the losses."""
    for units in (1e-3, 1e3):
        rng = np.random.default_rng(2)
        X = rng.normal(size=(160, 3))
        y = X @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=160)
        task = "regression" if loss == "least squares" else "classification"
        y = y if task == "regression" else np.digitize(y, [0.0] if loss == "logistic" else [-1.0, 1.0])
        problem = amble.Problem.from_arrays(
            units * X, y, task=task, agents=N, ridge=1e-2 * units**2, intercept=False, scale=False
        )
        run = go(amble.DATOS(), problem, rounds=600, every=600)
        assert run.history["distance"][-1] < 1e-8
        assert len(np.unique(run.state.agents.alpha)) == 1
        assert np.abs(run.state.agents.d.sum(axis=0)).max() < 1e-9 * np.abs(run.state.agents.g).max()


@pytest.mark.parametrize("name", GOSSIP)
def test_gossip_alone_never_communicates(name):
    """One agent has no links: no units to stop by, and a sentence that says so, as for tokens."""
    with pytest.raises(AmbleError, match="one agent never communicates, so comm_units cannot be reached"):
        go(GOSSIP[name], make_problem(1), networks.ring(1), comm_units=10)


def test_a_round_waits_for_its_slowest_agent_and_link():
    """Gossip: the slowest visit, then the slowest link. A server: hear, compute, say, for the slowest agent.
    DATOS: also up a tree of the network and down again."""
    slow = timings.link(1.0, compute=0.5, slowdown={1: 4.0})
    depth = max(nx.single_source_shortest_path_length(nx.Graph(NETWORK.edges.tolist()), 0).values())
    for name, method in ROUND.items():
        agreeing = 2 * depth if name == "DATOS" else 0
        each = 2.0 + 1.0 + agreeing if name in GOSSIP else 1.0 + 2.0 + 1.0
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
    timing, rounds = timings.timing_from({"model": named, "compute": 0.0}), 4000
    link = timing.link(8 * P)
    made = clock.plan_rounds(timing, compute_s=np.zeros(N), message_bytes=8 * P, seed=11, rounds=rounds, links=links)
    spans = np.diff(made.time_s, prepend=0)
    each = timings.link_seconds(np, link, np.random.default_rng(0).random((rounds, 2 * links)))
    assert stats.ks_2samp(spans, each.max(axis=1)).pvalue > 0.01
    assert stats.ks_2samp(spans, each[:, :-1].max(axis=1) if links == 1 else each[:, :links].max(axis=1)).pvalue < 1e-6


@pytest.mark.parametrize("named", ["paper", "walkman"])
def test_the_slowest_agent_of_a_server_round_has_the_right_distribution(named):
    """The server waits for the largest over agents of one message there, the visit and one back."""
    timing, rounds = timings.timing_from({"model": named}), 4000
    compute = np.linspace(0, 2e-5 if named == "paper" else 1.0, N)
    made = clock.plan_rounds(timing, compute_s=compute, message_bytes=8 * P, seed=11, rounds=rounds)
    draws = np.random.default_rng(0).random((2, rounds, N))
    hear, say = timings.link_seconds(np, timing.link(8 * P), draws)
    assert stats.ks_2samp(np.diff(made.time_s, prepend=0), (hear + compute + say).max(axis=1)).pvalue > 0.01


def server_rounds(timing, compute, tokens, rounds, rng):
    """Spans of rounds by events: M messages to each agent, who computes when the last is there, and M back."""
    spans = []
    for _ in range(rounds):
        events = [(one_message(timing, rng), "heard", i) for i in range(len(compute)) for _ in range(tokens)]
        heapq.heapify(events)
        missing = dict.fromkeys(range(len(compute)), tokens)
        while events:
            now, what, i = heapq.heappop(events)
            missing[i] -= what == "heard"
            if what == "heard" and missing[i] == 0:
                for _ in range(tokens):
                    heapq.heappush(events, (now + compute[i] + one_message(timing, rng), "said", i))
        spans.append(now)
    return np.array(spans)


def one_message(timing, rng):
    return timing.low_s + (timing.high_s - timing.low_s) * rng.random() + timing.mean_s * rng.exponential()


@pytest.mark.parametrize("named", ["paper", "walkman"])
def test_a_round_of_sync_walks_waits_for_all_its_messages(named):
    """2NM messages cross in a round: against an event simulation with every one of them, N = 12, M = 5."""
    timing, agents, tokens = timings.timing_from({"model": named, "compute": 2e-5}), 12, 5
    run = go(
        amble.SyncWalks(tokens=tokens), make_problem(agents), networks.ring(agents), rounds=2000, timing=timing, seed=3
    )
    spans = np.diff(run.schedule.time_s, prepend=0)
    each, few = (server_rounds(timing, run.compute_s, M, 2000, np.random.default_rng(M)) for M in (tokens, 1))
    assert stats.ks_2samp(spans, each).pvalue > 0.01
    assert stats.ks_2samp(spans, few).pvalue < 1e-6
    assert spans.mean() == pytest.approx(each.mean(), rel=0.02)


def test_every_counts_rounds_in_a_round_method():
    run = go(ROUND["DGD"], rounds=7, every=3, engine="plain")
    assert run.recorded.tolist() == [0, 3, 6, 7]
    assert run.history["hop"].tolist() == [0, 3 * N, 6 * N, 7 * N]


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


@pytest.mark.parametrize("tokens", [1, 3])
def test_dual_bcd_line_by_line_and_its_dual_never_falls(tokens):
    """x_i, t <- (x_i + t)/2; z' = (1 - rho) z + rho x_i; x_i' = x_i - (grad h(z') - grad h(z))/sigma, with
    h = f - mu/2 |x|^2, sigma = mu N/(N + M), rho = sigma/(sigma + L). The dual of sum_i f_i = sum_i h_i + sigma/2 (sum
    of |x_i|^2 and |t_m|^2) at these points is -sum_i h_i*(grad h_i(z_i)) - sigma/2 (sum_i |x_i|^2 + sum_m |t_m|^2)."""
    mu = 0.1  # below the flattest direction of every agent
    assert min(np.linalg.eigvalsh(a)[0] for a in A) > mu
    sigma, H = mu * N / (N + tokens), A - mu * np.eye(P)
    t, z, x, duals = np.zeros((tokens, P)), np.zeros((N, P)), B / sigma, []
    for i, m, state in hop_by_hop(amble.DualBCD(mu=mu, tokens=tokens), 120):
        rho = sigma / (sigma + np.linalg.eigvalsh(H[i])[-1])
        x[i] = t[m] = (x[i] + t[m]) / 2
        new = (1 - rho) * z[i] + rho * x[i]
        x[i] -= H[i] @ (new - z[i]) / sigma
        z[i] = new
        visited = np.asarray(state.agents.fresh) == 0
        assert np.allclose(state.tokens.t, t, rtol=0, atol=1e-11)
        assert np.allclose(state.agents.x[visited], x[visited], rtol=0, atol=1e-11)
        slopes = np.einsum("ijk,ik->ij", H, z) - B
        assert np.allclose(x.sum(axis=0) + t.sum(axis=0), -slopes.sum(axis=0) / sigma, atol=1e-10)
        conjugate = np.einsum("ij,ijk,ik->", z, H, z) / 2  # h*(grad h(z)) of a quadratic with h(0) = 0
        duals.append(-conjugate - sigma / 2 * ((x**2).sum() + (t**2).sum()))
    assert (np.diff(duals) >= -1e-9 * abs(duals[-1])).all()
    assert duals[-1] > duals[0]


def test_dual_bcd_starts_anywhere():
    start = np.arange(1.0, P + 1)
    run = go(amble.DualBCD(tokens=2), hops=9000, every=9000, start=start)
    assert np.array_equal(run.consensus[0], start)
    assert run.history["distance"][-1] < 1e-10


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
