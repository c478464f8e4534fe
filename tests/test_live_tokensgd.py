"""TokenSGD live: its token is the model, so a lost one is reissued from its sender's copy, and the run continues."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import amble
from amble import AmbleError
from amble.engines import engine_for
from amble.live.chaos.tally import Tally
from amble.live.cluster import up
from amble.live.cluster.cluster import Cluster
from amble.live.control import leaving
from amble.live.core.message import Epoch, Token
from amble.live.core.model_visits import ModelVisits
from amble.live.core.parcels import NoShare
from amble.live.core.visits import visits_for
from amble.live.records import collect
from linked_cores import PATIENCE_S, Link
from test_live_own import JAX, TORCH, prepared, trained, wait_for
from test_visits import LAPS, Live, Simulated, initial, objectives, schedule

METHODS = [
    amble.TokenSGD(alpha=0.1),
    amble.TokenSGD(alpha=0.1, tokens=3, local_steps=2, step="adam"),
    amble.TokenSGD(alpha=0.1, tokens=2, step="momentum", memory="agent", mu=0.5),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_without_losses_a_live_visit_is_the_simulators(method):
    fs = objectives("logistic")
    simulated, live = Simulated(method, fs), Live(method, fs)
    assert isinstance(live.visits, ModelVisits)
    np.testing.assert_array_equal(live.z(0), initial(fs, None))
    for m, i in schedule(method.tokens, LAPS * len(fs)):
        np.testing.assert_array_equal(live.visit(m, i), simulated.visit(m, i))
        np.testing.assert_array_equal(live.holders[i].agent.x, simulated.agents[i].x)


def test_a_reissued_token_is_the_same_model_without_the_dead():
    """model_visits.py: "any copy of it can be continued" """
    live = Live(amble.TokenSGD(alpha=0.1), objectives("logistic"))
    for _, i in schedule(1, 2 * len(live.fs)):
        live.visit(0, i)
    before = live.z(0)
    live.lose(0, 1, 2)
    parcel = live.parcels[0]
    np.testing.assert_array_equal(live.z(0), before)
    assert not parcel.recounting
    assert float(parcel.members) == len(live.fs) - 1
    assert np.flatnonzero(~live.visits.inside(parcel)).tolist() == [2]
    live.visit(0, 2)  # it is back
    assert live.visits.inside(live.parcels[0]).all()


@dataclass(frozen=True)
class Nearer:
    """The smallest such method: the model goes half-way to the agent's number."""

    tokens: int = 1
    label: ClassVar[str] = "Nearer"
    continues: ClassVar[bool] = True

    def agent(self, f, start):  # noqa: ARG002
        return Tally(0 * start)

    def slot(self, start):  # noqa: ARG002
        return NoShare()

    def token(self, start, agents, m):  # noqa: ARG002
        return Tally(start)

    def visit(self, f, agent, slot, token):
        return Tally(agent.x + 1), slot, Tally((token.x + f) / 2)

    def estimate(self, token):
        return token.x


def test_the_sender_of_a_lost_token_continues_from_its_copy():
    """ "its sender passes on the copy that it kept, in the next epoch" """
    link = Link(method=Nearer(), kind=ModelVisits)
    assert isinstance(visits_for(Nearer(), 1, 3), ModelVisits)
    link.deliver(Token)  # a has visited (0.5), and b after it (1.25), which dies now
    assert link.holders["b", 1].z.tolist() == [0.5]
    link.down("a", "b")
    link.down("c", "b")
    link.wait(PATIENCE_S + 0.1, "a", "c")
    assert [(name, report.epoch) for name, report in link.said("reissue")] == [("a", Epoch(1, 0))]
    custody = link.disks["a"]["custody/0"]
    assert (custody.message.payload.token.x.tolist(), custody.to) == ([0.5], "c")
    link.asks = [each for each in link.asks if each[0] != "b"]
    link.deliver(Token)
    parcel = link.disks["c"]["custody/0"].message.payload
    assert parcel.token.x.tolist() == [1.75]  # half-way from a's 0.5 to the number of c, which is 3
    assert link.visits.inside(parcel).tolist() == [True, False, True]
    assert not parcel.recounting


@pytest.mark.parametrize("tokens", [1, 2])
def test_a_live_run_has_the_numbers_of_the_simulator(tmp_path, tokens):
    """On the walk that the agents took: their batches are those of the hops; with one token, the simulator's."""
    plan = prepared(tmp_path, JAX, f"TokenSGD:alpha=0.05,local_steps=2,tokens={tokens}", hops=1000)
    trained(plan)
    outcome = up.again(collect.agent_folders([plan.folder]), plan=plan)
    assert outcome.whole, outcome
    live = amble.load_run(plan.folder / "run.json")
    assert live.history["metric"][-1] < 0.7 * live.history["metric"][0]
    if tokens == 1:
        machine = engine_for("plain", plan.config.method, plan.problem, plan.network, plan.problem.trains.start)
        state = machine.advance(machine.start(), live.schedule, 0, live.schedule.hops)
        np.testing.assert_array_equal(state.agents.x, live.state.agents.x)


@pytest.mark.long
@pytest.mark.parametrize("code", [JAX, TORCH], ids=["jax", "torch"])
def test_real_processes_survive_kill_9_and_go_on_without_a_dead_agent(tmp_path, code):
    """One agent is killed and started again, another is killed for good: the run goes on, and replays."""
    if code is TORCH:
        pytest.importorskip("torch")
    data, alpha = ("diabetes", 0.05) if code is JAX else ("digits", 0.1)
    plan = prepared(tmp_path, code, f"TokenSGD:alpha={alpha},local_steps=2,tokens=2", data=data, hops=10**6)
    timing = replace(plan.config.timing, pause_s=0.02)
    plan = replace(plan, config=replace(plan.config, timing=timing))
    with Cluster.create(plan.folder, plan.config, plan.rows) as cluster:
        cluster.start_all()
        wait_for(lambda: min(cluster.status(name).visits for name in plan.config.agents) > 20)
        cluster.kill("agent02")
        cluster.start("agent02")
        before = cluster.status("agent02").visits
        wait_for(lambda: cluster.status("agent02").visits > before + 20)
        cluster.kill("agent01")
        rest = [name for name in plan.config.agents if name != "agent01"]
        before = {name: cluster.status(name).visits for name in rest}
        wait_for(lambda: all(cluster.status(name).visits > before[name] + 40 for name in rest))
        cluster.end()
        model = up.finish(plan, cluster)
    outcome = up.again(collect.agent_folders([plan.folder]))
    assert outcome.whole, outcome
    first = plan.problem.metric(plan.problem.trains.start)
    last = plan.problem.metric(model.w)
    assert last > 0.7 if code is TORCH else last < 0.8 * first


def test_nobody_can_leave_because_steps_cannot_be_taken_out(tmp_path):
    plan = prepared(tmp_path, JAX, "TokenSGD:alpha=0.05")
    Cluster.create(plan.folder, plan.config, plan.rows)
    assert plan.config.notes() == []
    with pytest.raises(AmbleError, match=r"no agent can leave a run of TokenSGD.*Stop the agent instead: the others"):
        leaving.ask(plan.folder / "agent00", 5.0)
