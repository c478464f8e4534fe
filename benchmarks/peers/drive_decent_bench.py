"""Rounds of decent-bench: no metrics, and no snapshot but that of the last round, which its `run` always takes."""

import sys

import networkx as nx
import numpy as np
from decent_array import interoperability as iop
from decent_bench.agents import Agent
from decent_bench.algorithms.p2p import ADMM, DGD, EXTRA
from decent_bench.costs import QuadraticCost
from decent_bench.networks import P2PNetwork
from serve import job, serve

arrays, method, path = job()
alpha, rho = float(arrays["alpha"]), float(arrays["rho"])
iop.set_backend("numpy")


def loss(X, y):
    """Keeps what amble's loss keeps: the Gram matrix, not the rows."""
    return QuadraticCost(iop.from_numpy(X.T @ X / len(y)), iop.from_numpy(-X.T @ y / len(y)))


# its weights are Metropolis's unless others are given; its ADMM relaxed by a half, penalty 2 rho, is D-ADMM of rho
algorithm = {
    "DGD": lambda: DGD(step_size=alpha),
    "EXTRA": lambda: EXTRA(step_size=alpha),
    "D-ADMM": lambda: ADMM(penalty=2 * rho, relaxation=0.5),
}[method]()
links = nx.Graph()
links.add_nodes_from(range(len(arrays["X"])))
links.add_edges_from(arrays["edges"].tolist())
agents = [Agent(loss(X, y), state_snapshot_period=sys.maxsize) for X, y in zip(arrays["X"], arrays["y"], strict=True)]
network, done = P2PNetwork(links, agents), 0


def advance(rounds):
    global done
    algorithm.run(network, done + rounds, start_iteration=done)
    done += rounds


serve(advance, lambda: np.stack([iop.to_numpy(agent.x) for agent in agents]), path)
