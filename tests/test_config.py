"""A live run's settings: what is read, what is refused, what each agent gets."""

import logging
import subprocess
import sys
import tomllib
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cryptography")

import amble
from amble import methods
from amble.arrays import tree_map
from amble.live import toml
from amble.live.settings import bundle
from amble.live.settings.config import AgentConfig, Config, Retention
from amble.networks import walks
from config_samples import PLAIN, RNG, X, Y, agents, made, model, refused

# --- what cannot be used ---------------------------------------------------------------------------------------------

BAD = [
    ({"name": None}, r"the run has no name; add it: at most 64 letters"),
    ({"name": "my plant"}, r"the run: name = 'my plant' was given; it must be at most 64 letters, digits, - and _"),
    ({"modle": {}}, r"no setting of the run named 'modle'; did you mean 'model'"),
    ({"method": None}, "the run has no method"),
    ({"method": "Relay"}, "method = 'Relay' was given; it must be a table"),
    ({"method": {}}, r"add a table \[method\] with name"),
    ({"method": {"name": "Rely"}}, "did you mean 'Relay'"),
    ({"method": {"name": "Relay", "token": 2}}, "no setting of Relay named 'token'; did you mean 'tokens'"),
    ({"method": {"name": "Relay", "tokens": 65}}, "tokens = 65 was given; a live run has at most 64"),
    ({"method": {"name": "Relay", "tokens": 0}}, "tokens=0 was given"),
    (
        {"method": {"name": "EXTRA"}},
        "EXTRA was given; it works in rounds and has no tokens: choose I-BCD, .*Relay",
    ),
    ({"method": {"name": "FedAvg"}}, "works in rounds"),
    (model(task="regresion"), "no task named 'regresion'; did you mean 'regression'"),
    (model(columns=0), r"\[model\]: columns = 0 was given; it must be the number of columns or a list of their names"),
    (model(columns=True), "columns = True was given"),
    (model(columns=[]), r"columns = \[\] was given"),
    (model(columns=["u", "v", "u"]), "names the column 'u' twice"),
    (
        model(columns=2_000_000, task="classification", labels=[1, 2, 3, 4, 5, 6]),
        "unknowns; messages can have at most 10,000,000",
    ),
    (model(ridge=-1), "ridge = -1 was given; it must be a number, zero or more"),
    (model(ridge=float("inf")), "ridge = inf was given"),
    (model(intercept=1), "intercept = 1 was given; it must be true or false"),
    (model(rigde=1), "did you mean 'ridge'"),
    (model(one_hot=True), "has one_hot; write columns as names instead"),
    (model(X_mean=[1, 2]), "X_mean has 2 numbers for 3 columns; give one per column"),
    (model(X_std=[1, 2, 3, 4]), "X_std has 4 numbers for 3 columns"),
    (model(X_std=[1, 0, 1]), r"X_std = \[1, 0, 1\] was given; it must be a list of numbers above zero"),
    (model(X_mean=[1, float("nan"), 1]), "X_mean = .* it must be a list of numbers, one per column"),
    (model(y_std=0), "y_std = 0 was given"),
    (model(labels=[0, 1]), 'has labels and task = "regression"'),
    (model(task="classification"), r"\[model\] has no labels; name all"),
    (model(task="classification", labels=["yes"]), "labels = 'yes' was given; name at least two, each once"),
    (model(task="classification", labels=[1, 2, 1]), "name at least two, each once"),
    (model(task="classification", labels=[1, "2"]), "labels = 1, '2' mixes text and numbers"),
    (model(task="classification", labels=[0, 1], y_mean=1.0), "labels are not scaled"),
    (model(task="classification", labels=[[0]]), "it must be a list of all labels"),
    ({"model": {"task": "regression"}}, r"\[model\] has no columns; add it"),
    ({"stop": {}}, r"\[stop\] has no limit, and the run would never end; give tolerance \(above 0\), hops or s"),
    ({"stop": None}, "the run has no stop"),
    ({"stop": {"hops": 0}}, "hops = 0 was given; it must be a whole number from 1"),
    ({"stop": {"hops": 10.5}}, "hops = 10.5 was given"),
    ({"stop": {"tolerance": 0}}, "the run would never end"),
    ({"stop": {"tolerance": -1e-9}}, "it must be a number above zero and below 1, or 0 for no limit"),
    ({"stop": {"tolerance": 1}}, "tolerance = 1 was given; it must be a number above zero and below 1"),
    ({"stop": {"seconds": -1}}, "seconds = -1 was given; it must be a number above zero"),
    ({"stop": {"second": 1}}, "did you mean 'seconds'"),
    ({"walk": {"kind": "cycel"}}, "no walk for live runs named 'cycel'; did you mean 'cycle'"),
    ({"walk": {"seed": -1}}, "seed = -1 was given"),
    ({"timing": {"patience_s": 0}}, "patience_s = 0 was given; it must be a number above zero"),
    ({"timing": {"pause_s": -1}}, "pause_s = -1 was given; it must be a number from 0 to 10"),
    ({"timing": {"pause_s": 11}}, "pause_s = 11 was given; it must be a number from 0 to 10"),
    (
        {"record": {"visits_max": -1}},
        "visits_max = -1 was given; it must be a whole number: how many visits are kept, or 0",
    ),
    ({"record": {"visits_max": "all"}}, "visits_max = 'all' was given; it must be a whole number"),
    ({"record": {"visits": 5}}, "did you mean 'visits_max'"),
    ({"timing": {"patience": 1}}, "did you mean 'patience_s'"),
    ({"timing": {"silence_s": 1}}, "has silence_s = 1 and patience_s = 2"),
    ({"agents": None}, "the run has no agents; add it"),
    ({"agents": PLAIN["agents"][:1]}, "the run has 1 agents; a run needs 2 to 1024"),
    ({"agents": ["a", "b"]}, r"it must be tables, \[\[agents\]\]"),
    (agents(name="a"), "two agents are named 'a' and 'a'"),
    (agents(name="A"), "two agents are named 'a' and 'A'.*capital letters count as the same"),
    (agents(name="Authority"), "'Authority', which is the folder of the run's authority"),
    (agents(name="b/../c"), "name = 'b/../c' was given; it must be at most 64 letters"),
    (agents(name="b.c"), "name = 'b.c' was given"),
    (agents(name="-b"), "name = '-b' was given"),
    (agents(name="b" * 65), "it must be at most 64 letters"),
    (agents(name=""), "name = '' was given"),
    (agents(name="b\n"), "name = "),
    (agents(name="é"), "name = 'é' was given"),
    (agents(port=7000), "agents 'a' and 'b' both have host 10.0.0.1 and port 7000; give one of them another port"),
    (
        agents(port=32768),
        "port = 32768 was given; it must be a whole number from 1 to 32767: Zenoh listens on no higher",
    ),
    (agents(port=0), "port = 0 was given"),
    (agents(port="7001"), "port = '7001' was given"),
    (agents(host="10.0.0.256"), "host = '10.0.0.256' was given; it must be the host name or IPv4 address"),
    (agents(host="0.0.0.0"), "host = '0.0.0.0' was given"),
    (agents(host="::1"), "Zenoh uses no IPv6 address"),
    (agents(host="a b"), "host = 'a b' was given"),
    (agents(host="tls/b:7001"), "host = 'tls/b:7001' was given"),
    (agents(data="../rows.csv"), "data = '../rows.csv' was given; it must be the name of a file in the agent's own"),
    (agents(prot=1), "no setting of agent 'b' named 'prot'; did you mean 'port'"),
    (
        agents(links=[["a", "b"]]),
        r"links is below \[\[agents\]\], so TOML takes it for a setting of agent 'b'; move",
    ),
    ({"agents": [*PLAIN["agents"][:3], {"name": "d"}]}, "agent 'd' has no host; add it"),
    ({"links": None}, r"the run has neither links nor \[network\]; give links = \[\[\"a\", \"b\"\]"),
    ({"network": {"kind": "ring"}}, r"the run has both links and \[network\]"),
    ({"links": [["a", "e"]]}, r"links has \['a', 'e'\]: there is no agent named 'e'"),
    ({"links": [["a", "a"]]}, r"links has \['a', 'a'\], an agent with itself"),
    ({"links": [["a", "b", "c"]]}, "it must be a list of pairs"),
    (
        {"links": [["a", "b"], ["c", "d"]]},
        "the links do not connect all agents: a has no path to c, d; add links",
    ),
    ({"links": None, "network": {"kind": "rnig"}}, "no network named 'rnig'; did you mean 'ring'"),
    ({"links": None, "network": {}}, r"\[network\] has no kind"),
    ({"links": None, "network": {"kind": "ring", "seed": 1}}, r'has seed and kind = "ring", which takes none'),
    ({"links": None, "network": {"kind": "random", "density": 2}}, "density = 2 was given"),
    ({"links": None, "network": {"kind": "random", "density": 0.1}}, "use a density of at least"),
]


@pytest.mark.parametrize(("changed", "sentence"), BAD, ids=[str(k) for k in range(len(BAD))])
def test_what_cannot_be_used_is_refused_in_one_sentence(changed, sentence):
    with refused(sentence) as caught:
        made(**changed)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_not_toml(tmp_path):
    with refused("there is no run file .*run.toml"):
        Config.read(tmp_path / "run.toml")
    (tmp_path / "run.toml").write_text("name = plant")
    with refused("run.toml is not valid TOML: "):
        Config.read(tmp_path / "run.toml")
    (tmp_path / "run.toml").write_bytes(b"name = '\xff'")
    with refused("run.toml is not valid TOML: "):
        Config.read(tmp_path / "run.toml")


# --- the run ---------------------------------------------------------------------------------------------------------


def test_the_example_passes_and_has_the_default_timing():
    config = Config.from_settings(tomllib.loads(bundle.EXAMPLE))
    assert config.agents == ("north", "south", "west")
    assert config.method == amble.Relay(tokens=2, form="full")
    assert (config.timing, config.walk) == (made().timing, made().walk)
    assert config.notes() == []


def test_the_form_that_relay_takes_by_itself_is_settled_for_all_agents():
    assert made().method.form == "full"
    assert made(**model(columns=500)).method.form == "scalar"


def test_a_word_for_the_number_of_tokens_is_settled_for_all_agents():
    """Live tokens carry boards: two for time, one otherwise."""
    for word, tokens in (("time", 2), ("auto", 1), ("communication", 1)):
        config = made(method={"name": "Relay", "tokens": word})
        assert config.method == config.agent("a").method == amble.Relay(tokens=tokens, form="full")
        assert len(config.next) == tokens


@pytest.mark.parametrize("kind", ["cycle", "cycles"])
def test_tokens_go_round_the_cycles_that_the_simulator_would_take(kind):
    config = made(links=None, network={"kind": "complete"}, walk={"kind": kind, "seed": 5})
    walk = walks.walk_for(kind, config.network, 2, 5)
    for m, table in enumerate(config.next):
        order = [config.agents[i] for i in walk.order[walk.row[m]]]
        assert table == dict(zip(order, order[1:] + order[:1], strict=True))


def test_a_cycle_follows_links_and_passes_every_agent():
    config = made(walk={"kind": "cycles", "seed": 1})
    links = {frozenset(link) for link in PLAIN["links"]}
    for table in config.next:
        assert {frozenset(hop) for hop in table.items()} <= links
        at, seen = "a", []
        for _ in range(4):
            seen.append(at)
            at = table[at]
        assert (sorted(seen), at) == (["a", "b", "c", "d"], "a")


def test_without_a_cycle_or_when_asked_the_walk_is_random():
    star = made(links=[["a", "b"], ["a", "c"], ["a", "d"]])
    assert star.next == ({}, {})
    assert star.notes() == ["no cycle through all agents was found; tokens go to neighbours at random."]
    random = made(walk={"kind": "random"})
    assert (random.next, random.notes()) == (({}, {}), [])
    assert random.agent("a").protocol_settings().next == ({}, {})


def test_notes_say_what_may_surprise():
    crowded = made(method={"name": "Relay", "tokens": 5})
    assert crowded.notes() == ["5 tokens for 4 agents: some will always wait."]
    (said,) = made(method={"name": "PW-ADMM", "tokens": 2}).notes()
    assert said == "PW-ADMM cannot continue without a dead agent: the run waits until it is back."
    for name in ("API-BCD", "gAPI-BCD"):
        (said,) = made(method={"name": name, "tokens": 2, "tau": 1.0}).notes()
        assert said.endswith('the run waits until it is back; with token_rule = "tracked" it could.')
        assert made(method={"name": name, "tokens": 2, "tau": 1.0, "token_rule": "tracked"}).notes() == []


def test_a_random_network_is_the_simulators():
    config = made(links=None, network={"kind": "random", "density": 0.7, "seed": 3})
    assert np.array_equal(config.network.edges, amble.networks.random(4, 0.7, 3).edges)


def test_an_agent_that_is_not_there():
    with refused("no agent named 'e'; choose one of a, b, c, d"):
        made().agent("e")


# --- one agent -------------------------------------------------------------------------------------------------------

SEVERAL = [
    {},
    {"walk": {"kind": "random"}, "stop": {"hops": 100, "seconds": 2.5}},
    {"method": {"name": "gAPI-BCD", "tokens": 3, "token_rule": "tracked"}},  # rho is None
    model(columns=["size", 'col"our=rot\\n', "größe\x7f\t"], target="prix 😀", header=True),
    model(task="classification", labels=["no", "yes", "🤷"], ridge=1e-12, intercept=False),
    model(X_mean=[1e300, -1e-300, 1 / 3], X_std=[1, 2.5, 3], y_mean=0.1, y_std=7, target=-1),
    agents(data="rows.csv", host="agent_b.local"),
    {"timing": {"patience_s": 1, "lease_s": 0.5, "retry_s": 5.0, "pause_s": 0}},
]


@pytest.mark.parametrize("changed", SEVERAL)
def test_what_is_written_for_an_agent_is_what_it_reads(tmp_path, changed):
    config = made(**changed)
    digests = set()
    for name in config.agents:
        (tmp_path / name).mkdir()
        own = config.agent(name)
        own.write(tmp_path / name)
        read = AgentConfig.read(tmp_path / name)
        assert read == own
        digests |= {own.digest, read.digest}
    assert len(digests) == 1


def test_an_agent_gets_its_neighbours_and_where_it_sends_tokens():
    config = made(walk={"seed": 2}, stop={"hops": 50, "tolerance": 1e-6}, timing={"patience_s": 3, "retry_s": 9})
    own = config.agent("b")
    assert own.neighbours == (("a", "10.0.0.1", 7000), ("c", "10.0.0.1", 7002))
    assert own.dimension == 4
    given = own.protocol_settings()
    assert (given.agents, given.tokens, given.seed) == (("a", "b", "c", "d"), 2, 2)
    assert (given.hops_max, given.tolerance) == (50, 1e-6)
    assert (given.patience_s, given.retry_s, given.retry_max_s, given.silence_s) == (3, 9, 9, 120)
    assert [table["b"] for table in given.next] == [table["b"] for table in config.next]


def test_the_digest_is_of_what_agents_must_agree_on():
    digest = made().agent("a").digest
    for changed in (
        {"name": "other"},
        {"method": {"name": "Relay", "tokens": 1}},
        model(ridge=1e-3),
        model(X_mean=[1, 2, 3]),
        model(columns=["u", "v", "w"]),
        {"stop": {"tolerance": 1e-7}},
        {"agents": PLAIN["agents"][::-1]},
    ):
        assert made(**changed).agent("a").digest != digest
    for changed in (
        agents(port=9000),
        model(target="y"),
        {"timing": {"patience_s": 5, "pause_s": 1}},
        {"record": {"visits_max": 5}},
    ):
        assert made(**changed).agent("a").digest == digest


def test_an_agent_keeps_as_much_of_its_record_as_its_own_file_says(tmp_path):
    """A file of an earlier version has no such table, and is as one that does not say."""
    assert made().agent("a").record.visits_max == 1_000_000
    made(record={"visits_max": 0}).agent("a").write(tmp_path)
    own = AgentConfig.read(tmp_path)
    assert own.record.visits_max == 0
    path = tmp_path / "agent.toml"
    path.write_text(path.read_text().replace("[record]\nvisits_max = 0\n", ""))
    assert "record" not in path.read_text()
    assert AgentConfig.read(tmp_path) == replace(own, record=Retention())


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("format = 1", "format = 2", "agent.toml: format = 2 was given"),
        ("seed = 0", "sede = 0", "no setting of agent.toml named 'sede'"),
        ('agents = [\n    "a",\n    "b"', 'agents = [\n    "a",\n    "a"', "names an agent twice"),
        ('name = "b"\nhost', 'name = "e"\nhost', "has 'e', which is not among its agents; make it again"),
        ('name = "c"', 'name = "a"', "names a neighbour twice"),
        ('name = "c"', 'name = "b"', "as its own neighbour"),
        ("next = [", 'next = ["a", ', "has 3 entries in next for 2 tokens"),
        ('next = [\n    "a",', "next = [", "has 1 entries in next for 2 tokens"),
        ("tolerance = 1e-08", "", "would never end"),
        ("port = 7002", "port = 70020", r"\[\[neighbours\]\]: port = 70020 was given"),
    ],
)
def test_an_agents_file_that_somebody_edited_is_checked(tmp_path, old, new, sentence):
    made().agent("b").write(tmp_path)
    whole = (tmp_path / "agent.toml").read_text()
    assert old in whole
    (tmp_path / "agent.toml").write_text(whole.replace(old, new, 1))
    with refused(sentence):
        AgentConfig.read(tmp_path)


def test_a_token_is_sent_to_neighbours_only(tmp_path):
    own = made().agent("b")
    replace(own, next=({"b": "d"}, {})).write(tmp_path)
    with refused("sends a token next to 'd', which is not a neighbour"):
        AgentConfig.read(tmp_path)


def test_a_tolerance_of_0_is_none(tmp_path):
    without, zero = made(stop={"hops": 50}), made(stop={"hops": 50, "tolerance": 0})
    assert zero.stop == without.stop
    assert zero.agent("a").digest == without.agent("a").digest
    zero.agent("a").write(tmp_path)
    assert AgentConfig.read(tmp_path).protocol_settings().tolerance == 0.0
    written = (tmp_path / "agent.toml").read_text()
    (tmp_path / "agent.toml").write_text(written.replace("hops = 50", "hops = 50\ntolerance = 0.0"))
    assert AgentConfig.read(tmp_path).digest == without.agent("a").digest


def test_a_folder_that_is_no_agents_is_refused_with_those_that_are(tmp_path):
    with refused("has no agent.toml; give the folder of an agent, as amble init, amble join or amble up made it"):
        AgentConfig.read(tmp_path)
    bundle = tmp_path / "bundle"
    for name in ("north", "south", "west"):
        (bundle / name).mkdir(parents=True)
        (bundle / name / "agent.toml").touch()
    with refused("bundle holds the folders of several agents; give one of them: .*/north, .*/south or .*/west[.]$"):
        AgentConfig.read(bundle)
    with refused("there is no folder .*/nroth; did you mean [^ ]*/north[?]$"):
        AgentConfig.read(bundle / "nroth")
    with refused("there is no folder .*/x; did you mean [^ ]*/north, [^ ]*/south or [^ ]*/west[?]$"):
        AgentConfig.read(bundle / "x")
    with refused("there is no folder .*/bundel; give the folder of an agent"):
        AgentConfig.read(tmp_path / "bundel")
    with refused("north/agent.toml is a file; give the folder of an agent, [^ ]*/north, for example"):
        AgentConfig.read(bundle / "north" / "agent.toml")


def test_of_many_agents_ten_are_named(tmp_path):
    for k in range(12):
        (tmp_path / f"agent{k:02d}").mkdir()
        (tmp_path / f"agent{k:02d}" / "agent.toml").touch()
    with refused("agent08, [^ ]*agent09 or one of 2 others[.]$"):
        AgentConfig.read(tmp_path)


# --- its data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_an_agents_objective_is_the_simulators(classes, intercept):
    """The run is given the scaling that the simulator fits; then every agent has the simulator's objective."""
    names = np.array(["low", "mid", "top"])
    y = names[np.digitize(Y, [-0.5, 0.5])] if classes == 3 else names[(Y > 0) * 2] if classes == 2 else Y
    labels = {} if classes == 0 else {"labels": np.unique(y).tolist()}
    task = "classification" if classes else "regression"
    parts = [(X[:7], y[:7]), (X[7:20], y[7:20]), (X[20:], y[20:])]
    whole = amble.Problem.from_agents(parts, task=task, ridge=0.01, intercept=intercept, weights="agents")
    scaling = whole.scaling
    scale = {"X_mean": scaling.X_mean.tolist(), "X_std": scaling.X_std.tolist()}
    if not classes:
        scale |= {"y_mean": scaling.y_mean, "y_std": scaling.y_std}
    own = made(**model(task=task, ridge=0.01, intercept=intercept, **labels, **scale)).agent("a")
    assert own.dimension == whole.dimension
    z = RNG.normal(size=own.dimension)
    for i, part in enumerate(parts):
        mine, theirs = own.objective(*part), tree_map(lambda leaf, i=i: leaf[i], whole.stacked)
        assert mine.value(z) == pytest.approx(float(theirs.value(z)), rel=1e-12)
        np.testing.assert_allclose(mine.grad(z), theirs.grad(z), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(mine.hessian(z), theirs.hessian(z), rtol=1e-10, atol=1e-12)


def test_data_that_do_not_fit_the_model_are_refused():
    own = made().agent("a")
    with refused("the data of a has 2 columns and the run's model 3"):
        own.objective(X[:, :2], Y)
    with refused("the data of a has no rows"):
        own.objective(X[:0], Y[:0])
    with refused("the data of a: X has 1 values that are not finite"):
        own.objective(np.where(np.arange(90).reshape(30, 3) == 10, np.nan, X), Y)
    with refused("must hold numbers"):
        own.objective(X, ["x"] * 30)
    own = made(**model(task="classification", labels=["no", "yes"])).agent("a")
    with refused("has labels that the run does not know: 'maybe', 'never'; the run's are 'no', 'yes'"):
        own.objective(X[:3], ["no", "never", "maybe"])
    own = made(**model(task="classification", labels=["0", "1"])).agent("a")
    with refused("does not know: 0, 1; the run's are '0', '1'"):
        own.objective(X[:3], [0, 1, 1])


def test_one_agent_may_have_one_label_only():
    own = made(**model(task="classification", labels=[1, 2, 3])).agent("a")
    assert own.objective(X, np.full(30, 2)).grad(np.zeros(12)).shape == (12,)


def test_rows_are_read_as_the_run_says(tmp_path):
    own = made(**model(columns=["u", "v=red", "v=blue"], target="y"), **agents(data="rows.csv")).agent("b")
    (tmp_path / "rows.csv").write_text("y,v,u\n1,red,5\n2,blue,6\n")
    rows, wanted, _ = own.read_data(tmp_path)
    assert rows.tolist() == [[5, 1, 0], [6, 0, 1]]
    assert wanted.tolist() == [1, 2]
    (tmp_path / "rows.csv").write_text("y,v,u\n1,red,5\n2,green,6\n")
    with refused("'green', a category that the columns given have not"):
        own.read_data(tmp_path)
    (tmp_path / "rows.svm").write_text("1 1:2\n2 2:3\n")  # the third column is never other than zero
    rows, wanted, _ = replace(made().agent("a"), data="rows.svm").read_data(tmp_path)
    assert (rows.tolist(), wanted.tolist()) == ([[2, 0, 0], [0, 3, 0]], [1, 2])
    with refused("there is no file"):
        replace(own, data="none.csv").read_data(tmp_path)
    with refused("the run names no data file for a; add data ="):
        made().agent("a").read_data(tmp_path)


def test_columns_that_the_run_does_not_name_are_ignored_and_logged(tmp_path, caplog):
    caplog.set_level(logging.INFO, "amble.live")
    own = made(**model(columns=["u", "v=red", "v=blue"], target="y"), **agents(data="rows.csv")).agent("b")
    (tmp_path / "rows.csv").write_text("id,y,note,v,u,gap\n7,1,a word,red,5,\n8,2,,blue,6,nan\n")
    rows, wanted, _ = own.read_data(tmp_path)
    assert rows.tolist() == [[5, 1, 0], [6, 0, 1]]
    assert wanted.tolist() == [1, 2]
    (logged,) = [record.getMessage() for record in caplog.records]
    assert logged.endswith("rows.csv: columns that are not in the run's model are ignored: id, note, gap")
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    day = arrow.array([0, 1], arrow.timestamp("s"))  # which no column of a model could be
    table = {"day": day, "u": [5.0, 6.0], "v": ["red", "blue"], "y": [1.0, 2.0]}
    parquet.write_table(arrow.table(table), tmp_path / "rows.parquet")
    rows, wanted, _ = replace(own, data="rows.parquet").read_data(tmp_path)
    assert (rows.tolist(), wanted.tolist()) == ([[5, 1, 0], [6, 0, 1]], [1, 2])
    assert caplog.records[-1].getMessage().endswith("are ignored: day")


def test_a_long_list_of_ignored_columns_is_cut(tmp_path, caplog):
    caplog.set_level(logging.INFO, "amble.live")
    own = made(**model(columns=["u"], target="y"), **agents(data="rows.csv")).agent("b")
    names = [f"x{k}" for k in range(1000)]
    (tmp_path / "rows.csv").write_text(f"u,y,{','.join(names)}\n" + 2 * f"1,2{',0' * 1000}\n")
    own.read_data(tmp_path)
    assert caplog.records[-1].getMessage().endswith("x8, x9 and 990 more")


def test_missing_columns_and_a_target_that_may_be_another_column_are_refused_by_name(tmp_path):
    own = made(**model(columns=["u", "v=red", "w"], target="y"), **agents(data="rows.csv")).agent("b")
    (tmp_path / "rows.csv").write_text("y,u,id\n1,5,7\n2,6,8\n")
    with refused("has no column v, w, which the columns given have; add what is missing"):
        own.read_data(tmp_path)
    own = made(**model(columns=["u", "w"]), **agents(data="rows.csv")).agent("b")
    (tmp_path / "rows.csv").write_text("u,w,y,id\n1,5,7,0\n2,6,8,0\n")
    with refused(r"has columns besides those given \(y\), so its last one, id, may not be the target; name the target"):
        own.read_data(tmp_path)
    (tmp_path / "rows.csv").write_text("u,w,y\n1,5,7\n2,6,8\n")
    assert own.read_data(tmp_path)[1].tolist() == [7, 8]


def test_an_agent_needs_none_of_the_large_libraries(tmp_path):
    """Small boards have NumPy, and little else."""
    made(**agents(data="rows.csv")).agent("b").write(tmp_path)
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, Y]), delimiter=",")
    program = (
        "import sys; from pathlib import Path; from amble.live.settings.config import AgentConfig\n"
        f"folder = Path({str(tmp_path)!r}); own = AgentConfig.read(folder)\n"
        "own.objective(*own.read_data(folder)); own.protocol_settings(); own.digest\n"
        "large = {'jax', 'scipy', 'sklearn', 'matplotlib', 'plotly', 'networkx', 'pandas', 'typer', 'cryptography'}\n"
        "assert not large & set(sys.modules), large & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "label", [label for label, kind in methods.METHODS.items() if methods.walks(kind) and label != "MHLJ"]
)
def test_every_method_with_tokens_can_be_written_for_agents(tmp_path, label):
    own = made(method={"name": label}).agent("a")
    own.write(tmp_path)
    assert AgentConfig.read(tmp_path).method == own.method


def test_settings_are_written_as_toml_reads_them():
    """Also numbers of NumPy, which a computed setting is: repr() of one is np.float64(0.5)."""
    given = {
        "tau": np.float64(0.5),
        "tiny": np.float64(1e-300),
        "tokens": np.int64(3),
        "fair": np.bool_(True),
        "name": 'a "quoted" \\ \x7f ü\nname',
        "left out": None,
        "weights": [np.float64(0.1), 0.2],
        "stop": {"seconds": np.float32(0.25), "hops": None},
        "neighbours": [{"name": "b", "port": 1}, {"name": "c", "port": np.int32(2)}],
    }
    text = toml.written(given)
    assert "np." not in text
    assert tomllib.loads(text) == {
        "tau": 0.5,
        "tiny": 1e-300,
        "tokens": 3,
        "fair": True,
        "name": 'a "quoted" \\ \x7f ü\nname',
        "weights": [0.1, 0.2],
        "stop": {"seconds": 0.25},
        "neighbours": [{"name": "b", "port": 1}, {"name": "c", "port": 2}],
    }


def test_an_agent_s_settings_with_a_computed_number_are_read_back(tmp_path):
    own = made(method={"name": "I-BCD", "tau": 0.5}).agent("a")
    replace(own, method=amble.IBCD(tau=np.float64(0.5))).write(tmp_path)
    assert AgentConfig.read(tmp_path).method == amble.IBCD(tau=0.5)
