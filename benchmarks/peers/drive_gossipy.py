"""Rounds of GossiPy's gossip learning on a directed ring: each sends its model to the next, which merges and steps.

In a round of one tick every node sends first, and then every node receives: x_i' = y - alpha grad f_i(y), y the mean of
x_i and of its sender's model. The step is over all rows at once; torch computes in float64 on one thread.
"""

import logging

import numpy as np
import torch
from gossipy import LOG
from gossipy.core import AntiEntropyProtocol, CreateModelMode, StaticP2PNetwork
from gossipy.model import TorchModel
from gossipy.model.handler import TorchModelHandler
from gossipy.node import GossipNode
from gossipy.simul import GossipSimulator
from serve import job, serve

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
LOG.setLevel(logging.ERROR)
arrays, _, path = job()
X, y = torch.tensor(arrays["X"]), torch.tensor(arrays["y"])
agents, _, p = X.shape


class Linear(TorchModel):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(p, 1, bias=False)

    def forward(self, rows):
        return self.layer(rows)[:, 0]

    def init_weights(self):
        torch.nn.init.zeros_(self.layer.weight)


class NoTest:
    """Rows of nobody: nothing is evaluated."""

    def has_test(self):
        return False


handler = TorchModelHandler(
    net=Linear(),
    optimizer=torch.optim.SGD,
    optimizer_params={"lr": float(arrays["alpha"]) / 2},  # its loss is the mean square, amble's half of it
    criterion=torch.nn.MSELoss(),
    local_epochs=1,
    batch_size=0,  # all rows
    create_model_mode=CreateModelMode.MERGE_UPDATE,
)
ring = StaticP2PNetwork(agents, np.roll(np.eye(agents), 1, axis=1))  # i sends to i + 1
nodes = {}
for i in range(agents):
    own = handler.copy()
    own.optimizer = torch.optim.SGD(own.model.parameters(), lr=float(arrays["alpha"]) / 2)  # a copy keeps the old one's
    nodes[i] = GossipNode(i, ((X[i], y[i]), None), 1, own, ring, sync=True)
    nodes[i].init_model(local_train=False)
simulator = GossipSimulator(nodes, NoTest(), delta=1, protocol=AntiEntropyProtocol.PUSH)
simulator.initialized = True


def models():
    return np.stack([nodes[i].model_handler.model.layer.weight.detach().numpy()[0] for i in range(agents)])


serve(simulator.start, models, path)
