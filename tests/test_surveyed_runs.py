"""Runs whose agents agree on their model by a survey: whole agents, with links in memory."""

import hashlib
import threading

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.optimize import minimize
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.metrics import log_loss, r2_score, roc_auc_score

import amble
from amble.cli.summary import agents_text
from amble.data.files import read_table
from amble.live.agent.agent import course_of
from amble.live.agent.ended import EACH, judged_by_agent
from amble.live.agent.node import Node
from amble.live.core.end import RECOUNTING
from amble.live.core.message import Ending, Stop
from amble.live.settings.agent_config import AgentConfig
from amble.live.settings.config import Config
from amble.live.settings.surveyed import with_held_out
from amble.results.tables import agreement_of
from amble.survey import regions
from amble.survey.document import to_bytes
from live_nodes import Nodes
from site_samples import make_bundle, tables


def pooled(frames):
    return pd.concat(frames.values(), ignore_index=True)


def assert_like(model, fitted, exact=1e-6):
    """Coefficients and standard errors of a model are those of statsmodels on the pooled rows."""
    table = model.summary().to_pandas()
    names = {"intercept": "Intercept", "group=b": "group[T.b]", "group=c": "group[T.c]"}
    for name in table.index:
        reference = names.get(name, name)
        np.testing.assert_allclose(table.loc[name, "coef"], fitted.params[reference], rtol=exact)
        np.testing.assert_allclose(table.loc[name, "std_err"], fitted.bse[reference], rtol=exact)


def fit(loss, rows):
    if loss == "least-squares":
        return smf.ols("y ~ age + dose + group", rows).fit()
    if loss == "logistic":
        return smf.logit("won ~ age + dose + group", rows.assign(won=(rows.y == "yes") * 1.0)).fit(disp=0, tol=1e-12)
    return smf.poisson("y ~ age + dose + group", rows).fit(disp=0, tol=1e-12)


@pytest.mark.parametrize("loss", ["least-squares", "logistic", "poisson"])
def test_the_model_and_its_errors_are_those_of_the_pooled_rows(tmp_path, loss):
    frames = tables(loss)
    make_bundle(tmp_path / "bundle", frames, loss=loss)
    nodes = Nodes(tmp_path / "bundle", frames)
    nodes.wait()
    models = [amble.load_model(tmp_path / "bundle" / name / "model.npz") for name in frames]
    for model in models:
        assert np.array_equal(model.w, models[0].w)
        assert model.sums.train.rows == sum(map(len, frames.values()))
    assert_like(models[0], fit(loss, pooled(frames)))


def test_each_agent_has_measures_of_its_own(tmp_path):
    frames = tables("logistic")
    model = trained(tmp_path / "bundle", frames, test=0.25)
    home = tmp_path / "bundle" / "south"
    held = AgentConfig.read(home).tables(home, home / "rows.csv").test
    rows = pd.DataFrame({column.name: column.texts or column.numbers for column in held.columns})
    chance = model.predict_proba(rows)[:, 1]
    measures = model.measures(test=True, agent="south")
    assert measures["rows"] == len(rows) == 15
    assert measures["AUC"] == pytest.approx(roc_auc_score(rows.y == "yes", chance), rel=1e-12)
    assert measures["log_loss"] == pytest.approx(log_loss(rows.y == "yes", chance), rel=1e-9)
    assert "south: 45 rows, accuracy" in agents_text(model)
    assert agents_text(model).count("AUC") == 2 * len(frames)
    with pytest.raises(amble.AmbleError, match="there is no agent in this model named 'souths'; did you mean 'south'"):
        model.measures(agent="souths")
    problem = amble.split(amble.load("diabetes"), agents=3)
    simulated = amble.simulate(amble.Relay(), problem, hops=6, progress=False).trained(problem)
    with pytest.raises(amble.AmbleError, match="this model has no measures of single agents"):
        simulated.measures(agent="south")


def test_a_site_may_have_a_test_file_of_its_own(tmp_path):
    """Then none of its rows is held out; other sites hold out their share."""
    frames, other = tables(), tables(seed=8)["east"]
    model = trained(tmp_path / "bundle", frames, test=0.2, tests={"east": other})
    assert model.measures(agent="east")["rows"] == len(frames["east"])
    assert model.measures(agent="north")["rows"] == 0.8 * len(frames["north"])
    measures = model.measures(test=True, agent="east")
    assert measures["rows"] == len(other)
    assert measures["R2"] == pytest.approx(r2_score(other.y, model.predict(other)), rel=1e-9)
    home = tmp_path / "bundle" / "east"
    other.drop(columns="dose").to_csv(home / "test.csv", index=False)
    with pytest.raises(amble.AmbleError, match=r"test.csv has no column 'dose', which .*rows.csv has; add it"):
        course_of(AgentConfig.read(home), home)
    with pytest.raises(amble.AmbleError, match="agent 'east' has a test file, and the run has no survey"):
        Config.from_settings(without_a_survey(test="test.csv"))


def without_a_survey(**agent):
    agents = [{"name": name, "host": "127.0.0.1", "port": 23_400 + k} for k, name in enumerate(("north", "east"))]
    agents[1] |= agent
    model = {"task": "regression", "columns": 2}
    return {"name": "study", "method": {"name": "Relay"}, "model": model, "stop": {"hops": 9},
            "network": {"kind": "complete"}, "agents": agents}  # fmt: skip


def test_the_file_of_a_model_has_the_digests_of_the_sites_files(tmp_path):
    """They are those of sha256sum; before the closing survey, an agent knows its own alone."""
    frames = tables()
    model = trained(tmp_path / "bundle", frames)
    files = {name: (tmp_path / "bundle" / name / "rows.csv").read_bytes() for name in frames}
    assert model.about["digest"] == {name: hashlib.sha256(rows).hexdigest()[:12] for name, rows in files.items()}
    node = node_of(tmp_path / "other", frames)
    node.close_journals()
    course = node.course
    course.config = course.config.agreed(agreement_of(model.about))
    assert course.model(model.w).about["digest"] == {"north": model.about["digest"]["north"]}


def test_the_model_of_an_agent_that_runs_takes_a_table(tmp_path):
    frames = tables()
    model = trained(tmp_path / "bundle", frames)
    home = tmp_path / "bundle" / "south"
    (home / "model.npz").unlink()  # as it is while the agent runs
    early = amble.load_model(home)
    assert early.about["so_far"]
    assert np.array_equal(early.predict(frames["south"]), model.predict(frames["south"]))
    (home / "model.npy").unlink()
    with pytest.raises(amble.AmbleError, match="agent south has no model yet; try again"):
        amble.load_model(home)


def test_digests_of_others_may_be_anything(tmp_path):
    config = make_bundle(tmp_path / "bundle", tables()).agent("north")
    for number in (np.nan, np.inf, -1.0, 2.0**60):
        regions = np.zeros((3, 1 + 2 * len(EACH)))
        regions[:, 0], regions[:, 1] = number, 1.0
        assert judged_by_agent(regions.ravel(), config).digest == {}


def scaled(frames, *columns):
    """The pooled rows in the units of the model: columns with mean 0 and deviation 1."""
    X = pd.get_dummies(pooled(frames)[["age", "dose", "group"]], dtype=float)[list(columns)]
    return (X - X.mean()) / X.std(ddof=0)


def trained(folder, frames, **settings):
    make_bundle(folder, frames, **settings)
    Nodes(folder, frames).wait()
    models = [amble.load_model(folder / name / "model.npz") for name in frames]
    assert all(np.array_equal(model.w, models[0].w) for model in models)
    return models[0]


@pytest.mark.parametrize("tokens", [1, 2])
def test_a_lasso_of_sites_is_that_of_the_pooled_rows(tmp_path, tokens):
    frames, method = tables(), {"name": "Relay", "tokens": tokens}
    model = trained(tmp_path / "b", frames, method=method, l1=0.05, ridge=0.02)
    X, y = scaled(frames, "age", "dose", "group_b", "group_c"), pooled(frames).y
    central = ElasticNet(alpha=0.07, l1_ratio=0.05 / 0.07, tol=1e-14, max_iter=10**6)
    central.fit(X, (y - y.mean()) / y.std(ddof=0))
    np.testing.assert_allclose(model.w, np.append(central.coef_, central.intercept_), atol=1e-9)
    assert model.penalty == {"ridge": 0.02, "l1": 0.05}
    with pytest.raises(amble.AmbleError, match=r"trained with a penalty \(ridge=0.02, l1=0.05\)"):
        model.summary()


def test_a_logistic_lasso_of_sites_is_that_of_the_pooled_rows(tmp_path):
    frames = tables("logistic")
    model = trained(tmp_path / "b", frames, loss="logistic", l1=0.03, reference=["group=b"])
    assert model.columns == ("age", "dose", "group=a", "group=c")
    X, y = scaled(frames, "age", "dose", "group_a", "group_c"), pooled(frames).y
    central = LogisticRegression(C=1 / (0.03 * len(y)), l1_ratio=1, solver="saga", tol=1e-12, max_iter=10**6)
    central.fit(X, y)
    np.testing.assert_allclose(model.w, np.append(central.coef_, central.intercept_), atol=1e-7)
    assert 0 < (model.w == 0).sum() < 4


def test_signs_and_columns_without_a_penalty(tmp_path):
    """A column of the tables stands for all columns that are made of it."""
    frames = tables()
    model = trained(tmp_path / "b", frames, ridge=5.0, positive=True, unpenalised=["group"], reference=["group=b"])
    X, y = scaled(frames, "age", "dose", "group_a", "group_c"), pooled(frames).y
    rows = np.column_stack([X, np.ones(len(X))])
    target, ridge = ((y - y.mean()) / y.std(ddof=0)).to_numpy(), np.diag([5.0, 5.0, 0.0, 0.0, 0.0])
    H, b = rows.T @ rows / len(y) + ridge, rows.T @ target / len(y)
    best = minimize(lambda w: w @ H @ w / 2 - b @ w, np.zeros(5), jac=lambda w: H @ w - b, method="L-BFGS-B",
                    bounds=[(0, None)] * 4 + [(None, None)], options={"ftol": 1e-16, "gtol": 1e-12})  # fmt: skip
    np.testing.assert_allclose(model.w, best.x, atol=1e-7)
    assert model.w[2] == 0  # group a lies below b


def node_of(folder, frames, name="north", **survey):
    make_bundle(folder, frames, **survey)
    home = folder / name
    config = AgentConfig.read(home, agreed=False)
    return Node(config, home, course_of(config, home), threading.Event())


def opened(node, frames, order):
    """The opening survey's ending with this order, as another agent may have it."""
    wanted, config = node.config.surveyed.wanted, node.config
    total = 0
    for k, (name, frame) in enumerate(frames.items()):
        path = node.folder / f"{name}.csv"
        frame.to_csv(path, index=False)
        document = to_bytes(wanted.describe(config.tables(path.parent, path).train))
        total = total + regions.vector(document, k, node.course.places, config.surveyed.bytes_max)
    result = np.append(total, np.arange(node.course.places) < len(frames))
    return Ending("tolerance", "the survey is complete", order, result.astype("<f8").tobytes())


def test_another_result_of_a_stage_begins_the_next_one_again_only_if_its_numbers_differ(tmp_path):
    """Another result of a stage makes the next one again, and one with the same numbers changes nothing."""
    frames = tables()
    node = node_of(tmp_path / "bundle", frames)
    two = {name: frames[name] for name in ("north", "east")}
    node.core.heard(0.0, 1, Stop(opened(node, two, (2, 0, 9, 0, 1)), "east"))
    assert [stage.name for stage in node.sequence.advance()] == ["training"]
    first = node.stages[1]
    node.core.heard(0.0, 2, Stop(Ending("tolerance", "x", (2, 0, 5, 0, 1),
                                        np.ones(first.shape.result).astype("<f8").tobytes()), "east"))  # fmt: skip
    assert [stage.name for stage in node.sequence.advance()] == ["closing"]
    assert node.course.model(None) is not None
    opening = node.stages[0].core
    opening.heard(0.0, 3, Stop(opened(node, two, (2, 1, 9, 0, 2)), "south"))
    assert node.sequence.advance() == []  # the same sites: what follows goes on
    assert node.stages[1] is first
    assert len(node.stages) == 3
    opening.heard(0.0, 4, Stop(opened(node, frames, (3, 0, 9, 0, 1)), "east"))
    assert [stage.name for stage in node.sequence.advance()] == ["training"]
    assert node.stages[1].shape.digest != first.shape.digest
    assert node.course.model(None) is None  # that of the earlier training is void
    node.close_journals()


@pytest.mark.parametrize("inside", [True, False])
def test_who_leaves_after_the_training_is_told_that_its_rows_stay_in_the_model(tmp_path, inside):
    frames = tables()
    node = node_of(tmp_path / "bundle", frames, "south")  # where no token begins
    node.core.heard(0.0, 1, Stop(opened(node, frames, (3, 0, 9, 0, 1)), "east"))
    node.sequence.advance()
    result = np.ones(node.shape.result)
    result[node.config.index - node.course.places] = inside
    node.core.heard(0.0, 2, Stop(Ending("tolerance", "x", (3, 0, 9, 0, 1), result.astype("<f8").tobytes()), "east"))
    assert [stage.name for stage in node.sequence.advance()] == ["closing"]
    node.core.start(0.0)
    node.sequence.leave(0.0, 30.0)
    assert node.core.left.all_out != inside
    assert ("its data stay in the model" in node.core.left.words) == inside
    node.close_journals()


def test_sites_that_cannot_agree_may_do_so_with_one_more(tmp_path):
    frames = tables("logistic")
    alike = {"north": frames["north"].assign(y="no")} | {name: frames[name] for name in ("east", "south")}
    node = node_of(tmp_path / "bundle", alike, loss="logistic")
    node.core.heard(0.0, 1, Stop(opened(node, {"north": alike["north"]}, (1, 0, 9, 0, 1)), "east"))
    assert node.sequence.advance() == []
    assert "at least two classes" in node.sequence.refused
    node.core.heard(0.0, 2, Stop(opened(node, alike, (3, 0, 9, 0, 1)), "east"))
    assert [stage.name for stage in node.sequence.advance()] == ["training"]
    assert not node.sequence.refused
    node.close_journals()


def test_an_agent_that_alone_does_not_fit_ends_and_nobody_expects_it(tmp_path):
    """Its level is not among those of the survey, which ended without it; the training expects who was in that."""
    frames = tables()
    frames["north"]["group"] = "unheard of"
    node = node_of(tmp_path / "bundle", frames)
    ending = opened(node, {"south": frames["south"], "east": frames["east"]}, (2, 0, 9, 0, 1))
    numbers = np.frombuffer(ending.result, "<f8").copy()
    places = node.course.places
    regions_of = numbers[:-places].reshape(places, -1)
    regions_of[[0, 1, 2]] = regions_of[[2, 1, 0]]  # east and south have places 1 and 2
    numbers[-places:] = np.isin(np.arange(places), [1, 2])
    late = ending._replace(result=numbers.tobytes())
    node.core.heard(0.0, 1, Stop(late, "east"))
    assert node.sequence.advance() == []
    assert node.sequence.unfit
    assert "'unheard of', a level that no site had in the survey" in node.sequence.refused
    assert node._finished()
    node.close_journals()
    frames["north"]["group"] = "a"
    frames["north"].to_csv(node.folder / "rows.csv", index=False)
    again = Node(node.config, node.folder, course_of(node.config, node.folder), threading.Event())
    again.core.heard(0.0, 1, Stop(late, "east"))
    (training,) = again.sequence.advance()
    assert training.plan.settings.names_at(training.plan.settings.awaited) == ("east", "south")
    assert [training.plan.settings.first(m) for m in (0, 1, 2)] == [1, 2, 1]
    again.close_journals()


@pytest.mark.parametrize("flag", [1.0, RECOUNTING])
def test_the_file_says_that_a_model_was_read_in_a_recount(tmp_path, flag):
    """A field, so that whoever reads the file can tell that the model and the sums are of different rows."""
    frames = tables()
    node = node_of(tmp_path / "bundle", frames)
    places = node.course.places
    node.core.heard(0.0, 1, Stop(opened(node, frames, (3, 0, 9, 0, 1)), "east"))
    (training,) = node.sequence.advance()
    there = flag * (np.arange(places) < 2)
    numbers = np.append(np.zeros(training.plan.visits.dimension), there).astype("<f8")
    training.core.heard(0.0, 2, Stop(Ending("hops", "x", (2, 0, 9, 0, 1), numbers.tobytes()), "east"))
    (closing,) = node.sequence.advance()
    sums = np.append(closing.plan.objective.numbers, np.arange(places) < 2).astype("<f8")
    closing.core.heard(0.0, 3, Stop(Ending("tolerance", "x", (1, 0, 9, 0, 1), sums.tobytes()), "east"))
    node.sequence.advance()
    model = node.course.model(None)
    assert model.about["recounting"] is (flag == RECOUNTING)
    assert model.about["silent"] == 1
    if flag == RECOUNTING:
        with pytest.raises(
            amble.AmbleError, match="the run ended in a recount: the model may have rows of agents that"
        ):
            model.summary()
    node.close_journals()


def test_a_neighbour_that_comes_while_a_stage_ends_is_up_in_the_next_one(tmp_path):
    frames = tables()
    node = node_of(tmp_path / "bundle", frames)
    node.core.start(0.0)
    node.peer("east", True)  # noticed in the opening, and handled in the training
    node.core.heard(0.0, 1, Stop(opened(node, frames, (3, 0, 9, 0, 1)), "east"))
    (training,) = node.sequence.advance()
    training.core.start(0.0)
    node.inputs.get()(0.0)
    assert training.core.neighbours.up == ["east"]
    node.close_journals()


def test_a_missing_cell_among_held_out_rows_is_refused_before_the_training(tmp_path):
    """A missing cell is refused by all sites at once, also in rows that are held out."""
    frames = tables()
    node = node_of(tmp_path / "bundle", frames, test=0.5)
    node.close_journals()
    held = node.course.held_out.columns[0].numbers[0]
    gaps = frames["north"].assign(age=frames["north"]["age"].where(~np.isclose(frames["north"]["age"], held)))
    gaps.to_csv(node.folder / "rows.csv", index=False)
    course = course_of(node.config, node.folder)
    total = course.first().objective.numbers
    result = np.append(total, np.arange(course.places) == 0).astype("<f8").tobytes()
    with pytest.raises(amble.AmbleError, match="north has 1 missing cell in 'age'"):
        course.after("opening", Ending("tolerance", "x", (1,), result))


def test_a_level_that_only_held_out_rows_have_costs_the_test_and_not_the_model(tmp_path, caplog):
    frames = tables()
    node = node_of(tmp_path / "bundle", frames, test=0.5)
    node.close_journals()
    held = node.course.held_out.columns[0].numbers[0]
    frames["north"].loc[np.isclose(frames["north"]["age"], held), "group"] = "rare"
    for name, frame in frames.items():
        frame.to_csv(tmp_path / "bundle" / name / "rows.csv", index=False)
    for path in node.folder.glob("opening.db*"):
        path.unlink()
    nodes = Nodes(tmp_path / "bundle", frames)
    nodes.wait()
    sums = amble.load_model(node.folder / "model.npz").sums
    assert sums.agents == 3
    assert 0 < sums.test.rows < sum(len(frame) for frame in frames.values()) // 2 - 10
    assert "north: " in caplog.text
    assert "'rare'" in caplog.text


def test_a_row_is_left_to_train_on(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,2.5\n2,3.5\n")
    split = with_held_out(read_table(path, None, ()), 0.9, 0, 0)
    assert [len(part.columns[0].numbers) for part in split] == [1, 1]
