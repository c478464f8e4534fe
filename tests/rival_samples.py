"""Problems, networks, losses and transcriptions that the tests of baselines and of Relay use."""

import numpy as np
from hypothesis import settings

import amble
from amble import engines, methods, networks
from amble.networks import walks

N, P = 8, 4


NETWORK = networks.random(N, 0.6, seed=1)


GOSSIP = {
    "DGD": amble.DGD(alpha=0.1),
    "EXTRA": amble.EXTRA(alpha=0.1),
    "DIGing": amble.DIGing(alpha=0.1),
    "DATOS": amble.DATOS(),
    "D-ADMM": amble.DADMM(rho=0.3),
}


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
    return amble.Problem.from_agents(
        rows, **{"ridge": 0.1, "intercept": False, "scale": False, "weights": "agents", **options}
    )


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
    machine = engines.engine_for(engine, method, problem, network)
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


def diging(alpha, W, rounds):
    """x' = W x - alpha y; y' = W y + grad f(x') - grad f(x), y^0 = grad f(x^0)."""
    x = np.zeros((N, P))
    y = grads(x)
    for _ in range(rounds):
        new = W @ x - alpha * y
        y = W @ y + grads(new) - grads(x)
        x = new
        yield x


def datos(V, rounds, alpha):
    """x^{1/2} = V x; d^{1/2} = V (grad f(x) + d); alpha_i halved until f_i(x+) <= f_i(x_i) + grad f_i(x_i).(x+ - x_i) +
    0.9/(2 alpha_i) |x+ - x_i|^2 at x+ = x_i^{1/2} - alpha_i d_i^{1/2}; alpha' = min_i alpha_i;
    x' = x^{1/2} - alpha' d^{1/2}; d' = d^{1/2} + (x - x^{1/2})/alpha' - grad f(x)."""
    x, d = np.zeros((N, P)), np.zeros((N, P))
    for _ in range(rounds):
        x_half, d_half, offers = V @ x, V @ (grads(x) + d), []
        for i in range(N):
            step = alpha[i]
            while True:
                move = x_half[i] - step * d_half[i] - x[i]
                if 0.5 * move @ A[i] @ move <= 0.9 / (2 * step) * move @ move:  # f_i is quadratic
                    break
                step /= 2
            offers.append(step)
        alpha = np.full(N, min(offers))
        x, d = x_half - alpha[0] * d_half, d_half + (x - x_half) / alpha[0] - grads(x)
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
    "DIGing": lambda method: diging(method.alpha, metropolis_matrix(NETWORK), 30),
    "DATOS": lambda method: datos(  # noqa: ARG005
        0.55 * np.eye(N) + 0.45 * metropolis_matrix(NETWORK), 30, 10 / np.trace(A, axis1=1, axis2=2) * P
    ),
    "D-ADMM": lambda method: dadmm(method.rho, adjacency(NETWORK), 30),
}


NETWORKS = {
    "random": NETWORK,
    "ring": networks.ring(7),
    "complete": networks.complete(5),
    "star": networks.from_edges(6, [(0, i) for i in range(1, 6)]),
    "grid": networks.grid(3, 4),
    "one": networks.ring(1),
}


def hop_by_hop(method, hops, problem=PROBLEM, network=NETWORK, **options):
    """(agent, token, state after) for each hop, on the plain engine."""
    run = go(method, problem, network, hops=hops, engine="plain", every=hops, **options)
    schedule, machine = run.schedule, engines.engine_for("plain", method, problem, network, meets=run.meets)
    state = machine.start()
    for k in range(hops):
        state = machine.advance(state, schedule, k, k + 1)
        yield int(schedule.agent[k]), int(schedule.token[k]), state


def prox(i, center, weight, problem=PROBLEM):
    f = problem.objective(i)
    return np.linalg.solve(f.A + weight * np.eye(len(f.b)), f.b + weight * center)


def conditioned(condition, agents, features, rows, seed):
    """Rows whose summed Gram has this condition, dealt to agents whose targets follow models of their own."""
    rng = np.random.default_rng(seed)
    tall = np.linalg.qr(rng.normal(size=(agents * rows, features)))[0] * np.sqrt(agents * rows)
    turn = np.linalg.qr(rng.normal(size=(features, features)))[0]
    X = (tall * np.logspace(0, -np.log10(condition) / 2, features)) @ turn
    parts = np.split(X, agents)
    rows_of = [(part, part @ (1 + rng.normal(size=features)) + 0.1 * rng.normal(size=rows)) for part in parts]
    problem = amble.Problem.from_agents(rows_of, ridge=0.0, intercept=False, scale=False, weights="agents")
    assert np.isclose(np.linalg.cond(problem.total.A), condition, rtol=1e-3)
    return problem, X, np.concatenate([y for _, y in rows_of])


def as_rows(f, size):
    """Five rows X with X'X = A size^2, and targets with X'y = b size."""
    root = size * np.sqrt(f.values)[:, None] * f.vectors.T
    kept = f.values > 1e-12 * f.values.max()
    return root, np.where(kept, size * (f.vectors.T @ f.b) / np.where(kept, size * np.sqrt(f.values), 1.0), 0.0)


BOARDED = {
    **{f"Relay, {form}": amble.Relay(tokens=3, form=form) for form in ("full", "scalar", "gradient")},
    "WPG": amble.WPG(alpha=0.2, tokens=3),
    "WADMM": amble.WADMM(beta=1.0, tokens=3),
}


def links_of(network):
    return {(i, j) for a, b in network.edges.tolist() for i, j in ((a, b), (b, a))}


def assert_closed_walks(network, tokens, seed):
    walk = walks.walk_for("stretches", network, tokens, seed)
    links, visited = links_of(network), set()
    for m in range(tokens):
        row = walk.order[walk.row[m], : walk.lengths[walk.row[m]]].tolist()
        visited |= set(row)
        steps = list(zip(row, row[1:] + row[:1], strict=True))
        assert network.agents == 1 or set(steps) <= links
    assert visited == set(range(network.agents))
    return walk


TUNED = {
    "I-BCD": amble.IBCD(),
    "API-BCD": amble.APIBCD(tokens=3, token_rule="tracked"),
    "gAPI-BCD": amble.GAPIBCD(tokens=3, token_rule="tracked"),
    "WPG": amble.WPG(),
    "WADMM": amble.WADMM(),
    "PW-ADMM": amble.PWADMM(tokens=3),
    **{label: methods.METHODS[label]() for label in GOSSIP if label != "DATOS"},
    **{label: methods.METHODS[label]() for label in ("Central", "SyncWalks", "FedAvg")},
}


SETTING = dict.fromkeys(("WPG", "DGD", "EXTRA", "DIGing", "FedAvg"), "alpha") | {"WADMM": "beta", "PW-ADMM": "beta"}


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
