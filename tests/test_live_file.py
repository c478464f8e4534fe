"""The file of a user's own model: what of it is run, what a run finds in its objective, and what it must not change."""

import os
import py_compile
import sys
from pathlib import Path

import numpy as np
import pytest

import amble
from amble import AmbleError
from amble.live.cluster import up
from amble.live.cluster.cluster import Cluster
from amble.live.model.own import code_at, deterministic, loss_of
from amble.live.model.shared import Plain, Shared
from amble.live.records import collect
from amble.live.settings.agent_config import FILE, AgentConfig
from amble.live.settings.config import Config
from amble.results.own_model import OwnModel
from amble.simulation.experiment import Experiment, parse
from test_live_own import PLAIN, TORCH, prepared, trained, wait_for

SECOND = (
    PLAIN
    + """
class Second(Squares):
    curvature = 1.0
    def hessian(self, w):
        return self.X.T @ self.X / len(self.y)
    def prox(self, center, weight, start):
        H = self.hessian(center) + weight * np.eye(10)
        return np.linalg.solve(H, weight * center + self.X.T @ self.y / len(self.y))

objective = Second
"""
)
THREADS = (
    PLAIN
    + """
from pathlib import Path
import torch

class Counted(Squares):
    def grad(self, w):
        with Path(__file__).with_name("threads").open("a") as file:
            print(torch.get_num_threads(), torch.are_deterministic_algorithms_enabled(), file=file)
        return super().grad(w)

objective = Counted
"""
)


# --- what methods find -----------------------------------------------------------------------------------------------


def test_all_that_an_objective_has_is_passed_on_with_its_share(tmp_path):
    (tmp_path / "net.py").write_text(SECOND)
    rng, share = np.random.default_rng(0), 2.5
    X, y, center = rng.normal(size=(30, 10)), rng.normal(size=30), rng.normal(size=10)
    f = Shared(loss_of(code_at(tmp_path / "net.py"), X, y), share, "")
    H, g = share * X.T @ X / 30, share * X.T @ y / 30
    np.testing.assert_allclose(f.hessian(center), H)
    np.testing.assert_allclose(f.grad(center), H @ center - g)
    assert f.curvature == share
    x = f.prox(center, 0.7, center)
    np.testing.assert_allclose(f.grad(x) + 0.7 * (x - center), 0, atol=1e-12)
    bare = Shared(Plain(type("Bare", (), {"start": np.zeros(2)})()), share, "")
    assert not [name for name in ("prox", "hessian", "curvature", "smoothness") if hasattr(bare, name)]


@pytest.mark.parametrize("method", ["Relay", "Relay:form=scalar", "WADMM:beta=1"])
def test_methods_with_more_than_a_gradient_run_live(tmp_path, method):
    plan = prepared(tmp_path, SECOND, method, hops=240)
    assert plan.config.method.work.keys() & {"hessian", "prox"}
    trained(plan)
    X, y = (np.concatenate([each[key] for each in plan.rows]) for key in "Xy")
    scaling = plan.config.model.scaling
    fit = np.linalg.lstsq((X - scaling.X_mean) / scaling.X_std, (y - scaling.y_mean) / scaling.y_std)[0]
    w = amble.load_params(plan.folder / "agent00", tmp_path / "net.py")
    np.testing.assert_allclose(plan.problem.value(w), plan.problem.value(fit), rtol=0.01)


# --- what is run -----------------------------------------------------------------------------------------------------


def test_the_checked_bytes_are_run_and_not_what_python_compiled_before(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(PLAIN)
    time_ns = path.stat().st_mtime_ns
    py_compile.compile(str(path), doraise=True)
    path.write_text(PLAIN.replace("/ 2", "/ 4"))
    os.utime(path, ns=(time_ns, time_ns))
    loss = loss_of(code_at(path), np.zeros((1, 10)), np.ones(1))
    assert loss[0].value(np.zeros(10)) == 0.25


def test_the_folder_of_the_file_is_no_place_to_import_from(tmp_path):
    path = tmp_path / "net.py"
    path.write_text("import sys\nfrom dataclasses import dataclass\nPATH = list(sys.path)\n" + PLAIN)
    made = loss_of(code_at(path), np.zeros((1, 10)), np.ones(1))[0]
    module = sys.modules[type(made).__module__]  # where pickle and dataclasses look
    assert type(made) is module.Squares
    assert module.__file__ == str(path)
    assert str(tmp_path) not in module.PATH
    (tmp_path / "beside.py").write_text("")
    path.write_text("import beside\n" + PLAIN)
    code = code_at(path)
    with pytest.raises(AmbleError, match=r"net.py cannot be imported: line 1: ModuleNotFoundError"):
        loss_of(code, np.zeros((1, 10)), np.ones(1))


def test_weights_of_a_torch_model_leave_the_settings_of_the_process(tmp_path):
    torch = pytest.importorskip("torch")
    (tmp_path / "net.py").write_text(TORCH)
    code, threads = code_at(tmp_path / "net.py"), torch.get_num_threads()
    OwnModel(np.zeros(1210), "net.py", code.digest, 64, (*range(10),)).save(tmp_path / "model.npz")
    try:
        torch.set_num_threads(2)
        amble.load_params(tmp_path, tmp_path / "net.py")
        assert torch.get_num_threads() == 2
        assert not torch.are_deterministic_algorithms_enabled()
        with deterministic():
            assert torch.get_num_threads() == 1
            assert torch.are_deterministic_algorithms_enabled()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


@pytest.mark.long
def test_agents_and_replays_compute_with_one_thread(tmp_path):
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        plan = prepared(tmp_path, THREADS, hops=20, agents=2)
        (tmp_path / "threads").unlink(missing_ok=True)
        with Cluster.create(plan.folder, plan.config, plan.rows) as cluster:
            cluster.start_all()
            wait_for(lambda: not cluster.running())
            assert cluster.failed() == {}
        assert up.again(collect.agent_folders([plan.folder])).whole
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    for folder in (tmp_path, *collect.agent_folders([plan.folder]).values()):
        assert {*(folder / "threads").read_text().splitlines()} == {"1 True"}


# --- what is refused -------------------------------------------------------------------------------------------------


def test_weights_of_rows_are_refused_before_any_agent_starts(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "rows.npz", X=rng.normal(size=(60, 10)), y=rng.normal(size=60), sample_weight=np.ones(60))
    (tmp_path / "net.py").write_text(PLAIN)
    chosen = {"data": str(tmp_path / "rows.npz"), "agents": 3, "network": "ring", "methods": [parse("WPG")]}
    with pytest.raises(AmbleError, match="has weights or offsets of rows, which no model of your own sees; leave them"):
        up.prepare(Experiment().with_settings(chosen), {"hops": 9}, tmp_path / "run", False, file=tmp_path / "net.py")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"unknowns": 9}, r"\[model\] has unknowns without file"),
        ({"code": "ab"}, r"\[model\] has code without file"),
        ({"file": 5}, r"\[model\] file = 5 was given; give the path of a Python file, such as net.py"),
        ({"file": ""}, r"\[model\] file = '' was given"),
    ],
)
def test_settings_of_a_file_that_is_none_are_refused(tmp_path, wrong, sentence):
    agents = [{"name": name, "host": "127.0.0.1", "port": 7000 + k} for k, name in enumerate("ab")]
    model = {"task": "regression", "columns": 10, **wrong}
    run = {"name": "r", "method": {"name": "WPG"}, "stop": {"hops": 5}, "agents": agents, "network": {"kind": "ring"}}
    with pytest.raises(AmbleError, match=sentence):
        Config.from_settings({**run, "model": model}, tmp_path)


@pytest.mark.parametrize("name", ["../net.py", "/tmp/net.py"])
def test_an_agent_runs_no_file_outside_its_folder(tmp_path, name):
    plan = prepared(tmp_path, PLAIN)
    home: Path = tmp_path / "agent00"
    home.mkdir()
    plan.config.agent("agent00").write(home)
    text = (home / FILE).read_text()
    assert 'file = "net.py"' in text
    (home / FILE).write_text(text.replace('file = "net.py"', f'file = "{name}"'))
    with pytest.raises(AmbleError, match="the name of a file in the agent's own folder"):
        AgentConfig.read(home)
