"""Records of live runs: when there is one, what it says, and the command line that sends it on."""

import pytest

pytest.importorskip("zenoh")

import amble
from amble import AmbleError
from amble.live import status
from amble.live.cluster.folder import MADE
from amble.live.control.glance import Agent, Overview, Token
from amble.live.following import Follower
from amble.live.settings.agent_config import AgentConfig
from amble.simulation.planning import record_hops
from event_files import scalars
from page_samples import Up, pretended, until


@pytest.fixture
def config(tmp_path):
    return AgentConfig.read(pretended(tmp_path / "run") / "agent00")


def overview(visits, time_s=100.0, state="running", stage=""):
    agents = {"a": Agent(state="up", stage=stage), "b": Agent(state="down")}
    tokens = {
        m: Token(epoch=0, hop=visits, agent="a", here=True, moved=moved) for m, moved in enumerate((0.1, 0.5, None))
    }
    return Overview(
        time_s=time_s,
        state=state,
        visits=visits,
        hops_per_s=7.0,
        bytes=10 * visits,
        agents=agents,
        tokens=tokens,
        waits=(),
    )


def test_a_record_says_how_the_run_is(config):
    records = []
    follower = Follower(config, "diabetes", records.append)
    follower(overview(0), {})
    follower(overview(3, time_s=102.5), {"NMSE": 0.5, "distance to the optimum": 0.25})
    (record,) = records
    assert record == amble.Record(
        "Relay (tokens=2, full)", 1, 3, 2.5, None, 30,
        {"hops_per_s": 7.0, "agents_up": 1.0, "moved": 0.5, "metric": 0.5, "distance": 0.25},
        {"method": "Relay", "tokens": 2, "form": "full", "message": "float64", "data": "diabetes", "agents": 4,
         "seed": 0},
    )  # fmt: skip
    assert record.costs == {"time_s": 2.5, "bytes": 30}


def test_a_record_is_due_when_visits_have_grown_by_two_percent_and_at_the_end(config):
    records = []
    follower = Follower(config, "diabetes", records.append)
    for visits in [*range(1, 400), 400, 400, 401]:
        follower(overview(visits, state="ended" if visits == 401 else "running"), {})
    assert [record.hop for record in records] == [*record_hops(400, None)[1:], 401]  # as a simulated run has them


def test_visits_of_surveys_are_no_training(config):
    records = []
    follower = Follower(config, "diabetes", records.append)
    for stage, visits in (("opening", 9), ("training", 2), ("closing", 30)):
        follower(overview(visits, stage=stage), {})
    assert [record.hop for record in records] == [2]


def test_what_cannot_be_followed_is_refused(tmp_path):
    with pytest.raises(AmbleError, match=r"there is no folder .*none; give an agent's folder, or the bundle"):
        amble.follow(tmp_path / "none", print)
    with pytest.raises(AmbleError, match="on_record=3 was given"):
        amble.follow(tmp_path, 3)


@pytest.mark.long
def test_a_run_of_amble_up_is_followed_and_written_for_tensorboard(tmp_path):
    """All that is written agrees at the end: the records, the curves, and the run that was replayed."""
    folder, records = tmp_path / "run", []
    words = ("--hops", 40, "--tolerance", 0, "--pause", 0.02, "--tensorboard", tmp_path / "curves", "-o", folder)
    with Up("up", "--data", "diabetes", "-n", 3, *words) as up:
        until(lambda: (folder / MADE).is_file())
        amble.follow(folder, records.append)
        assert up.process.wait(60) == 0, up.said
    hops = [record.hop for record in records]
    assert hops == sorted({*hops})
    visits = sum(status.read(folder / f"agent0{k}").visits for k in range(3))
    assert hops[-1] == visits
    curves = scalars(next((tmp_path / "curves").iterdir()))
    assert {*curves} == {"hops_per_s", "agents_up", "moved", "metric", "distance", "cost/time_s", "cost/bytes"}
    run = amble.load_run(folder / "run")
    for name in ("metric", "distance"):
        assert curves[name][-1] == (visits, pytest.approx(run.history[name][-1], rel=1e-6, abs=1e-12))
    assert [record.hop for record in run.records()] == run.history["hop"].tolist()
