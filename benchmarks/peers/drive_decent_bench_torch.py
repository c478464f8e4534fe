"""Rounds of decent-bench's DGD on a network of PyTorch: no metrics, and no snapshot but that of the last round."""

import sys

import networkx as nx
import numpy as np
import torch
from decent_array import interoperability as iop
from decent_array.types import Devices, Frameworks
from decent_bench import benchmark
from decent_bench.agents import Agent
from decent_bench.algorithms.p2p import DGD
from decent_bench.costs import PyTorchCost
from decent_bench.networks import P2PNetwork
from serve import job, serve
from torch_network import network_of

arrays, method, path = job()
torch.set_num_threads(1)
benchmark.configure(framework=Frameworks.PYTORCH, device=Devices.CPU, seed=int(arrays["seed"]))
batch, agents = int(arrays["batch"]), int(arrays["agents"])


def cost(i):
    X, y = torch.from_numpy(arrays[f"X{i}"]), torch.from_numpy(arrays[f"y{i}"])
    rows = list(zip(X, y, strict=True))
    module = network_of(round(X.shape[1] ** 0.5))
    return PyTorchCost(rows, module, torch.nn.CrossEntropyLoss(), batch_size=batch or "all")


links = nx.Graph()
links.add_nodes_from(range(agents))
links.add_edges_from(arrays["edges"].tolist())
members = [Agent(cost(i), state_snapshot_period=sys.maxsize) for i in range(agents)]
start = iop.from_numpy(arrays["start"])
algorithm = DGD(step_size=float(arrays["alpha"]), x0=start)
network, done = P2PNetwork(links, members), 0


def advance(rounds):
    global done
    algorithm.run(network, done + rounds, start_iteration=done)
    done += rounds


serve(advance, lambda: np.stack([iop.to_numpy(agent.x) for agent in members]), path)
