"""Whole runs of agents in this process, over the transport in memory: what needs no network, without one."""

import time

import numpy as np
import pytest

pytest.importorskip("zenoh")

import amble
from amble.live.cluster import up
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.records import collect
from live_nodes import WITHIN_S, Nodes

DATA = amble.load("diabetes")
PROBLEM = amble.Problem.from_arrays(DATA.X, DATA.y, agents=3, ridge=0.01, weights="agents")


@pytest.fixture
def cluster(tmp_path):
    timing = {"patience_s": 1.0, "silence_s": 10.0}
    config = configure(PROBLEM, amble.Relay(tokens=2), amble.networks.complete(3), {"hops": 300}, 0, timing)
    return Cluster.create(tmp_path / "run", config, rows_of(PROBLEM, DATA.X, DATA.y))


def replayed(cluster):
    return up.again(collect.agent_folders([cluster.folder]))


def test_a_run_ends_with_the_optimum_at_every_agent_and_replays_bit_for_bit(cluster):
    Nodes(cluster.folder, cluster.config.agents).wait()
    for name in cluster.config.agents:
        assert cluster.status(name).cause == "hops"
        np.testing.assert_allclose(cluster.model(name), PROBLEM.optimum().w, rtol=1e-6)
    assert replayed(cluster).whole


def test_an_agent_that_was_stopped_goes_on_from_its_journal(cluster):
    nodes = Nodes(cluster.folder, cluster.config.agents)
    last = cluster.config.agents[-1]
    deadline = time.monotonic() + WITHIN_S
    while nodes.nodes[last].made < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    nodes.stop(last)
    before = cluster.status(last).visits
    nodes.start(last)
    nodes.wait()
    assert cluster.status(last).visits > before >= 5
    assert {cluster.status(name).cause for name in cluster.config.agents} == {"hops"}
    assert replayed(cluster).whole
