"""Sites that agree by a survey, as real processes: killed in every stage, joined by one and left by one."""

import time

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from sklearn.linear_model import Lasso

import amble
from amble.data.files import read_table
from amble.live import status
from amble.live.cluster import sites, up
from amble.live.cluster.ports import free_ports
from amble.live.cluster.up import NoModel
from amble.live.control import leaving
from amble.live.records import collect
from amble.live.settings import joining
from amble.live.settings.agent_config import Peer
from amble.survey.document import to_bytes
from site_samples import tables

WITHIN_S = 60.0


def write(folder, frames):
    folder.mkdir()
    for name, frame in frames.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    return folder


def wait_for(condition, what):
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come about within {WITHIN_S:g} s"
        time.sleep(0.02)


def plan_of(tmp_path, frames, pause_s=0.0, model=None, **survey):
    return sites.prepare(
        write(tmp_path / "tables", frames), tmp_path / "run", False, method={"name": "Relay"},
        model=model or {"target": "y"}, survey=survey, stop={"tolerance": 1e-10}, network="complete", pause_s=pause_s,
    )  # fmt: skip


def assert_pooled(model, rows, formula="y ~ age + dose + group", exact=1e-6):
    fitted = smf.ols(formula, rows).fit()
    table = model.summary().to_pandas()
    assert model.sums.train.rows == len(rows)
    for name in table.index:
        parts = name.split("=")
        reference = {"intercept": "Intercept"}.get(name, f"{parts[0]}[T.{parts[-1]}]" if len(parts) > 1 else name)
        np.testing.assert_allclose(table.loc[name, "coef"], fitted.params[reference], rtol=exact)
        np.testing.assert_allclose(table.loc[name, "std_err"], fitted.bse[reference], rtol=exact)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["opening", "training", "closing"])
def test_a_kill_in_any_stage_changes_nothing(tmp_path, stage):
    frames = tables()
    plan = plan_of(tmp_path, frames, pause_s=0.15)
    with sites.start(plan) as cluster:
        cluster.start_all()
        wait_for(lambda: cluster.status("east").stage == stage and cluster.status("east").visits, stage)
        cluster.kill("east")
        cluster.start("east")
        wait_for(lambda: not cluster.running(), "the end")
        model = sites.finish(plan, cluster)
    assert_pooled(model, pd.concat(frames.values()))


@pytest.mark.long
def test_who_joins_late_is_in_the_model_and_who_leaves_is_not(tmp_path):
    frames = tables(sizes={"north": 40, "east": 25, "south": 60, "west": 30})
    late = frames.pop("west")
    plan = plan_of(tmp_path, frames, pause_s=0.7)
    with sites.start(plan) as cluster:
        cluster.start_all()
        wait_for(lambda: all(cluster.status(name).stage == "training" for name in frames), "training")
        west = Peer("west", "127.0.0.1", free_ports(1)[0])
        joining.invite(cluster.folder, west, ("north", "south"), "west.csv", 30)
        late.to_csv(cluster.folder / "west" / "west.csv", index=False)
        cluster.start("west")
        wait_for(lambda: cluster.status("west").stage == "training" and cluster.status("west").visits, "west's visit")
        leaving.ask(cluster.folder / "east", 30.0)
        wait_for(lambda: not cluster.running(), "the end")
        assert cluster.status("east").state == "left"
        model = sites.finish(plan, cluster)
    assert_pooled(model, pd.concat([frames["north"], frames["south"], late]))
    assert set(model.about["judged"]) == {"north", "south", "west"}


@pytest.mark.long
def test_a_lasso_is_that_of_those_who_stayed(tmp_path):
    """One joins late, one leaves and one is killed: the penalty is as strong as those who stay are many."""
    frames = tables(sizes={"north": 40, "east": 25, "south": 60, "west": 30})
    late = frames.pop("west")
    plan = plan_of(tmp_path, frames, pause_s=0.4, model={"target": "y", "l1": 0.1})
    with sites.start(plan) as cluster:
        cluster.start_all()
        wait_for(lambda: all(cluster.status(name).stage == "training" for name in frames), "training")
        west = Peer("west", "127.0.0.1", free_ports(1)[0])
        joining.invite(cluster.folder, west, ("north", "south"), "west.csv", 30)
        late.to_csv(cluster.folder / "west" / "west.csv", index=False)
        cluster.start("west")
        wait_for(lambda: cluster.status("west").stage == "training" and cluster.status("west").visits, "west's visit")
        leaving.ask(cluster.folder / "east", 30.0)
        cluster.kill("south")
        cluster.start("south")
        wait_for(lambda: not cluster.running(), "the end")
        model = sites.finish(plan, cluster)
    rows, scaling = pd.concat([frames["north"], frames["south"], late]), model.scaling
    columns = pd.get_dummies(rows[["age", "dose", "group"]], dtype=float)[["age", "dose", "group_b", "group_c"]]
    X, y = (columns - scaling.X_mean) / scaling.X_std, (rows.y - scaling.y_mean) / scaling.y_std
    central = Lasso(alpha=0.1, tol=1e-14, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(model.w, np.append(central.coef_, central.intercept_), atol=1e-8)


@pytest.mark.long
def test_a_late_agent_that_does_not_fit_is_refused_and_the_others_go_on(tmp_path):
    """Nobody had its level in the survey: it ends at once with a sentence, and no stage waits for it."""
    frames = tables(sizes={"north": 40, "east": 25, "south": 60, "west": 30})
    late = frames.pop("west").assign(group="unheard of")
    plan = plan_of(tmp_path, frames, pause_s=0.7)
    with sites.start(plan) as cluster:
        cluster.start_all()
        wait_for(lambda: all(cluster.status(name).stage == "training" for name in frames), "training")
        west = Peer("west", "127.0.0.1", free_ports(1)[0])
        joining.invite(cluster.folder, west, ("north", "south"), "west.csv", 30)
        late.to_csv(cluster.folder / "west" / "west.csv", index=False)
        cluster.start("west")
        wait_for(lambda: cluster.processes["west"].poll() is not None, "west's end")
        assert cluster.processes["west"].poll() == 2
        assert "holds 'unheard of', a level that no site had in the survey" in cluster.failed()["west"]
        cluster.start("west")  # as a service manager does: it is refused before it has any link
        wait_for(lambda: cluster.processes["west"].poll() is not None, "west's second end")
        assert (cluster.folder / "west" / "log.txt").read_text().count("listens on") == 1
        wait_for(lambda: not cluster.running(), "the end")
        model = sites.finish(plan, cluster)
    assert_pooled(model, pd.concat(frames.values()))


@pytest.mark.long
def test_who_leaves_the_opening_survey_is_not_waited_for(tmp_path):
    """Neither by the survey nor by the training, which otherwise waits for `silence_s`, two minutes."""
    frames = tables(sizes={"north": 40, "east": 25, "south": 60, "west": 30})
    plan = plan_of(tmp_path, frames)
    with sites.start(plan) as cluster:
        for name in ("north", "east", "south"):
            cluster.start(name)
        wait_for(lambda: all(cluster.status(name).visits for name in ("north", "east", "south")), "three")
        leaving.ask(cluster.folder / "east", 30.0)  # at which tokens begin
        wait_for(lambda: cluster.status("east").state == "left", "east's departure")
        cluster.start("west")
        wait_for(lambda: not cluster.running(), "the end")
        model = sites.finish(plan, cluster)
    assert_pooled(model, pd.concat([frames[name] for name in ("north", "south", "west")]))
    assert not model.about["silent"]
    assert not model.about["recounting"]
    outcome = up.again(collect.agent_folders([plan.folder]))
    assert outcome.whole
    assert not outcome.left  # east knows of no agreement, and made no visit of the training


@pytest.mark.long
def test_who_dies_in_the_closing_survey_is_not_waited_for_long(tmp_path):
    """ "gets `stall_s` to come back": the model's file says that one of those in it is not in the sums."""
    frames = tables()
    plan = plan_of(tmp_path, frames, pause_s=0.3)
    with sites.start(plan) as cluster:
        cluster.start_all()
        wait_for(lambda: cluster.status("north").stage == "closing", "closing")
        cluster.kill("east")
        wait_for(lambda: not cluster.running(), "the end")
        model = sites.finish(plan, cluster)
    assert model.about["silent"] == 3 - model.sums.agents
    fitted = smf.ols("y ~ age + dose + group", pd.concat(frames.values())).fit()
    table = model.summary(cov="none")
    np.testing.assert_allclose(table.to_pandas().loc["age", "coef"], fitted.params["age"], rtol=1e-6)
    if model.about["silent"]:  # it may have been killed after its answer
        assert "the rows of 1 more agent than the sums" in str(table)
        with pytest.raises(amble.AmbleError, match="these errors would not be its own; train it again"):
            model.summary()


def test_sites_that_disagree_are_told_which_column_it_is(tmp_path):
    frames = tables()
    frames["east"] = frames["east"].rename(columns={"dose": "Dose"})
    plan = plan_of(tmp_path, frames)
    with sites.start(plan) as cluster:
        cluster.start_all()
        wait_for(lambda: not cluster.running(), "the end")
        failed, outcome = cluster.failed(), sites.finish(plan, cluster)
    assert set(failed) == set(frames)
    assert isinstance(outcome, NoModel)
    assert "east" in outcome.why
    assert "dose" in outcome.why.lower()
    assert all(status.read(cluster.folder / name).state in ("refused", "stopped") for name in frames)
    assert not list(cluster.folder.glob("**/model.npz"))


def test_a_reason_that_all_sites_share_is_said_once(tmp_path, capsys):
    plan = plan_of(tmp_path, tables(), model={"target": "nothing"})
    with sites.start(plan) as cluster:
        begun = time.monotonic()
        lost = sites.watch(cluster, "sites", lambda: time.monotonic() - begun > WITHIN_S)
        outcome = sites.finish(plan, cluster)
    assert set(lost) == {"east", "north", "south"}
    assert outcome.why == (
        "east, north, south: there is no column of its table named 'nothing'; choose one of age, dose, group, y"
    )
    assert "nothing" not in capsys.readouterr().err


def test_there_is_room_for_the_description_of_a_wide_table(tmp_path):
    """Of tables on this machine nobody has to give bytes_max."""
    rng = np.random.default_rng(0)
    names = [f"measure_{k}" for k in range(150)]
    frames = {name: pd.DataFrame(rng.normal(size=(9, 150)), columns=names).assign(y=1.5) for name in ("north", "east")}
    surveyed = plan_of(tmp_path, frames).config.surveyed
    sizes = [len(to_bytes(surveyed.wanted.describe(read_table(tmp_path / "tables" / f"{name}.csv", None, ()))))
             for name in frames]  # fmt: skip
    assert 4096 < max(sizes) < surveyed.bytes_max


def test_a_folder_of_one_table_is_refused(tmp_path):
    with pytest.raises(amble.AmbleError, match="1 tables; give one with at least two"):
        plan_of(tmp_path, {"north": tables()["north"]})


def test_a_site_that_cannot_take_part_ends_the_survey_at_once(tmp_path):
    frames = tables()
    plan = plan_of(tmp_path, frames)
    (tmp_path / "tables" / "east.csv").write_text("")
    with sites.start(plan) as cluster:
        begun = time.monotonic()
        lost = sites.watch(cluster, "sites", lambda: time.monotonic() - begun > WITHIN_S)
        outcome = sites.finish(plan, cluster)
    assert "empty" in lost["east"]
    assert isinstance(outcome, NoModel)
    assert "empty" in outcome.why


@pytest.mark.long
def test_who_waits_for_a_site_passes_tokens_slowly(tmp_path):
    """A description may be long: while somebody has not started, the others hardly send anything."""
    frames = tables()
    plan = plan_of(tmp_path, frames)
    with sites.start(plan) as cluster:
        for name in ("north", "east"):
            cluster.start(name)
        wait_for(lambda: all(cluster.status(name).visits > 4 for name in ("north", "east")), "waiting")
        before = sum(cluster.status(name).visits for name in ("north", "east"))
        time.sleep(4.0)
        assert sum(cluster.status(name).visits for name in ("north", "east")) - before <= 12
        cluster.start("south")
        wait_for(lambda: not cluster.running(), "the end")
        model = sites.finish(plan, cluster)
    assert_pooled(model, pd.concat(frames.values()))
