"""Live runs of a model from a user's own file: against the simulator, through kill -9, and agents with other code."""

import shutil
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import amble
from amble import AmbleError
from amble.engines import engine_for
from amble.live.cluster import up
from amble.live.cluster.cluster import Cluster
from amble.live.records import collect
from amble.live.settings.agent_config import AgentConfig
from amble.live.settings.config import Config
from amble.simulation.experiment import Experiment, parse
from live_nodes import Nodes

pytest.importorskip("zenoh")

JAX = """
import jax.numpy as jnp
import numpy as np
from amble.losses import JaxLoss

def scores(params, X):
    return (jnp.tanh(X @ params["A"]) @ params["b"])

def loss(params, batch):
    return jnp.mean((scores(params, batch[0]) - batch[1]) ** 2)

def objective(X, y):
    rng = np.random.default_rng(0)
    params = {"A": rng.normal(size=(10, 3)) / 3, "b": rng.normal(size=3)}
    return JaxLoss(loss, params, [(X, y)], batch_size=8, metric=loss, test=(X, y), task="regression")
"""
TORCH = """
import torch
from torch.nn.functional import cross_entropy
from amble.losses import TorchLoss

def accuracy(module, test):
    return (module(test[0]).argmax(dim=1) == test[1]).double().mean()

def objective(X, y):
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(64, 16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 10)
    )
    loss = lambda module, batch: cross_entropy(module(batch[0]), batch[1])
    return TorchLoss(module, loss, [(X, y)], batch_size=16, metric=accuracy, test=(X, y), task="classification")
"""
PLAIN = """
import numpy as np

class Squares:
    def __init__(self, X, y):
        self.X, self.y, self.start = X, y, np.zeros(10)
    def value(self, w):
        return np.mean((self.X @ w - self.y) ** 2) / 2
    def grad(self, w):
        return self.X.T @ (self.X @ w - self.y) / len(self.y)

objective = Squares
"""


def prepared(folder, code, method="WPG:alpha=0.3", data="diabetes", hops=200, agents=4):
    (folder / "net.py").write_text(code)
    chosen = {"data": data, "agents": agents, "network": "ring", "methods": [parse(method)]}
    settings = Experiment().with_settings(chosen)
    return up.prepare(settings, {"hops": hops}, folder / "run", False, file=folder / "net.py")


def wait_for(condition, seconds=90.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def trained(plan):
    """The plan's run by whole agents in this process."""
    Cluster.create(plan.folder, plan.config, plan.rows)
    nodes = Nodes(plan.folder, plan.config.agents)
    nodes.wait()
    return nodes


def killed_and_back(plan, before, after):
    """The plan, slowed down, and its model: agent02 is killed after so many visits, and started again for more."""
    plan = replace(plan, config=replace(plan.config, timing=replace(plan.config.timing, pause_s=0.02)))
    with Cluster.create(plan.folder, plan.config, plan.rows) as cluster:
        cluster.start_all()
        wait_for(lambda: cluster.status("agent02").visits > before)
        visits = cluster.status("agent02").visits
        cluster.kill("agent02")
        cluster.start("agent02")
        wait_for(lambda: cluster.status("agent02").visits > visits + after)
        assert cluster.failed() == {}
        cluster.end()
        return plan, up.finish(plan, cluster)


@pytest.mark.parametrize("method", ["WPG:alpha=0.3", "WADMM:beta=20,form=gradient"])
def test_a_live_run_of_a_file_has_the_numbers_of_the_simulator(tmp_path, method):
    """One token on the ring, with mini-batches: which rows each visit draws, too."""
    plan = prepared(tmp_path, JAX, method)
    trained(plan)
    outcome = up.again(collect.agent_folders([plan.folder]), plan=plan)
    assert outcome.whole, outcome
    live = amble.load_run(plan.folder / "run.json")
    machine = engine_for("plain", plan.config.method, plan.problem, plan.network, plan.problem.trains.start)
    state = machine.advance(machine.start(), live.schedule, 0, live.schedule.hops)  # on the walk that the agents took
    np.testing.assert_array_equal(state.agents.x, live.state.agents.x)
    assert live.history["metric"][-1] < 0.7 * live.history["metric"][0]  # the held-out rows' mean square
    weights = amble.load_params(plan.folder / "agent01", tmp_path / "net.py")
    assert {name: leaf.shape for name, leaf in weights.items()} == {"A": (10, 3), "b": (3,)}


def test_an_objective_without_a_framework_reaches_the_least_squares_fit(tmp_path):
    plan = prepared(tmp_path, PLAIN, "WPG:alpha=0.1", hops=3000)
    nodes = trained(plan)
    X, y = (np.concatenate([each[key] for each in plan.rows]) for key in "Xy")
    scaling = plan.config.model.scaling
    fit = np.linalg.lstsq((X - scaling.X_mean) / scaling.X_std, (y - scaling.y_mean) / scaling.y_std)[0]
    w = amble.load_params(plan.folder / "agent00", tmp_path / "net.py")
    np.testing.assert_allclose(plan.problem.value(w), plan.problem.value(fit), rtol=0.01)
    assert nodes.nodes["agent00"].core.ending.cause == "hops"


@pytest.mark.long
def test_a_torch_model_survives_kill_9_and_replays(tmp_path):
    """Real processes; dropout and batches are drawn by the visit, so the digests of the replay are equal."""
    torch = pytest.importorskip("torch")
    plan = prepared(tmp_path, TORCH, "WPG:alpha=0.5,tokens=2", data="digits", hops=10**6)
    plan, model = killed_and_back(plan, before=30, after=20)
    outcome = up.again(collect.agent_folders([plan.folder]))
    assert outcome.whole, outcome
    state = amble.load_params(plan.folder, tmp_path / "net.py")
    assert list(state) == ["0.weight", "0.bias", "3.weight", "3.bias"]
    assert all(each.dtype == torch.float32 for each in state.values())
    assert plan.problem.metric(model.w) > 0.8


def test_agents_with_other_code_refuse_each_other(tmp_path):
    plan = prepared(tmp_path, PLAIN, hops=10**6)
    other = tmp_path / "other"
    other.mkdir()
    strange = prepared(other, PLAIN.replace("/ 2", "/ 2.0"), hops=10**6)
    assert plan.config.agent("agent00").digest != strange.config.agent("agent00").digest
    Cluster.create(plan.folder, plan.config, plan.rows)
    home, own = plan.folder / "agent00", strange.config
    same = replace(plan.config.agent("agent00"), code=own.code, model=own.model)
    shutil.copyfile(other / "net.py", home / "net.py")
    same.write(home)
    nodes = Nodes(plan.folder, plan.config.agents[:2])
    time.sleep(1.0)
    for name in plan.config.agents[:2]:
        nodes.stop(name)
    assert all(int(node.core.rows["holder"].visits) <= 1 for node in nodes.nodes.values())


def test_a_changed_or_missing_file_is_refused(tmp_path):
    plan = prepared(tmp_path, PLAIN)
    Cluster.create(plan.folder, plan.config, plan.rows)
    home = plan.folder / "agent00"
    config = AgentConfig.read(home)
    assert config.digest == plan.config.agent("agent00").digest
    (home / "net.py").write_text(PLAIN + "\n")
    with pytest.raises(AmbleError, match=r"net.py is not the file that the run began with"):
        config.objective_in(home)
    (home / "net.py").unlink()
    with pytest.raises(AmbleError, match=r"trains the model of net.py, which is not in .*agent00; copy it"):
        config.objective_in(home)


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        ("x = 1", r"has no function objective\(X, y\)"),
        ("def objective(X, y):\n    return 3", "returns a int; it must return a TorchLoss or a JaxLoss"),
        ("def objective(X, y):\n    return 1 / 0", r"fails with ZeroDivisionError: division by zero \(line 2\)"),
        (JAX.replace("[(X, y)]", "[(X, y), (X, y)]"), "makes losses of 2 agents; give one"),
        ("raise ValueError('no')", "cannot be imported: line 1: ValueError"),
        ("#" * 1_000_001, "has 1,000,001 bytes"),
        (PLAIN.replace("zeros(10)", "zeros(10 + len(y))"), "let it not depend on the rows"),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence(tmp_path, code, sentence):
    with pytest.raises(AmbleError, match=sentence):
        prepared(tmp_path, code)


def test_a_method_that_needs_more_than_a_gradient_is_refused(tmp_path):
    with pytest.raises(AmbleError, match="I-BCD calls prox of your objectives"):
        prepared(tmp_path, JAX, "I-BCD")


def test_settings_of_built_in_losses_are_refused(tmp_path):
    (tmp_path / "net.py").write_text(PLAIN)
    agents = [{"name": name, "host": "127.0.0.1", "port": 7000 + k} for k, name in enumerate("ab")]
    model = {"task": "regression", "columns": 10, "file": "net.py"}
    run = {"name": "r", "method": {"name": "WPG"}, "stop": {"hops": 5}, "agents": agents, "network": {"kind": "ring"}}
    config = Config.from_settings({**run, "model": model}, tmp_path)
    assert config.model.dimension == 10
    with pytest.raises(AmbleError, match="the file has the whole loss: leave ridge out"):
        Config.from_settings({**run, "model": {**model, "ridge": 0.1}}, tmp_path)
    with pytest.raises(AmbleError, match=r"nope.py was given as the file of a model; give the path of a Python file"):
        Config.from_settings({**run, "model": {**model, "file": "nope.py"}}, Path(tmp_path))
