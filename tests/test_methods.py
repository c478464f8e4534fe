"""One contract for all methods, in all their forms: shapes, engines, seeds, names, answers, divergence, resuming."""

import re
from dataclasses import replace

import numpy as np
import pytest

import amble
from amble import engines, methods, networks
from amble.engines import compiled
from amble.methods.rounding import lost
from amble.testing import methods as testing

N, P = 8, 4
FORMS = {
    "I-BCD": amble.IBCD(tau=1.0),
    "I-BCD, 3 tokens": amble.IBCD(tau=1.0, tokens=3),
    "API-BCD, published": amble.APIBCD(tau=0.3, tokens=3),
    "API-BCD, scaled": amble.APIBCD(tau=0.3, tokens=3, token_rule="scaled"),
    "API-BCD, tracked": amble.APIBCD(tau=0.3, tokens=3, token_rule="tracked"),
    "gAPI-BCD, published": amble.GAPIBCD(tau=0.3, tokens=3),
    "gAPI-BCD, scaled": amble.GAPIBCD(tau=0.3, tokens=3, token_rule="scaled"),
    "gAPI-BCD, tracked": amble.GAPIBCD(tau=0.3, tokens=3, token_rule="tracked", rho=2.0),
    "WPG": amble.WPG(alpha=0.3),
    "WPG, 3 tokens": amble.WPG(alpha=0.3, tokens=3),
    "WADMM, prox": amble.WADMM(beta=1.0),
    "WADMM, prox, 3 tokens": amble.WADMM(beta=1.0, tokens=3),
    "WADMM, gradient": amble.WADMM(beta=10.0, form="gradient"),
    "PW-ADMM, copies": amble.PWADMM(beta=1.0, tokens=3),
    "PW-ADMM, own": amble.PWADMM(beta=1.0, tokens=3, form="own"),
    "PW-ADMM, own, 1 token": amble.PWADMM(beta=1.0, tokens=1, form="own"),
    "Dual-BCD": amble.DualBCD(mu=0.3),
    "Dual-BCD, 3 tokens": amble.DualBCD(mu=0.3, tokens=3),
    "MHLJ": amble.MHLJ(gamma=0.1),
    "Relay, full": amble.Relay(form="full"),
    "Relay, scalar": amble.Relay(form="scalar"),
    "Relay, inexact": amble.Relay(form="inexact"),
    "Relay, gradient": amble.Relay(form="gradient"),
    "Relay, full, 3 tokens": amble.Relay(tokens=3, form="full"),
    "Relay, full, float32": amble.Relay(form="full", message="float32"),
    "Relay, full, float32, 3 tokens": amble.Relay(tokens=3, form="full", message="float32"),
    "Relay, scalar, 3 tokens": amble.Relay(tokens=3, form="scalar"),
    "Relay, inexact, 3 tokens": amble.Relay(tokens=3, form="inexact"),
    "Relay, gradient, 3 tokens": amble.Relay(tokens=3, form="gradient"),
    "DGD": amble.DGD(alpha=0.1),
    "EXTRA": amble.EXTRA(alpha=0.1),
    "DIGing": amble.DIGing(alpha=0.1),
    "DATOS": amble.DATOS(),
    "AD-PSGD": amble.ADPSGD(alpha=0.1),
    "D-ADMM": amble.DADMM(rho=0.1),
    "Central": amble.Central(tau=1.0),
    "SyncWalks": amble.SyncWalks(tau=0.3, tokens=3),
    "FedAvg, 1 step": amble.FedAvg(alpha=0.1, local_steps=1),
    "FedAvg, 5 steps": amble.FedAvg(alpha=0.1, local_steps=5),
}
LISTED = dict(FORMS)
for label, kind in methods.METHODS.items():  # one that is not listed above: as it is, and in every form of its settings
    if label not in {method.label for method in LISTED.values()}:
        choices = [{}, *({name: each} for name, allowed in getattr(kind, "choices", {}).items() for each in allowed)]
        FORMS |= {f"{label} {settings}": kind(**settings) for settings in choices}
PENALTY = ("I-BCD", "API-BCD", "gAPI-BCD", "DGD", "Central", "SyncWalks")
EXACT = {
    name: method
    for name, method in LISTED.items()
    if method.label not in PENALTY and name not in ("FedAvg, 5 steps", "PW-ADMM, own", "AD-PSGD", "MHLJ")
}
NETWORK = networks.random(N, 0.6, seed=1)
ENGINES = ("compiled", "plain")
all_forms = pytest.mark.parametrize("name", FORMS)


def make_problem(weights="agents"):
    """Least squares, well conditioned, agents with optima of their own and 5 to 40 rows."""
    rng = np.random.default_rng(5)
    rows = []
    for d in (5, 7, 9, 12, 16, 21, 30, 40):
        X = rng.normal(size=(d, P))
        rows.append((X, X @ (1 + rng.normal(size=P)) + 0.1 * rng.normal(size=d)))
    return amble.Problem.from_agents(rows, ridge=0.1, intercept=False, scale=False, weights=weights)


PROBLEMS = {weights: make_problem(weights) for weights in ("agents", "rows")}
PROBLEM = PROBLEMS["agents"]


def limits(method, hops):
    return {"rounds": -(-hops // N)} if methods.is_round(method) else {"hops": hops}


def go(method, hops=90, problem=PROBLEM, **options):
    options = {"seed": 3, "every": 7, "progress": False, **limits(method, hops), **options}
    return amble.simulate(method, problem, NETWORK, **options)


def relative(one, other):
    return np.linalg.norm(one - other) / np.linalg.norm(other)


def test_every_method_is_under_contract():
    """`METHODS` lists all methods, and each is below in every form that its settings allow."""
    assert {method.label for method in FORMS.values()} == set(methods.METHODS)
    for label, kind in methods.METHODS.items():
        for setting, allowed in getattr(kind, "choices", {}).items():
            used = {getattr(method, setting) for method in FORMS.values() if method.label == label}
            if setting != "tokens":  # words for a number, which is there before a run begins: test_choosing.py
                assert used >= set(allowed) - {"auto"}, label


@pytest.mark.parametrize("check", testing.METHOD_CHECKS, ids=lambda check: check.__name__)
@all_forms
def test_the_contract(name, check):
    """Pure steps, shapes on NumPy and JAX, engines, seeds, names, resuming: what `amble.testing.check_method` tests."""
    check(methods.check(FORMS[name]))


@pytest.mark.parametrize("weights", PROBLEMS)
@pytest.mark.parametrize("name", EXACT)
def test_exact_methods_find_the_optimum(name, weights):
    """`exact` methods to 1e-8: the minimiser of sum_i f_i, by a linear system of the agents' own A_i and b_i."""
    problem, method = PROBLEMS[weights], EXACT[name]
    best = np.linalg.solve(problem.stacked.A.sum(axis=0), problem.stacked.b.sum(axis=0))
    own = np.linalg.solve(problem.stacked.A, problem.stacked.b[..., None])[..., 0]
    assert relative(own, np.tile(best, (N, 1))) > 0.3  # the agents do differ
    run = go(method, 8000 if weights == "rows" else 4000, problem, every=8000)
    assert relative(run.model, best) < 1e-8
    step = method.label in ("WPG", "FedAvg")  # whose x_i are a gradient step from the model
    assert step or relative(run.models, np.tile(best, (N, 1))) < 1e-8


def penalty_limit(problem, pull, tokens):
    """x_i with grad f_i(x_i) + pull (M x_i - mean x) = 0, stacked: one linear system of N p unknowns.

    With M = 1 it is where I-BCD and eq. 4-5 end: grad f_i(x_i) + tau (x_i - z) = 0, z = mean x.
    """
    A, b = problem.stacked.A, problem.stacked.b
    whole = np.zeros((N, P, N, P))
    for i in range(N):
        whole[i, :, i, :] += A[i] + pull * tokens * np.eye(P)
        for j in range(N):
            whole[i, :, j, :] -= pull / N * np.eye(P)
    return np.linalg.solve(whole.reshape(N * P, N * P), b.reshape(-1)).reshape(N, P)


def metropolis_matrix(network):
    """W_ij = 1/max(d_i+1, d_j+1) on links, the rest on the diagonal."""
    W = np.zeros((network.agents, network.agents))
    for i, j in network.edges.tolist():
        W[i, j] = W[j, i] = 1 / (1 + max(network.degrees[i], network.degrees[j]))
    return W + np.diag(1 - W.sum(axis=1))


def dgd_limit(problem, alpha):
    """(I - W) x + alpha grad f(x) = 0, stacked."""
    mixing = np.kron(np.eye(N) - metropolis_matrix(NETWORK), np.eye(P))
    curved = np.zeros((N, P, N, P))
    for i in range(N):
        curved[i, :, i, :] = alpha * problem.stacked.A[i]
    b = alpha * problem.stacked.b.reshape(-1)
    return np.linalg.solve(mixing + curved.reshape(N * P, N * P), b).reshape(N, P)


def fedavg_limit(problem, alpha, steps):
    """x_i = S_i^E z + (I - S_i^E) A_i^-1 b_i with S_i = I - alpha A_i / share_i, and z = mean_i share_i x_i."""
    A, b, share = problem.stacked.A, problem.stacked.b, problem.stacked.share
    eye = np.eye(P)
    S = [np.linalg.matrix_power(eye - alpha * A[i] / share[i], steps) for i in range(N)]
    rest = [(eye - S[i]) @ np.linalg.solve(A[i], b[i]) for i in range(N)]
    mean_S = np.mean([share[i] * S[i] for i in range(N)], axis=0)
    z = np.linalg.solve(eye - mean_S, np.mean([share[i] * rest[i] for i in range(N)], axis=0))
    return np.array([S[i] @ z + rest[i] for i in range(N)]), z


def own_limit(method, problem):
    """Where a penalty method ends: its x_i, and the model it stands for."""
    if method.label == "DGD":
        x = dgd_limit(problem, method.alpha)
        return x, x.mean(axis=0)
    if method.label == "FedAvg":
        return fedavg_limit(problem, method.alpha, method.local_steps)
    if getattr(method, "token_rule", "") == "published":
        x = penalty_limit(problem, method.tau, method.tokens)
        return x, x.mean(axis=0) / method.tokens
    several = method.label in ("API-BCD", "gAPI-BCD", "SyncWalks")
    x = penalty_limit(problem, method.tau * (method.tokens if several else 1), 1)
    return x, x.mean(axis=0)


@pytest.mark.parametrize("weights", PROBLEMS)
@pytest.mark.parametrize("name", [*(name for name in FORMS if FORMS[name].label in PENALTY), "FedAvg, 5 steps"])
def test_penalty_methods_end_at_their_own_fixed_point(name, weights):
    """I-BCD, Central: penalty tau; scaled, tracked, SyncWalks: tau M; published: a hidden ridge; DGD, FedAvg: theirs.

    Each is a linear system for least squares, solved here; it is not the optimum.
    """
    problem, method = PROBLEMS[weights], FORMS[name]
    x, model = own_limit(method, problem)
    assert relative(model, problem.optimum().w) > 1e-3
    run = go(method, 4000, problem, every=8000)
    assert relative(run.models, x) < 1e-8
    assert relative(run.local[-1], x.mean(axis=0)) < 1e-8
    assert relative(run.model, model) < 1e-8


def alone(method):
    return replace(method, tokens=1) if hasattr(method, "tokens") else method


@pytest.mark.parametrize("method", dict.fromkeys(map(alone, FORMS.values())), ids=repr)
def test_one_agent_with_one_token_is_the_centralised_answer(method):
    """With N = M = 1 every method, exact or not, minimises f itself, and nothing crosses a link."""
    f = PROBLEM.objective(6)
    problem = amble.Problem.from_objectives([f], P)
    hops = {"rounds" if methods.is_round(method) else "hops": 1500}
    run = amble.simulate(method, problem, networks.ring(1), engine="plain", every=1500, progress=False, **hops)
    best = np.linalg.solve(f.A, f.b)
    assert relative(run.model, best) < 1e-8 + lost(method)
    assert relative(run.models[0], best) < 1e-8 + lost(method)  # at the optimum a gradient step leads nowhere
    assert run.history["comm_units"][-1] == (0 if not methods.is_round(method) or method.hears != "mean" else 3000)


DIVERGING = {
    "WPG": (amble.WPG(alpha=50.0), "alpha"),
    "WPG, 3 tokens": (amble.WPG(alpha=50.0, tokens=3), "alpha"),
    "WADMM, gradient": (amble.WADMM(beta=0.1, form="gradient"), "beta"),
    "PW-ADMM, own": (amble.PWADMM(beta=5.0, tokens=3, form="own"), "beta"),
    "gAPI-BCD": (amble.GAPIBCD(tau=0.01, tokens=3, rho=0.1), "tau"),
    "DGD": (amble.DGD(alpha=50.0), "alpha"),
    "EXTRA": (amble.EXTRA(alpha=50.0), "alpha"),
    "DIGing": (amble.DIGing(alpha=50.0), "alpha"),
    "AD-PSGD": (amble.ADPSGD(alpha=50.0), "alpha"),
    "MHLJ": (amble.MHLJ(gamma=50.0), "gamma"),
    "FedAvg": (amble.FedAvg(alpha=50.0, local_steps=5), "alpha"),
}


def first_hop_beyond(method, schedule):
    """The first hop (round) after which |sum_i x_i|_1 exceeds 1e50 or is no number: one hop at a time,
    with a new sum each time."""
    machine = engines.engine_for("plain", method, PROBLEM, NETWORK, meets=getattr(schedule, "role", None) is not None)
    state = machine.start()
    for k in range(schedule.hops):
        state = machine.advance(state, schedule, k, k + 1)
        if not np.abs(state.agents.x.sum(axis=0)).sum() <= 1e50:
            return k + 1
    raise AssertionError("it did not diverge")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DIVERGING)
def test_divergence_is_found_within_a_lap_and_names_the_setting(name, engine):
    """Non-finite values are detected within a lap and reported as divergence with the setting to change."""
    method, setting = DIVERGING[name]
    with pytest.warns(UserWarning, match=f"diverged.*try another {setting}, or tune=True") as caught:
        run = go(method, 3000, engine=engine, every=None)
    assert run.stopped == "diverged"
    assert np.isfinite(run.consensus[:-1]).all()
    named = int(re.search(r"from (?:hop|round) (\d+) on", str(caught[0].message))[1])
    lap = 1 if methods.is_round(method) else N
    assert abs(named - first_hop_beyond(method, run.schedule)) <= lap
    assert run.schedule.hops >= named


def test_divergence_in_a_later_block_of_the_compiled_engine_names_the_right_hop(monkeypatch):
    monkeypatch.setattr(compiled, "BLOCK", 16)
    method = DIVERGING["WPG"][0]
    with pytest.warns(UserWarning, match="WPG.*diverged") as caught:
        run = go(method, 3000)
    named = int(re.search(r"from hop (\d+) on", str(caught[0].message))[1])
    assert named > 32
    assert abs(named - first_hop_beyond(method, run.schedule)) <= N


def test_a_state_is_alike_from_both_engines_and_from_disk(tmp_path):
    """State.on_numpy: "a copy in NumPy arrays, alike from both engines and from disk", tuples without fields too."""
    method = FORMS["Relay, scalar, 3 tokens"]
    runs = [go(method, 20, engine=engine) for engine in ENGINES]
    runs[0].save(tmp_path / "run")
    runs.append(amble.load_run(tmp_path / "run"))
    first = methods.first_state(method, P, meets=True)
    for run in runs:
        assert all(type(getattr(run.state, part)) is type(first[part]) for part in first)


def test_an_engine_replays_the_schedule_it_is_given():
    """advance(state, schedule, begin, end) is the state after those hops of that schedule, whatever came before."""
    schedule = go(FORMS["WPG"], 40).schedule
    other = schedule._replace(agent=schedule.agent[::-1].copy())
    for engine in ENGINES:
        machine, fresh = (engines.engine_for(engine, FORMS["WPG"], PROBLEM, NETWORK) for _ in range(2))
        machine.advance(machine.start(), schedule, 0, 40)
        again = machine.advance(machine.start(), other, 0, 40).on_numpy()
        expected = fresh.advance(fresh.start(), other, 0, 40).on_numpy()
        assert np.array_equal(again.agents.x, expected.agents.x), engine
