"""amble join and amble leave, with real processes: a newcomer's data are in the model, a leaver's are out of it."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import msgspec
import numpy as np
import pytest

import amble
from amble.errors import AmbleError
from amble.live.cluster import up
from amble.live.cluster.cluster import Cluster, configure, rows_of
from amble.live.cluster.ports import free_ports
from amble.live.model import start as starts
from amble.live.records import collect
from amble.live.settings import bundle, joining
from amble.live.settings.agent_config import AgentConfig, Peer
from amble.live.trust import identity, invitation
from config_samples import made, model, refused

pytest.importorskip("zenoh")
FOUNDERS = 5


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "amble", *map(str, words)], capture_output=True, text=True, timeout=600, check=False
    )


def optimum(cluster, names):
    """Of the rows in these agents' folders, all together."""
    configs = {name: AgentConfig.read(cluster.folder / name) for name in names}
    objectives = [config.objective(*config.read_data(cluster.folder / name)) for name, config in configs.items()]
    return amble.Problem.from_objectives(objectives, configs[names[0]].dimension).optimum().w


def wait_for_the_optimum(cluster, names, seconds=40.0):
    best, deadline = optimum(cluster, names), time.monotonic() + seconds
    while True:
        models = [cluster.model(name) for name in names]
        apart = [np.inf if w is None else np.linalg.norm(w - best) / np.linalg.norm(best) for w in models]
        if max(apart) <= 1e-6:
            return
        assert time.monotonic() < deadline, (dict(zip(names, apart, strict=True)), cluster.failed())
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("method", "pause_s"),
    [(amble.Relay(tokens=2), 0.02), pytest.param(amble.WADMM(beta=0.3), 0.002, marks=pytest.mark.long)],
    ids=["Relay 2", "WADMM"],
)
def test_one_comes_and_one_goes_while_the_run_goes_on(tmp_path, method, pause_s):
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X[:350], data.y[:350], agents=FOUNDERS, ridge=0.01, weights="agents")
    network = amble.networks.complete(FOUNDERS)
    config = configure(problem, method, network, {"hops": 10**9}, 0, {"patience_s": 15.0, "pause_s": pause_s})
    with Cluster.create(tmp_path / "run", config, rows_of(problem, data.X, data.y)) as cluster:
        cluster.start_all()
        names = list(config.agents)
        wait_for_the_optimum(cluster, names)

        where = ["--host", "127.0.0.1", "--port", free_ports(1)[0], "--data", "rows.npz"]
        near = ["--near", names[0], "--near", names[1], "--near", names[2]]
        told = run("join", cluster.folder, "late", *where, *near)
        assert told.returncode == 0, told.stderr
        assert f"late at place {FOUNDERS}" in told.stdout
        np.savez(cluster.folder / "late" / "rows.npz", X=data.X[350:], y=data.y[350:])
        cluster.start("late")
        wait_for_the_optimum(cluster, [*names, "late"])

        told = run("leave", cluster.folder / names[1])
        assert told.returncode == 0, told.stdout + told.stderr
        assert "has left: all that it gave is out of the model" in told.stdout
        wait_for_the_optimum(cluster, [names[0], *names[2:], "late"])

        again = run("agent", cluster.folder / names[1])
        assert again.returncode == 2
        assert f"{names[1]} has left this run" in again.stderr
        assert "has left" in run("status", cluster.folder / names[1]).stdout
        again = run("leave", cluster.folder / names[1])
        assert (again.returncode, "has left already" in again.stderr) == (2, True)
        assert cluster.failed() == {}
    events = collect.collect(collect.agent_folders([cluster.folder])).counts()
    assert "recount" not in events  # nobody died: what the leaver gave it took out itself
    assert "reissue" not in events
    outcome = up.again(collect.agent_folders([cluster.folder]))
    assert outcome.whole, str(outcome)


@pytest.mark.long
def test_a_run_goes_on_without_an_agent_that_never_came_though_it_had_the_token(tmp_path):
    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=4, ridge=0.01, weights="agents")
    timing = {"patience_s": 1.0, "silence_s": 3.0, "pause_s": 0.005}
    config = configure(problem, amble.Relay(), amble.networks.complete(4), {"hops": 10**9}, 0, timing)
    with Cluster.create(tmp_path / "run", config, rows_of(problem, data.X, data.y)) as cluster:
        for name in config.agents[1:]:
            cluster.start(name)
        wait_for_the_optimum(cluster, config.agents[1:])
    outcome = up.again({name: cluster.folder / name for name in config.agents[1:]})
    assert outcome.made == outcome.visits > 0
    assert outcome.whole


# --- invitations ----------------------------------------------------------------------------------------------------


@pytest.fixture
def held(tmp_path):
    """A bundle of a, b, c and d, each beside two or three others."""
    bundle.make_bundle(made(), tmp_path / "bundle", 30)
    return tmp_path / "bundle"


def invite(folder, name="east", near=("a", "b"), host="10.0.0.9", port=7447, data="rows.csv"):
    return joining.invite(folder, Peer(name, host, port), near, data, 20)


def shown(folder, name="east"):
    return (folder / name / invitation.FILE).read_bytes()


def test_an_invitation_makes_a_folder_for_the_newcomer_and_changes_no_other(held):
    before = {path: path.read_bytes() for path in held.rglob("*") if path.is_file()}
    guest = invite(held)
    assert (guest.index, guest.near) == (4, ("a", "b"))
    assert all(path.read_bytes() == content for path, content in before.items())
    own = AgentConfig.read(held / "east")
    assert (own.index, own.digest) == (4, AgentConfig.read(held / "a").digest)
    assert [peer.name for peer in own.neighbours] == ["a", "b"]
    assert not (held / "east" / identity.KEY).stat().st_mode & 0o077
    assert invite(held, "west", ("c", "east"), port=7448).index == 5
    assert AgentConfig.read(held / "west").guests == {"west": 5, "east": 4}


def test_the_newcomer_gets_the_initial_model_from_any_agent_that_has_it(tmp_path):
    folder = tmp_path / "bundle"
    bundle.make_bundle(made(**model(start=[1.0, -2.0, 0.5, 4.0])), folder, 30)
    (folder / "a" / starts.FILE).unlink()
    invite(folder)
    assert (folder / "east" / starts.FILE).read_bytes() == (folder / "b" / starts.FILE).read_bytes()
    for path in folder.glob(f"*/{starts.FILE}"):
        path.unlink()
    before = sorted(folder.rglob("*"))
    with refused("the run has an initial model, and start.npy is in no agent's folder in"):
        invite(folder, "west", port=7448)
    assert sorted(folder.rglob("*")) == before


def test_the_newcomer_comes_between_two_that_follow_each_other(held):
    guest = invite(held)
    joining.admit(AgentConfig.read(held / "a"), held / "a", shown(held))
    joining.admit(AgentConfig.read(held / "b"), held / "b", shown(held))
    configs = {name: AgentConfig.read(held / name) for name in ("a", "b", "east")}
    placed = [(m, before) for m, before in enumerate(guest.after) if before]
    assert placed
    for m, before in placed:
        following = AgentConfig.read(held / before, guests=False).next[m][before]
        assert configs[before].next[m] == {before: "east"}
        assert configs["east"].next[m] == {"east": following}
    assert configs["a"].protocol_settings().indices["east"] == 4


def test_a_neighbour_lets_in_whom_the_authority_invited_once(held):
    invite(held)
    own = AgentConfig.read(held / "a")
    assert joining.admit(own, held / "a", shown(held)) == "east"
    assert joining.admit(own, held / "a", shown(held)) == ""
    assert [peer.name for peer in AgentConfig.read(held / "a").neighbours][-1] == "east"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data.replace(b'"port": 7447', b'"port": 7448'), "its signature is wrong"),
        (lambda data: data.replace(b'"place": 4', b'"place": 5'), "its signature is wrong"),
        (lambda data: data[:-20], "not an invitation by the run's authority"),
        (lambda _: b"\xff\x00", "not an invitation by the run's authority"),
        (lambda _: b"[" * 60_000, "not an invitation by the run's authority"),
        (lambda data: data + b" " * 70_000, "none has more than"),
        (lambda data: data.replace(b'"signature": "', b'"signature": "zz'), "not an invitation by the run's authority"),
    ],
)
def test_what_the_authority_did_not_sign_is_not_let_in(held, change, reason):
    invite(held)
    with pytest.raises(AmbleError, match=reason):
        joining.admit(AgentConfig.read(held / "a"), held / "a", change(shown(held)))
    assert not (held / "a" / invitation.GUESTS).exists()


def test_invitations_by_another_authority_to_another_run_or_to_others_are_not_taken(held, tmp_path):
    invite(held)
    own = AgentConfig.read(held / "c")
    with pytest.raises(AmbleError, match="invited beside a, b, and this is c"):
        joining.admit(own, held / "c", shown(held))
    bundle.make_bundle(made(), tmp_path / "other", 30)
    invite(tmp_path / "other")
    with pytest.raises(AmbleError, match="its signature is wrong"):
        joining.admit(AgentConfig.read(held / "a"), held / "a", shown(tmp_path / "other"))
    with pytest.raises(AmbleError, match="east is invited to another run"):  # of the same authority
        joining.admit(replace(AgentConfig.read(held / "a"), run="another"), held / "a", shown(held))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"index": 3}, "does not fit this run"),
        ({"index": 12}, "does not fit this run"),
        ({"after": ("a",)}, "does not fit this run"),
        ({"name": "c"}, "there is an agent named c already"),
        ({"host": "0.0.0.0"}, "names no agent at a host and port"),
        ({"name": "../x"}, "names no agent at a host and port"),
    ],
)
def test_an_invitation_that_does_not_fit_the_run_is_not_taken_though_it_is_signed(held, changed, sentence):
    guest = msgspec.structs.replace(invite(held), **changed)
    with pytest.raises(AmbleError, match=sentence):
        joining.admit(AgentConfig.read(held / "a"), held / "a", invitation.sign(guest, held / "authority"))


def test_two_cannot_have_one_place(held):
    guest = invite(held)
    joining.admit(AgentConfig.read(held / "a"), held / "a", shown(held))
    other = msgspec.structs.replace(guest, name="west")
    with pytest.raises(AmbleError, match="east has already been accepted at place 4"):
        joining.admit(AgentConfig.read(held / "a"), held / "a", invitation.sign(other, held / "authority"))


def test_invitations_at_the_same_time_have_places_of_their_own(held):
    with ThreadPoolExecutor(3) as pool:
        made_at_once = list(pool.map(lambda k: invite(held, f"late{k}", port=7500 + k), range(3)))
    assert sorted(guest.index for guest in made_at_once) == [4, 5, 6]


def test_a_damaged_invitation_is_named(held):
    invite(held)
    joining.admit(AgentConfig.read(held / "a"), held / "a", shown(held))
    (held / "a" / invitation.GUESTS / "east.json").write_text("{}")
    with pytest.raises(AmbleError, match=r"east\.json cannot be used: .* Move it away"):
        AgentConfig.read(held / "a")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"name": "A"}, "already an agent or a folder named 'A'"),
        ({"name": "authority"}, "already an agent or a folder named 'authority'"),
        ({"name": "a.b"}, "name = 'a.b' was given"),
        ({"near": ()}, "no neighbour was given"),
        ({"near": ("a", "x")}, "'x' was given as a neighbour"),
        ({"near": ("a", "a")}, "a neighbour was given twice"),
        ({"host": "10.0.0.1", "port": 7001}, "b has host 10.0.0.1 and port 7001 already"),
        ({"port": 70000}, "port = 70000 was given"),
        ({"data": "/srv/rows.csv"}, "data = '/srv/rows.csv' was given"),
    ],
)
def test_who_cannot_be_invited_is_told_why(held, changed, sentence):
    before = sorted(held.rglob("*"))
    with pytest.raises(AmbleError, match=sentence):
        invite(held, **changed)
    assert sorted(held.rglob("*")) == before


def test_there_is_room_for_so_many_and_no_more(tmp_path):
    bundle.make_bundle(made(room=1), tmp_path / "bundle", 30)
    invite(tmp_path / "bundle")
    with pytest.raises(AmbleError, match="room for 1 agents besides its first 4, and 1 were invited"):
        invite(tmp_path / "bundle", "west", port=7448)


def test_nobody_joins_or_leaves_a_run_whose_method_counts_its_agents_at_the_start(tmp_path):
    bundle.make_bundle(made(method={"name": "PW-ADMM"}), tmp_path / "bundle", 30)
    with pytest.raises(AmbleError, match="PW-ADMM counts its agents at the start"):
        invite(tmp_path / "bundle")
    with pytest.raises(AmbleError, match="room = 3 was given, and no agent can join a run of PW-ADMM"):
        made(method={"name": "PW-ADMM"}, room=3)
    told = run("leave", tmp_path / "bundle" / "a")
    assert (told.returncode, "no agent can leave a run of PW-ADMM" in told.stderr) == (2, True)


def test_renewing_certificates_renews_those_of_newcomers_too(held):
    invite(held)
    before = (held / "east" / identity.CERTIFICATE).read_bytes()
    bundle.renew(made(), held, 30)
    assert (held / "east" / identity.CERTIFICATE).read_bytes() != before


def test_an_agent_that_does_not_run_cannot_leave(held):
    told = run("leave", held / "a")
    assert (told.returncode, "it has not been started in this folder" in told.stderr) == (2, True)
