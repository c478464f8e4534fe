"""Walks: where a token goes next. Every step is a link or staying put, whichever walk it is."""

from functools import cache
from itertools import pairwise

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from amble import AmbleError, networks
from amble.networks import walks
from amble.networks.cycles import closed_walk, tour
from amble.randomness import TIE, WALK, draw, draw_one
from amble.schedule import schedule as scheduling
from amble.schedule import timing as timings

NETWORKS = {
    "one": lambda: networks.ring(1),
    "two": lambda: networks.ring(2),
    "ring": lambda: networks.ring(9),
    "star": lambda: networks.from_networkx(networkx.star_graph(6)),
    "random": lambda: networks.random(12, 0.4, seed=3),
    "grid": lambda: networks.grid(4, 4),
}
WITHOUT_CYCLE = {
    "star": lambda: networks.from_networkx(networkx.star_graph(8)),
    "path": lambda: networks.from_networkx(networkx.path_graph(11)),
}


def travel(walk, seed, tokens, hops):
    """Each token's agents, one hop after another, by the walk's own step on NumPy."""
    agent, memory = walk.begin(np)
    rows = [np.array(agent)]
    for hop in range(hops):
        following = []
        for token in range(tokens):
            u = draw(np, np.uint64(seed), np.uint64(token), np.uint64(hop), WALK)
            after, memory = walk.step(np, memory, token, rows[-1][token], u, np.uint64(seed))
            following.append(after)
        rows.append(np.array(following))
    return np.array(rows).T


def linked(network, path):
    return all(a == b or b in network.neighbours_of(a) for a, b in pairwise(path))


def is_hamiltonian(network, walk):
    return sorted(walk) == list(range(network.agents)) and linked(network, [*walk, walk[0]])


def metropolis_matrix(network):
    """P_ij = 1/max(d_i+1, d_j+1), P_ii the rest."""
    P = np.zeros((network.agents, network.agents))
    for i, j in network.edges:
        P[i, j] = P[j, i] = 1 / max(network.degrees[i] + 1, network.degrees[j] + 1)
    return P + np.diag(1 - P.sum(axis=1))


@cache
def long_walk(name, hops=60_000):
    """One token's walk over a small uneven network, by the compiled schedule: quick enough for frequencies."""
    network = uneven()
    walk = walks.walk_for(name, network, 1, seed=5)
    made = scheduling.plan_hops(
        network,
        walk,
        timings.timing_from("paper"),
        tokens=1,
        compute_s=np.zeros(5),
        message_bytes=8.0,
        seed=5,
        hops=hops,
    )
    return made.agent


def uneven():
    return networks.from_edges(5, [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (3, 4), (2, 3)])


def transitions(agents, size):
    counts = np.zeros((size, size))
    np.add.at(counts, (agents[:-1], agents[1:]), 1)
    return counts


def check_frequencies(agents, P):
    """Each row's counts against P by a chi-square sum; for k targets it is about k - 1, and far less than k + 30."""
    counts = transitions(agents, len(P))
    assert not counts[P == 0].any()
    expected = counts.sum(axis=1, keepdims=True) * P
    chi = np.where(P > 0, (counts - expected) ** 2 / np.where(P > 0, expected, 1), 0).sum(axis=1)
    assert (chi < (P > 0).sum(axis=1) + 30).all(), chi


@pytest.mark.parametrize("tokens", [1, 4])
@pytest.mark.parametrize("name", walks.NAMES)
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_every_step_is_a_link_or_staying_put(make, name, tokens):
    network = make()
    for path in travel(walks.walk_for(name, network, tokens, seed=1), 1, tokens, 60):
        assert linked(network, path)
        assert path.min() >= 0
        assert path.max() < network.agents


@settings(max_examples=40, deadline=None)
@given(agents=st.integers(8, 40), density=st.floats(0.5, 1), seed=st.integers(0, 2**32))
def test_a_dense_random_network_has_a_hamiltonian_cycle_and_it_is_found(agents, density, seed):
    network = networks.random(agents, density, seed)
    if network.degrees.min() * 2 < agents:  # Dirac's theorem promises a cycle only from here on
        return
    assert is_hamiltonian(network, closed_walk(network, np.random.default_rng(seed)))


@pytest.mark.parametrize(
    "network",
    [networks.ring(3), networks.ring(50), networks.complete(9), networks.grid(4, 5), networks.grid(5, 6)],
    ids=lambda network: f"{network.name} {network.agents}",
)
def test_cycle_visits_every_agent_once_a_lap(network):
    tokens, N = 3, network.agents
    for path in travel(walks.walk_for("cycle", network, tokens, seed=4), 4, tokens, 3 * N):
        for lap in range(3):
            assert is_hamiltonian(network, path[lap * N : (lap + 1) * N].tolist())


@pytest.mark.parametrize("make", WITHOUT_CYCLE.values(), ids=WITHOUT_CYCLE)
@pytest.mark.parametrize("seed", range(5))
def test_without_a_hamiltonian_cycle_it_is_a_short_closed_walk_through_all(make, seed):
    network = make()
    walk = list(closed_walk(network, np.random.default_rng(seed)))
    assert set(walk) == set(range(network.agents))
    assert linked(network, [*walk, walk[0]])
    assert network.agents < len(walk) <= 2 * (network.agents - 1)


@pytest.mark.parametrize(
    "network",
    [networks.grid(3, 3), networks.from_edges(5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 2)])],
    ids=["odd grid", "two triangles"],
)
def test_where_degrees_would_allow_a_cycle_but_none_exists_it_is_a_short_closed_walk(network):
    walk = list(closed_walk(network, np.random.default_rng(0)))
    assert set(walk) == set(range(network.agents))
    assert linked(network, [*walk, walk[0]])
    assert network.agents < len(walk) <= 2 * (network.agents - 1)


@pytest.mark.parametrize(("rows", "columns"), [(2, 6), (3, 4), (3, 8), (6, 7)])
def test_the_cycle_of_an_even_grid_is_found_from_any_seed(rows, columns):
    network = networks.grid(rows, columns)
    for seed in range(5):
        assert is_hamiltonian(network, closed_walk(network, np.random.default_rng([seed, 2])).tolist())


@settings(max_examples=40, deadline=None)
@given(agents=st.integers(3, 60), seed=st.integers(0, 2**32))
def test_a_tour_of_a_tree_crosses_each_link_twice_at_most(agents, seed):
    network = networks.random(agents, 2 / agents, seed)
    walk = list(tour(network, np.random.default_rng(seed)))
    assert set(walk) == set(range(agents))
    assert linked(network, [*walk, walk[0]])
    assert len(walk) <= 2 * (agents - 1)


def test_tokens_on_one_cycle_start_spread_along_it():
    network = networks.random(20, 0.7, seed=0)
    walk = walks.walk_for("cycle", network, 5, seed=0)
    places = {agent: place for place, agent in enumerate(walk.order[0].tolist())}
    assert np.diff(sorted(places[agent] for agent in walk.begin(np)[0].tolist())).tolist() == [4, 4, 4, 4]


@pytest.mark.parametrize("tokens", [2, 5])
def test_cycles_is_a_closed_walk_of_its_own_for_each_token(tokens):
    network = networks.random(15, 0.7, seed=0)
    paths = travel(walks.walk_for("cycles", network, tokens, seed=0), 0, tokens, 30)
    for path in paths:
        assert is_hamiltonian(network, path[:15].tolist())
        assert path[:15].tolist() == path[15:30].tolist()
    steps = {frozenset(pairwise(path.tolist())) for path in paths}
    assert len(steps) == tokens


def test_metropolis_moves_with_its_probabilities():
    check_frequencies(long_walk("metropolis"), metropolis_matrix(uneven()))


def test_metropolis_visits_all_agents_alike_in_the_long_run():
    often = np.bincount(long_walk("metropolis"), minlength=5) / len(long_walk("metropolis"))
    assert np.allclose(often, 0.2, atol=0.01)


def test_uniform_goes_to_any_neighbour_alike():
    network = uneven()
    P = (metropolis_matrix(network) > 0).astype(float) - np.eye(5)
    check_frequencies(long_walk("uniform"), P / P.sum(axis=1, keepdims=True))
    often = np.bincount(long_walk("uniform"), minlength=5) / len(long_walk("uniform"))
    assert np.allclose(often, network.degrees / network.degrees.sum(), atol=0.01)


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_least_visited_by_a_plain_transcription(make, tokens):
    """The neighbour (or self) that this token has visited least; ties go to the smallest draw."""
    network, seed = make(), 11
    walk = walks.walk_for("least-visited", network, tokens, seed)
    paths = travel(walk, seed, tokens, 80)
    for token, path in enumerate(paths):
        agent = int(walk.begin(np)[0][token])
        visits = dict.fromkeys(range(network.agents), 0) | {agent: 1}
        expected = [agent]
        for hop in range(80):
            u = draw(np, np.uint64(seed), np.uint64(token), np.uint64(hop), WALK)
            bits = np.uint64(u * 2**53)

            def order(j, visits=visits, bits=bits):
                return visits[j], draw(np, np.uint64(seed), bits, np.uint64(j), TIE)

            agent = min([agent, *network.neighbours_of(agent).tolist()], key=order)
            visits[agent] += 1
            expected.append(agent)
        assert path.tolist() == expected


def test_least_visited_breaks_ties_at_random():
    network = networks.complete(5)
    first_steps = [travel(walks.walk_for("least-visited", network, 1, 0), seed, 1, 1)[0, 1] for seed in range(400)]
    counts = np.bincount(first_steps, minlength=5)
    assert sorted(counts > 0) == [False, True, True, True, True]
    assert counts.max() < 140


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_a_matrix_of_one_s_own(wrap):
    network = uneven()
    P = metropolis_matrix(network)
    P[0] = [0.5, 0.5, 0, 0, 0]
    walk = walks.walk_for(wrap(P), network, 2, seed=2)
    made = scheduling.plan_hops(
        network,
        walk,
        timings.timing_from("paper"),
        tokens=1,
        compute_s=np.zeros(5),
        message_bytes=8.0,
        seed=2,
        hops=40_000,
    )
    check_frequencies(made.agent, P)


def test_the_metropolis_matrix_by_hand_gives_the_steps_of_metropolis():
    network = networks.random(12, 0.4, seed=3)
    by_name = travel(walks.walk_for("metropolis", network, 3, seed=6), 6, 3, 200)
    by_hand = travel(walks.walk_for(metropolis_matrix(network), network, 3, seed=6), 6, 3, 200)
    assert np.array_equal(by_name, by_hand)


def spoiled(i, j, value):
    P = metropolis_matrix(networks.ring(4))
    P[i, j] = value
    return P


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    ("P", "sentence"),
    [
        (np.eye(3), r"shape \(3, 3\); 4 agents need \(4, 4\)"),
        (np.ones((4, 3)) / 3, r"shape \(4, 3\); 4 agents need"),
        (spoiled(1, 1, 0.5), r"not row-stochastic \(row 1 sums to 1\.16667\)"),
        (np.zeros((4, 4)), r"not row-stochastic \(row 0 sums to 0\)"),
        (spoiled(2, 2, np.nan), "not row-stochastic"),
        (np.full((4, 4), 0.25), "moves from agent 0 to agent 2, and there is no link between them"),
    ],
)
def test_a_matrix_that_cannot_be_walked_is_refused(P, sentence, wrap):
    with pytest.raises(AmbleError, match=sentence):
        walks.walk_for(wrap(P), networks.ring(4), 1, seed=0)


def test_a_negative_probability_is_named_even_where_the_row_sums_to_one():
    P = np.array([[0.5, 0.5], [1.5, -0.5]])
    with pytest.raises(AmbleError, match="row 1"):
        walks.walk_for(P, networks.ring(2), 1, seed=0)


@pytest.mark.parametrize("P", [np.ones(4), 3.0, np.ones((2, 2, 2))])
def test_a_walk_that_is_no_matrix_is_refused(P):
    with pytest.raises(AmbleError, match="the walk's matrix has shape"):
        walks.walk_for(P, networks.ring(4), 1, seed=0)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(AmbleError, match="no walk named 'metropolys'; did you mean 'metropolis'"):
        walks.walk_for("metropolys", networks.ring(4), 1, seed=0)


@pytest.mark.parametrize("name", walks.NAMES)
def test_one_agent_and_two(name):
    assert not travel(walks.walk_for(name, networks.ring(1), 3, seed=0), 0, 3, 10).any()
    paths = travel(walks.walk_for(name, networks.ring(2), 3, seed=0), 0, 3, 40)
    if name == "meeting":  # each agent is one token's, and a third token has none
        assert set(paths.ravel().tolist()) == {0, 1}
        return
    assert all(set(path.tolist()) == {0, 1} for path in paths)
    if name in ("cycle", "cycles", "uniform"):
        assert (paths[:, 1:] != paths[:, :-1]).all()


@pytest.mark.parametrize("name", [*walks.NAMES, "matrix"])
@pytest.mark.parametrize("network_name", ["one", "two", "random"])
def test_the_compiled_schedule_takes_the_same_steps_as_numpy(network_name, name):
    network, tokens, seed = NETWORKS[network_name](), 3, 21
    walk = walks.walk_for(metropolis_matrix(network) if name == "matrix" else name, network, tokens, seed)
    made = scheduling.plan_hops(
        network,
        walk,
        timings.timing_from("paper"),
        tokens=tokens,
        compute_s=np.full(network.agents, 1e-6),
        message_bytes=8.0,
        seed=seed,
        hops=300,
    )
    paths = travel(walk, seed, tokens, 300)
    for token in range(tokens):
        steps = made.agent[made.token == token]
        assert len(steps) > 50
        assert steps.tolist() == paths[token, : len(steps)].tolist()


@pytest.mark.parametrize("name", ["cycle", "cycles", "metropolis", "uniform", "least-visited"])
def test_another_seed_starts_or_goes_elsewhere(name):
    network = networks.random(30, 0.5, seed=0)
    one, other = (travel(walks.walk_for(name, network, 2, seed), seed, 2, 30) for seed in (0, 1))
    assert not np.array_equal(one, other)


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**20), st.integers(0, 2**40), st.integers(0, 2))
def test_one_draw_is_bit_for_bit_that_of_arrays(seed, token, hop, stream):
    bits = (np.array([number], np.uint64) for number in (seed, token, hop))
    assert draw_one(seed, token, hop, stream) == draw(np, *bits, stream)[0]
