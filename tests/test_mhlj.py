"""MHLJ: its walk against dense matrices, its steps by hand, where it ends, and what jumps cost."""

import itertools

import numpy as np
import pytest

import amble
from amble import AmbleError, networks
from amble.live.settings.parts import make_method
from amble.networks import walks
from amble.networks.meetings import PASS, VISIT
from rival_samples import NETWORK, A, B, N, P, adjacency, go, make_problem, relative

METHOD = amble.MHLJ(gamma=0.1, p_J=0.3, p_d=0.4, r=3)
L = np.linalg.eigvalsh(A)[:, -1]


def chance_of_steps(p_d, r):
    """The truncated geometric law of 1 .. r steps."""
    chance = p_d * (1 - p_d) ** np.arange(r)
    return chance / chance.sum()


def visits_matrix(network, weight, p_J, p_d, r):
    """(1 - p_J) P_IS + p_J sum_k chance(k) W^k: from one visited agent to the next."""
    links = adjacency(network)
    d = links.sum(axis=1)
    accepted = np.minimum(1, d[:, None] * weight[None, :] / (d[None, :] * weight[:, None]))
    moves = links / d[:, None] * accepted
    P_IS = moves + np.diag(1 - moves.sum(axis=1))
    W = links / d[:, None]
    levy = sum(c * np.linalg.matrix_power(W, k) for k, c in enumerate(chance_of_steps(p_d, r), 1))
    return (1 - p_J) * P_IS + p_J * levy


def stationary(matrix):
    n = len(matrix)
    return np.linalg.lstsq(np.vstack([matrix.T - np.eye(n), np.ones(n)]), np.append(np.zeros(n), 1), rcond=None)[0]


@pytest.mark.parametrize("network", [NETWORK, networks.ring(9), networks.grid(3, 4)], ids=lambda n: n.name)
def test_without_jumps_agents_are_visited_in_proportion_to_their_weights(network):
    """Detailed balance of the tables themselves: L_i P_ij = L_j P_ji, rows sum to one."""
    weight = np.random.default_rng(1).lognormal(size=network.agents)
    law = walks.Weighted(weight, np.array(0.0), np.array(0.5), np.array(3))
    tables = walks.walk_for(law, network, 1, seed=0)
    matrix = np.zeros((network.agents, network.agents))
    for i in range(network.agents):
        row = slice(tables.starts[i], tables.starts[i + 1])
        matrix[i, tables.targets[row]] += np.diff(tables.cumulated[row], prepend=0)
    assert np.allclose(matrix, visits_matrix(network, weight, 0, 0.5, 3), atol=1e-15)
    assert np.allclose(weight[:, None] * matrix, (weight[:, None] * matrix).T, atol=1e-15)
    assert np.allclose(stationary(matrix), weight / weight.sum())
    assert not tables.law.any()


def test_the_walk_has_the_chances_of_the_formula():
    """400,000 hops: how often one visited agent follows another, how many steps jumps have, where they pass."""
    run = go(METHOD, hops=400_000, every=400_000, optimum=False)
    agent, there = run.schedule.agent, run.schedule.visits
    assert set(run.schedule.role.tolist()) == {VISIT, PASS}
    visited = agent[there]
    counts = np.zeros((N, N))
    np.add.at(counts, (visited[:-1], visited[1:]), 1)
    expected = visits_matrix(NETWORK, L, METHOD.p_J, METHOD.p_d, METHOD.r)
    rows = counts.sum(axis=1, keepdims=True)
    assert np.abs(counts / rows - expected).max() < 5 * np.sqrt(0.25 / rows.min())
    passed = np.diff(np.flatnonzero(there)) - 1  # agents passed between two visits
    share = np.bincount(passed, minlength=3) / len(passed)
    law = METHOD.p_J * chance_of_steps(METHOD.p_d, METHOD.r)
    assert np.allclose(share, [1 - law[1:].sum(), *law[1:]], atol=0.004)
    links = adjacency(NETWORK) > 0
    assert all(links[i, j] or i == j for i, j in itertools.pairwise(agent[:2000].tolist()))


@pytest.mark.parametrize("engine", ["compiled", "plain"])
def test_its_steps_are_the_formula(engine):
    """z' = z - gamma/L_i grad f_i(z) at each visit, and nothing where a token passes."""
    run = go(METHOD, hops=200, every=1, engine=engine)
    z, models = np.zeros(P), [np.zeros(P)]
    for i, there in zip(run.schedule.agent, run.schedule.visits, strict=True):
        if there:
            z = z - METHOD.gamma / L[i] * (A[i] @ z - B[i])
        models.append(z)
    assert np.allclose(run.consensus, models, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p_J", [0.0, 0.5])
def test_it_ends_around_the_minimiser_that_its_visits_weigh(p_J):
    """The mean of the models tends to where sum_i s_i/L_i grad f_i = 0, s_i the share of visits: without jumps that is
    the optimum; with them it is not."""
    method = amble.MHLJ(gamma=0.002, p_J=p_J)
    run = go(method, hops=600_000, every=500)
    share = stationary(visits_matrix(NETWORK, L, p_J, method.p_d, method.r)) / L
    limit = np.linalg.solve(np.einsum("i,ijk->jk", share, A), share @ B)
    best = np.linalg.solve(A.sum(axis=0), B.sum(axis=0))
    found = run.consensus[len(run.consensus) // 5 :].mean(axis=0)
    assert relative(found, limit) < 0.02
    assert (relative(limit, best) < 1e-10) == (p_J == 0)
    assert p_J == 0 or relative(found, best) > 2 * relative(found, limit)


def test_jumps_cost_messages_and_no_computing():
    """Each step of a jump is a unit and a second; only visits take the agent's time."""
    timing = amble.Timing(low_s=1.0, high_s=1.0, compute=5.0)
    run = go(METHOD, hops=500, every=1, timing=timing)
    took = np.diff(run.schedule.time_s, prepend=0)
    expected = run.schedule.moved * 1.0 + run.schedule.visits * 5.0
    assert np.allclose(took, expected)
    assert run.history["comm_units"][-1] == run.schedule.moved.sum()
    assert run.history["bytes"][-1] == 8 * P * run.schedule.moved.sum()


def test_its_walk_is_its_own_and_kept(tmp_path):
    """Whatever walk= says, as with rounds; a saved run goes on as if it had not stopped."""
    problem = make_problem()
    whole = go(METHOD, problem, hops=600, every=50, walk="cycle")
    assert whole.walk_name == "weighted"
    assert np.array_equal(whole.schedule.agent, go(METHOD, problem, hops=600).schedule.agent)
    part = amble.load_run(go(METHOD, problem, hops=300, every=50).save(tmp_path / "run"))
    assert part.walk_name == "weighted"
    again = amble.resume(part, problem, hops=600, progress=False)
    assert np.array_equal(again.consensus, whole.consensus)
    several = go(amble.MHLJ(tokens=3), hops=600)
    assert sorted(set(several.schedule.token.tolist())) == [0, 1, 2]
    tuned = go(amble.MHLJ(), hops=200, tune=True)
    assert 0 < tuned.method.gamma < 2


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"gamma": 0}, "gamma=0 was given; it must be a number above zero"),
        ({"p_J": 1.0}, "p_J=1.0 was given; it must be a chance from 0 to below 1"),
        ({"p_d": 0.0}, "p_d=0.0 was given; it must be a chance above 0, at most 1"),
        ({"r": 0}, "r=0 was given; it must be a whole number of steps from 1 to 1000"),
    ],
)
def test_wrong_settings_are_refused(bad, message):
    with pytest.raises(AmbleError, match=message):
        amble.MHLJ(**bad)


def test_agents_without_curvature_are_refused():
    rows = [(np.zeros((3, 2)), np.ones(3)), (np.eye(2), np.arange(2.0))]
    flat = amble.Problem.from_agents(rows, task="regression", scale=False, intercept=False, ridge=0)
    with pytest.raises(AmbleError, match="MHLJ walks by the smoothness of each agent's loss, and one is 0"):
        go(amble.MHLJ(), flat, networks.ring(2), hops=10)


def test_live_runs_have_no_such_walk():
    with pytest.raises(
        AmbleError, match="MHLJ was given; its tokens jump, by a walk that only simulations have: choose"
    ):
        make_method({"name": "MHLJ"}, 4)
