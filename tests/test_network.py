"""Networks: who may talk to whom, as sorted neighbour lists, connected, and never as an N x N array."""

import functools
import re
import tracemalloc

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amble
from amble import AmbleError, networks
from amble.networks.network import reached

BUILT = {
    "ring": lambda: networks.ring(7),
    "complete": lambda: networks.complete(6),
    "grid": lambda: networks.grid(3, 5),
    "geometric": lambda: networks.geometric(30, seed=1),
    "geometric with a radius": lambda: networks.geometric(30, radius=0.6, seed=1),
    "random": lambda: networks.random(20, 0.3, seed=2),
    "networkx": lambda: networks.from_networkx(networkx.petersen_graph()),
    "edges": lambda: networks.from_edges(4, [(0, 1), (3, 1), (2, 3), (1, 0), (2, 2)]),
    "one agent": lambda: networks.from_edges(1, []),
}
BUILT |= {f"named {name}": functools.partial(networks.named, name, 12) for name in networks.KINDS}


def links_of(network):
    return {tuple(link) for link in network.edges.tolist()}


def check_lists(network):
    """Neighbour lists are symmetric, sorted, without loops or repeats, and tell of the same links as `edges`."""
    lists = [network.neighbours_of(i).tolist() for i in range(network.agents)]
    for i, near in enumerate(lists):
        assert near == sorted(set(near))
        assert i not in near
        assert all(i in lists[j] for j in near)
    assert network.degrees.tolist() == [len(near) for near in lists]
    assert links_of(network) == {(i, j) for i, near in enumerate(lists) for j in near if i < j}
    assert len(network.edges) * 2 == len(network.neighbours)


def reached_by_hand(network):
    seen, waiting = {0}, [0]
    while waiting:
        fresh = set(network.neighbours_of(waiting.pop()).tolist()) - seen
        seen |= fresh
        waiting += fresh
    return len(seen)


@pytest.mark.parametrize("make", BUILT.values(), ids=BUILT)
def test_lists_are_symmetric_sorted_and_connected(make):
    network = make()
    check_lists(network)
    assert reached_by_hand(network) == network.agents


@settings(max_examples=80, deadline=None)
@given(agents=st.integers(1, 60), density=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_random_has_exactly_the_paper_s_number_of_links_and_is_connected(agents, density, seed):
    wanted = round(agents * (agents - 1) / 2 * density)
    if wanted < agents - 1:
        with pytest.raises(AmbleError, match=f"connecting them takes at least {agents - 1}"):
            networks.random(agents, density, seed)
        return
    network = networks.random(agents, density, seed)
    assert len(network.edges) == wanted
    check_lists(network)
    assert reached_by_hand(network) == agents


@settings(max_examples=25, deadline=None)
@given(agents=st.integers(5, 40), density=st.floats(0.5, 1), seed=st.integers(0, 2**32))
def test_random_is_the_same_for_the_same_seed(agents, density, seed):
    first, again = (networks.random(agents, density, seed) for _ in range(2))
    assert np.array_equal(first.neighbours, again.neighbours)
    assert np.array_equal(first.starts, again.starts)


def test_random_differs_for_other_seeds():
    assert len({frozenset(links_of(networks.random(12, 0.5, seed))) for seed in range(50)}) == 50


def test_random_uses_every_pair_alike():
    """Links beyond the tree are drawn at random: over many seeds no pair is favoured."""
    counts = np.zeros((6, 6))
    for seed in range(600):
        for density in (0.4, 0.8):  # the sparse and the dense way of drawing
            i, j = networks.random(6, density, seed).edges.T
            counts[i, j] += 1
    often = counts[np.triu_indices(6, 1)] / 1200
    assert np.allclose(often, 0.6, atol=0.06)


@pytest.mark.parametrize("agents", [7, 100, 1960, 2900])
def test_the_density_that_the_error_names_is_enough(agents):
    with pytest.raises(AmbleError, match="use a density of at least") as caught:
        networks.random(agents, density=1e-7)
    least = float(re.search(r"at least ([\d.e-]+)\.$", str(caught.value))[1])
    assert len(networks.random(agents, density=least).edges) >= agents - 1


def test_ring():
    assert links_of(networks.ring(5)) == {(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)}
    assert links_of(networks.ring(2)) == {(0, 1)}


def test_complete():
    network = networks.complete(7)
    assert (network.degrees == 6).all()
    assert len(network.edges) == 21


def test_grid_is_numbered_row_by_row():
    network = networks.grid(2, 3)
    assert links_of(network) == {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)}
    assert links_of(networks.grid(1, 4)) == {(0, 1), (1, 2), (2, 3)}


def test_geometric_links_those_nearer_than_the_radius():
    network = networks.geometric(40, radius=0.5, seed=3)
    places = np.random.default_rng([3, 40]).random((40, 2))
    apart = np.linalg.norm(places[:, None] - places, axis=-1)
    assert links_of(network) == set(zip(*np.nonzero(np.triu(apart < 0.5, 1)), strict=True))


def test_geometric_finds_a_radius_that_connects_and_refuses_one_that_does_not():
    assert reached_by_hand(networks.geometric(200, seed=0)) == 200
    with pytest.raises(AmbleError, match="not connected: from agent 0 only"):
        networks.geometric(50, radius=0.01, seed=0)


@settings(max_examples=30, deadline=None)
@given(agents=st.integers(2, 30), seed=st.integers(0, 10_000))
def test_from_networkx_has_the_graph_s_links_in_the_graph_s_order(agents, seed):
    graph = networkx.random_labeled_tree(agents, seed=seed)
    graph = networkx.relabel_nodes(graph, {i: f"agent {i}" for i in graph})
    network = networks.from_networkx(graph)
    number = {node: i for i, node in enumerate(graph.nodes)}
    assert links_of(network) == {tuple(sorted((number[a], number[b]))) for a, b in graph.edges}


def test_from_edges_drops_repeated_links_and_loops():
    assert links_of(networks.from_edges(3, [(0, 1), (1, 0), (1, 1), (2, 1), (1, 2)])) == {(0, 1), (1, 2)}


@pytest.mark.parametrize(
    "make",
    [
        lambda: networks.random(1),
        lambda: networks.ring(1),
        lambda: networks.complete(1),
        lambda: networks.grid(1, 1),
        lambda: networks.geometric(1),
        lambda: networks.from_networkx(networkx.path_graph(1)),
    ],
)
def test_one_agent_is_a_network(make):
    network = make()
    assert (network.agents, len(network.edges), network.degrees.tolist()) == (1, 0, [0])


def test_a_disconnected_network_says_how_many_can_be_reached():
    with pytest.raises(AmbleError, match="from agent 0 only 2 of 5 agents can be reached; add links"):
        networks.from_edges(5, [(0, 1), (2, 3), (3, 4)])
    with pytest.raises(AmbleError, match="not connected"):
        networks.from_networkx(networkx.empty_graph(3))


def test_a_link_to_nobody_is_named():
    with pytest.raises(AmbleError, match="names agent 3; agents are numbered 0 to 2"):
        networks.from_edges(3, [(0, 3), (1, 2)])
    with pytest.raises(AmbleError, match="names agent -1; agents are numbered 0 to 2"):
        networks.from_edges(3, [(0, 1), (-1, 2)])


@pytest.mark.parametrize("agents", [0, -3])
@pytest.mark.parametrize("make", [networks.random, networks.ring, networks.complete, networks.geometric])
def test_a_network_needs_an_agent(make, agents):
    with pytest.raises(AmbleError, match=f"agents={agents} was given"):
        make(agents)


def test_a_hundred_thousand_agents_take_no_square_array():
    agents = 100_000
    tracemalloc.start()
    network = networks.random(agents, density=4e-5, seed=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(network.edges) == round(agents * (agents - 1) / 2 * 4e-5)
    assert reached(network).all()
    assert peak < 200e6  # one bit a pair would already be 1.25e9 bytes


def test_the_public_name():
    assert isinstance(amble.networks.ring(3), amble.Network)
