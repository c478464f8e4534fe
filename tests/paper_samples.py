"""The paper's quantities, written out for its tests: F, fresh tokens, the fixed point of the published rule."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import amble
from amble.losses import LeastSquares, Logistic
from amble.methods import copies, rules
from amble.methods.gifts import Token

ROUNDING = 1e-10  # relative: descent is claimed of real numbers, and these are floating-point ones
KINDS = ("least squares", "logistic")
TOKEN_RULES = ("published", "scaled", "tracked")


def some_rows(kind, rng, rows, features):
    X = rng.normal(size=(rows, features)) * np.exp(rng.uniform(-1, 1))
    if kind == "least squares":
        return X, X @ rng.normal(size=features) + rng.normal(size=rows)
    return X, (rng.random(rows) < 0.5).astype(float)


def some_objectives(kind, rng, agents, features):
    """Convex losses of unlike agents; one may have fewer rows than features, or one class only. No ridge."""
    build = LeastSquares.build if kind == "least squares" else Logistic.build
    sizes = rng.integers(1, 6, size=agents)
    each = [some_rows(kind, rng, d, features) for d in sizes]
    return [build(X, y, np.full(len(y), 1 / len(y)), np.zeros(features)) for X, y in each]


def some_problem(kind="least squares", agents=20, features=12, rows=15, seed=0):
    """Agents whose data differ: each has a true model of its own."""
    rng = np.random.default_rng(seed)
    if kind == "least squares":
        given_rows = [some_rows(kind, rng, rows, features) for _ in range(agents)]
        return amble.Problem.from_agents(given_rows, ridge=0.0, intercept=False, scale=False, weights="agents")
    X = rng.normal(size=(agents * rows, features))
    y = (X @ rng.normal(size=features) + rng.normal(size=len(X)) > 0).astype(int)
    return amble.Problem.from_arrays(X, y, task="classification", agents=agents, ridge=1e-2)


def simulate(method, problem, network=None, **options):
    return amble.simulate(method, problem, network, **{"progress": False, "engine": "plain", **options})


def tokens_of(run):
    """z_m, one row a token."""
    return run.state.tokens.total / run.state.tokens.weight[:, None]


def penalised(objectives, x, z, tau):
    """F(x, z) = sum_i f_i(x_i) + tau/2 sum_i sum_m |x_i - z_m|^2: eq. (3) for one token, eq. (10) for M."""
    distances = x[:, None, :] - z[None, :, :]
    return sum(f.value(x_i) for f, x_i in zip(objectives, x, strict=True)) + tau / 2 * np.sum(distances**2)


def fresh_hop(method, f, x, z, i, m):
    """Token m visits agent i, who knows all tokens as they are; every token gets the increment. x and z afterwards.

    The visit is the library's, with copies equal to the tokens, as the theorems' "sharing fresh tokens" has it.
    """
    N = len(x)
    agent = copies.Agent(x=x[i], s=z.sum(axis=0))
    slot = copies.Slot(copy=z[m], given=x[i])
    agent, _, token = rules(method).visit(f, agent, slot, Token(N * z[m], np.asarray(float(N))))
    after = x.copy()
    after[i] = agent.x
    return after, z + (token.total / N - z[m])


def fresh_descents(method, objectives, hops, rng, features):
    """(F before, F after, |x' - x|^2, sum_m |z_m' - z_m|^2) at every hop, from zero, tokens and agents at random."""
    x, z = np.zeros((len(objectives), features)), np.zeros((method.tokens, features))
    for _ in range(hops):
        i, m = rng.integers(len(objectives)), rng.integers(method.tokens)
        x_new, z_new = fresh_hop(method, objectives[i], x, z, i, m)
        yield (
            penalised(objectives, x, z, method.tau),
            penalised(objectives, x_new, z_new, method.tau),
            np.sum((x_new - x) ** 2),
            np.sum((z_new - z) ** 2),
        )
        x, z = x_new, z_new


def assert_at_most(change, bound, before):
    assert change <= bound + ROUNDING * (abs(before) + abs(bound))


def hidden_ridge_limit(problem, tau, tokens):
    """The mean of the x_i that solve grad f_i(x_i) + tau (M x_i - mean x) = 0, for least squares.

    x_i = R_i (b_i + tau mean x) with R_i = (A_i + tau M)^-1; the mean of these is a linear system in mean x.
    """
    eye = np.eye(problem.dimension)
    f = [problem.objective(i) for i in range(problem.agents)]
    R = [np.linalg.inv(f_i.A + tau * tokens * eye) for f_i in f]
    Rb = [R_i @ f_i.b for R_i, f_i in zip(R, f, strict=True)]
    return np.linalg.solve(eye - tau * np.mean(R, axis=0), np.mean(Rb, axis=0))


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


def argmin_with_penalties(f, tokens, tau):
    """argmin_x f(x) + tau/2 sum_m |x - z_m|^2, found without the library's prox and token by token."""
    if isinstance(f, LeastSquares):
        return np.linalg.solve(f.A + sum(tau * np.eye(len(f.b)) for _ in tokens), f.b + sum(tau * z for z in tokens))
    return minimize(
        lambda x: f.value(x) + tau / 2 * sum(np.sum((x - z) ** 2) for z in tokens),
        np.zeros_like(tokens[0]),
        jac=lambda x: f.grad(x) + tau * sum(x - z for z in tokens),
        hess=lambda x: f.hessian(x) + tau * len(tokens) * np.eye(len(x)),
        method="trust-exact",
        options={"gtol": 1e-11},
    ).x


def enough_rho(L, tau, M, N):
    return max(0.0, L / 2 - tau * M / 2 * (1 + 1 / N))


def hop_seconds(run):
    """Seconds between two visits of the same token, for all tokens."""
    return np.concatenate([np.diff(run.schedule.time_s[run.schedule.token == m]) for m in range(run.method.tokens)])


random_convex = given(
    seed=st.integers(0, 2**32 - 1),
    agents=st.integers(2, 6),
    features=st.integers(1, 4),
    tau_log=st.floats(-2, 1.5),
    tokens=st.integers(1, 5),
)
some_examples = settings(max_examples=20, deadline=None, derandomize=True)
