"""The film that the live page shows: from what agents say while they run, and from the record afterwards."""

import json
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgspec")

import amble
import reads
from amble.live import process, status
from amble.live.codec import msgspec
from amble.live.control import glance
from amble.live.journal.journal import Event as Told
from amble.live.journal.journal import Visited
from amble.live.page import film, past, scene
from amble.live.page.film import NOBODY, STATES, About, Film, Frame, Step
from amble.live.page.lives import life_of
from amble.live.page.sampler import Sampler
from amble.live.page.scene import Look, Scene
from amble.live.records.record import Record
from amble.live.status import Recent, Sight, Status, Wait

BEGAN_S, NAMES = 1000.0, ("ann", "bob", "cay")
ABOUT = About("t", "Relay", True, BEGAN_S, 1, NAMES, ((0, 1), (1, 2)), (True,) * 3, can_leave=True)
MINE = process.this_process()
OTHER = process.Process(1, "", "another machine")


def look(t, *, there=MINE, **fields):
    """All agents run; `fields` has what one of them says besides."""
    now_s, near = BEGAN_S + t, {"ann": ("bob",), "bob": ("ann", "cay"), "cay": ("bob",)}
    said = {name: Status(name=name, time_s=now_s, state="up", process=there, up=near[name]) for name in NAMES}
    said |= {name: status.changed(said[name], **more) for name, more in fields.items()}
    return Look(glance.overview(said, {name: Path(name) for name in said}, now_s), said)


def states(frame):
    return [STATES[agent.state] for agent in frame.agents]


# --- a film that grows ----------------------------------------------------------------------------------------------


def frame(n):
    return Frame(n, n / 2, "running", (), ())


@pytest.mark.parametrize("count", [1, 1500, 1501, 5000, 12345])
def test_a_film_never_has_more_than_1500_frames_and_they_are_even(count):
    grown = Film(ABOUT)
    for n in range(count):
        grown.add(Step(frame(n)))
    numbers = [each["n"] for each in json.loads(grown.whole())["frames"]]
    assert len(numbers) <= film.FRAMES_MAX + 1
    assert (numbers[0], numbers[-1]) == (0, count - 1)  # the newest is always there
    gaps = np.diff(numbers[:-1])
    assert gaps.size == 0 or gaps.min() == gaps.max()
    assert count <= film.FRAMES_MAX or len(numbers) > film.FRAMES_MAX / 2


def test_who_is_behind_gets_the_steps_since_or_is_told_to_ask_for_all():
    grown = Film(ABOUT)
    assert grown.after(-1) == []
    for n in range(film.TAIL + 10):
        grown.add(Step(frame(n), (film.Event(0.0, "start", 0, "x"),) * (n == 3)))
    last = film.TAIL + 9
    assert [n for n, _ in grown.after(last - 2)] == [last - 1, last]
    assert grown.after(8) is None
    assert next(n for n, _ in grown.after(9)) == 10
    assert grown.after(last) == []
    assert json.loads(grown.whole())["events"] == [{"t": 0.0, "kind": "start", "agent": 0, "text": "x", "token": -1}]


# --- a run that goes on ---------------------------------------------------------------------------------------------


def test_a_frame_has_the_states_and_paces_of_agents():
    said = {
        "ann": {"visits": 7, "hops_per_s": 3.00001, "bytes": 90, "visit_s": 0.012345678, "wait_s": None},
        "bob": {"waits": (Wait("answer", BEGAN_S, None, ("cay",), 0),)},
        "cay": {"process": process.Process(2**30, "", MINE.machine)},  # there is no such process
    }
    made, _ = Scene(ABOUT).step(look(5.0, **said), {"NMSE": 0.123456789})
    assert states(made) == ["up", "waiting", "down"]
    assert made.agents[0] == film.Agent(STATES.index("up"), 7, 3.0, 90, 0.01235, None)
    assert made.agents[2].hops_per_s is None
    assert (made.n, made.t, made.state, made.figures) == (0, 5.0, "running", {"NMSE": 0.1235})
    assert made.notes == ("bob waits for cay to take token 0: for 5.0 s, without a limit",)


def test_a_link_is_cut_when_one_of_its_ends_says_so():
    made, _ = Scene(ABOUT).step(look(5.0, bob={"up": ("ann",), "down": ("cay",)}), {})
    assert made.cut == (1,)


def visits(*stops):
    """Of token 0: (seconds, hop), each from bob and for cay."""
    return tuple(Recent(BEGAN_S + t, 0, 0, hop, "bob", "cay") for t, hop in stops)


def test_every_hop_is_in_one_frame_though_agents_tell_of_it_late():
    """A status is half a second old when the next one comes, so later visits of others may be known before."""
    shown, walk = Scene(ABOUT), []
    hops = {name: [(0.3 * hop, hop) for hop in range(1, 60) if hop % 3 == place] for place, name in enumerate(NAMES)}
    for k in range(30):
        now = 0.5 * k + 0.2
        told = {name: now - 0.17 * place for place, name in enumerate(NAMES)}  # when each last wrote
        said = {
            name: {
                "recent": visits(*(stop for stop in hops[name] if stop[0] <= told[name])),
                "tokens": {0: Sight((0, 0), max((h for t, h in hops[name] if t <= told[name]), default=1))},
            }
            for name in NAMES
        }
        made, _ = shown.step(look(now, **said), {})
        assert made.tokens[0].whole
        walk += made.tokens[0].hops
    assert walk == [(round(0.3 * hop, 3), hop % 3) for hop in range(1, len(walk) + 1)]
    assert len(walk) == int((0.5 * 29 + 0.2 - scene.LAG_S) / 0.3)


def test_the_last_frame_has_the_last_hops():
    """Nothing more comes, so the picture of the end shows tokens where the table has them."""
    shown, stops = Scene(ABOUT), visits((1.9, 4), (2.1, 5))
    said = {"recent": stops, "tokens": {0: Sight((0, 0), 5)}}
    first, _ = shown.step(look(2.2, ann=said), {})
    assert first.tokens[0].hops == ()
    ended = {"state": "ended", "cause": "hops", "stopped": "enough"}
    last, _ = shown.step(look(2.3, ann=said | ended, bob=ended, cay=ended), {})
    assert last.tokens[0].hops == ((1.9, 0), (2.1, 0))


def test_a_fast_token_is_sampled():
    stops = visits(*((0.01 * hop, hop) for hop in range(1, 40)))
    shown = Scene(ABOUT)
    first, _ = shown.step(look(2.0, ann={"recent": stops[:5], "tokens": {0: Sight((0, 0), 5)}}), {})
    assert first.tokens[0].whole
    second, _ = shown.step(look(2.5, ann={"recent": stops[-16:], "tokens": {0: Sight((0, 0), 39)}}), {})
    assert not second.tokens[0].whole
    assert len(second.tokens[0].hops) == film.HOPS_MAX
    assert (second.tokens[0].hop, second.tokens[0].agent) == (39, 0)


def test_seen_from_one_agent_a_token_comes_from_a_neighbour_and_goes_to_one():
    about = msgspec.structs.replace(ABOUT, seen_from="ann", here=(True, False, False))
    said = look(3.0, ann={"recent": visits((1.0, 4)), "tokens": {0: Sight((0, 0), 4)}})
    alone = Look(glance.overview({"ann": said.statuses["ann"]}, {"ann": Path("ann")}, BEGAN_S + 3), said.statuses)
    made, _ = Scene(about).step(alone, {})
    assert made.tokens[0].hops == ((0.75, 1), (1.0, 0), (1.25, 2))


def test_events_are_told_once_in_words_and_a_return_is_seen():
    shown = Scene(ABOUT)
    start = status.Told("start", BEGAN_S + 0.5)
    reissue = status.Told("reissue", BEGAN_S + 3.0, 0, 1, 9, buried=("cay",))
    gone = process.Process(2**30, "", MINE.machine)
    _, first = shown.step(look(1.0, cay={"events": (start,)}), {})
    assert [(event.kind, event.t, event.text) for event in first] == [("start", 0.5, "cay started")]
    _, second = shown.step(look(2.0, cay={"events": (start,), "process": gone}), {})
    assert [event.kind for event in second] == ["down"]
    assert second[0].text.startswith("cay is down: its process is gone")
    _, third = shown.step(look(3.0, cay={"events": (start,), "process": gone}, ann={"events": (reissue,)}), {})
    assert [event.text for event in third] == ["ann reissued token 0 without cay"]
    again = status.Told("start", BEGAN_S + 3.5)
    _, fourth = shown.step(look(4.0, cay={"events": (start, again)}, ann={"events": (reissue,)}), {})
    assert [event.text for event in fourth] == ["cay started again"]
    _, fifth = shown.step(look(5.0, bob={"state": "leaving"}), {})
    _, sixth = shown.step(look(6.0, bob={"state": "left", "left": "all is out"}), {})
    assert [event.text for event in (*fifth, *sixth)] == ["bob leaves", "bob has left: all is out"]
    _, last = shown.step(look(7.0, bob={"state": "left"}, ann={"cause": "hops", "stopped": "enough"}), {})
    assert [(event.kind, event.text) for event in last] == [("end", "the run has ended: enough")]


def test_a_restart_between_two_looks_is_seen():
    shown = Scene(ABOUT)
    shown.step(look(1.0, there=OTHER), {})
    other = msgspec.structs.replace(OTHER, pid=2)
    _, events = shown.step(look(2.0, there=OTHER, cay={"process": other}), {})
    assert [(event.kind, event.t) for event in events] == [("down", 1.0)]


def test_what_may_quote_rows_is_not_in_a_frame():
    """PRIVATE of status.py: why an agent refused to start, and the likely cause of a divergence."""
    said = {
        "ann": {"state": "refused", "reason": "row 3 has 'SECRET'"},
        "bob": {"state": "stopped", "reason": "SECRET"},
        "cay": {"likely_cause": "SECRET", "cause": "diverged", "stopped": "it has diverged"},
    }
    shown = Scene(ABOUT)
    shown.step(look(0.5), {})
    made, events = shown.step(look(1.0, **said), {})
    assert made.notes[0] == "ann did not start; amble status ann says why"
    assert b"SECRET" not in msgspec.json.encode((made, events))


# --- folders --------------------------------------------------------------------------------------------------------


@pytest.fixture
def bundle(tmp_path):
    pytest.importorskip("cryptography")
    from amble.live.cluster.cluster import Cluster, configure, rows_of

    data = amble.load("diabetes")
    problem = amble.Problem.from_arrays(data.X, data.y, agents=4, ridge=0.01)
    config = configure(problem, amble.Relay(tokens=2), amble.networks.ring(4), {"hops": 9}, 0, {})
    return Cluster.create(tmp_path / "run", config, rows_of(problem, data.X, data.y)).folder


def write(folder, **fields):
    said = Status(name=folder.name, time_s=time.time(), state="up", process=MINE)
    status.write(folder, status.changed(said, **fields))


def test_a_sampler_films_a_bundle_and_reads_nothing_but_settings_and_status(bundle):
    for name in ("agent00", "agent02"):
        write(bundle / name, events=(status.Told("start", time.time() - 60),))
    with reads.below(bundle) as files:
        sampler = Sampler([bundle], "mine")
        sampler.look()
    about = sampler.film.about
    assert {file.name for file in files} == {"agent.toml", "status.json"}
    assert about.agents == ("agent00", "agent01", "agent02", "agent03")
    assert about.links == ((0, 1), (0, 3), (1, 2), (2, 3))
    assert (about.tokens, about.seen_from, about.unseen, about.can_leave) == (2, "", (), True)
    assert 59 < sampler.film.last.t < 70  # the run began when the first agent started
    assert states(sampler.film.last) == ["up", "unstarted", "up", "unstarted"]


def test_one_agents_film_says_whose_it_is_and_who_is_not_seen(bundle):
    write(bundle / "agent01", up=("agent00",), down=("agent02",))
    sampler = Sampler([bundle / "agent01"], "mine")
    sampler.look()
    about = sampler.film.about
    assert (about.seen_from, about.agents, about.unseen) == ("agent01", ("agent00", "agent01", "agent02"), ("agent03",))
    assert about.here == (False, True, False)
    assert states(sampler.film.last) == ["up", "up", "down"]


def test_an_agent_that_comes_later_is_added(bundle):
    write(bundle / "agent00")
    hidden = bundle / "agent03"
    aside = bundle.parent / "aside"
    hidden.rename(aside)
    sampler = Sampler([bundle], "mine")
    sampler.look()
    links = sampler.film.about.links
    aside.rename(hidden)
    write(hidden)
    sampler.look()
    about = sampler.film.about
    assert about.here == (True,) * 4
    assert about.links[: len(links)] == links
    (line,) = sampler.film.after(0)
    assert json.loads(line[1])["about"]["here"] == [True] * 4


def test_a_film_of_a_run_that_is_over_grows_no_more(bundle):
    for name in ("agent00", "agent01", "agent02", "agent03"):
        write(bundle / name, state="ended", cause="hops", stopped="enough")
    sampler = Sampler([bundle], "mine")
    over = sampler.look()
    for _ in range(3):
        over = sampler.look(was_over=over)
    assert over
    assert len(sampler.film.frames) == 1


def test_a_folder_that_goes_away_ends_nothing(bundle):
    sampler = Sampler([bundle], "mine")
    sampler.look()
    bundle.rename(bundle.parent / "elsewhere")
    sampler.look()
    assert states(sampler.film.last) == ["unstarted"] * 4


# --- a record -------------------------------------------------------------------------------------------------------


def visit(number, hop, t, giver, token=0, epoch=0, compute_s=0.1, waited_s=0.02):
    return Visited(number, token, epoch, 0, hop, giver, BEGAN_S + t, waited_s, compute_s, "", "")


def told(kind, t, words="", buried=()):
    return Told(kind, 0, 1, 0, 5, words, BEGAN_S + t, buried)


def recorded():
    """Token 0 walks ann, bob, cay, ...: a hop per second for 30 s. Bob is down until 16 s, and cay leaves at 25 s."""
    lines, events = {name: [] for name in NAMES}, {name: [told("start", 0.0)] for name in NAMES}
    before = "ann"
    for hop in range(1, 31):
        name = NAMES[(hop - 1) % 3]
        if name == "bob" and 10 < hop < 16:
            continue
        lines[name].append(visit(len(lines[name]) + 1, hop, float(hop), before))
        before = name
    events["bob"].append(told("start", 16.0))
    events["ann"].append(told("reissue", 14.0, buried=("bob",)))
    events["cay"] += [told("leaves", 25.0), told("left", 30.25, "all is out")]
    for name in ("ann", "bob"):
        events[name].append(told("stopped", 30.5, "enough"))
    return Record(
        "run", NAMES, 3, 1, {k: tuple(v) for k, v in lines.items()}, {k: tuple(v) for k, v in events.items()}, {}
    )


def test_an_agent_was_down_from_its_last_sign_of_life_until_its_next_start():
    record = recorded()
    life = [(change.time_s - BEGAN_S, change.state) for change in life_of(record, "bob", BEGAN_S + 30.5)]
    assert life == [(0.0, "joining"), (2.0, "up"), (8.0, "down"), (16.0, "up"), (30.5, "ended")]
    life = [(change.time_s - BEGAN_S, change.state) for change in life_of(record, "cay", BEGAN_S + 30.5)]
    assert life == [(0.0, "joining"), (3.0, "up"), (25.0, "leaving"), (30.25, "left")]


def test_one_that_was_killed_for_good_is_down_and_one_at_the_end_is_not():
    def ended(last, **more):
        visits = {"a": (visit(1, 1, 0.0, "b"), visit(2, 2, last, "b"))}
        record = Record("run", ("a", "b"), 2, 1, visits, {"a": (), "b": ()} | more, {})
        return [change.state for change in life_of(record, "a", BEGAN_S + 30.0)]

    assert ended(20.0) == ["joining", "up", "down"]
    assert ended(29.0) == ["joining", "up"]  # all were interrupted
    assert ended(29.0, b=(told("stopped", 29.5),)) == ["joining", "up", "down"]  # it did not hear of the end
    assert ended(29.0, a=(told("stopped", 29.5),)) == ["joining", "up", "ended"]


def test_the_record_of_one_agent_shows_its_neighbours_and_from_whom_tokens_came():
    """Where a token went is not in it, nor how the neighbours were."""
    record = recorded()
    alone = Record("run", NAMES, 3, 1, {"ann": record.visits["ann"]}, {"ann": record.events["ann"]}, {})
    made = past.film_of(alone, "mine", "Relay", [("ann", "cay")], here=("ann",))
    about, frames = made.about, [msgspec.json.decode(line, type=Frame) for _, line in made.frames]
    assert (about.seen_from, about.agents, about.links, about.unseen) == ("ann", ("ann", "cay"), ((0, 1),), ("bob",))
    assert {states(frame)[1] for frame in frames} == {"unknown"}
    token = next(frame.tokens[0] for frame in frames if frame.t > 6.7)  # its visit ends at 7 s, from cay
    assert (token.agent, token.to, token.here) == (1, 0, False)
    token = next(frame.tokens[0] for frame in frames if frame.t > 7.1)
    assert (token.agent, token.to, token.here, token.hop) == (0, NOBODY, False, 7)


def test_the_film_of_a_record_has_its_states_visits_tokens_and_events():
    made = past.film_of(recorded(), "mine", "Relay", here=("ann",))
    shown = json.loads(made.whole())
    about, frames = shown["about"], shown["frames"]
    assert (about["live"], about["agents"], about["here"]) == (False, list(NAMES), [True, False, False])
    assert about["links"] == [[0, 1], [0, 2], [1, 2]]  # those that the token took
    assert len(frames) == past.FRAMES

    def at(t):
        return next(each for each in reversed(frames) if each["t"] <= t)

    def states_at(t):
        return [STATES[agent[0]] for agent in at(t)["agents"]]

    assert states_at(0.5) == ["joining"] * 3
    assert states_at(7.9) == ["up"] * 3
    assert states_at(12.0) == ["up", "down", "up"]
    assert states_at(20.0) == ["up"] * 3
    assert states_at(27.0) == ["up", "up", "leaving"]
    assert states_at(30.5) == ["ended", "ended", "left"]
    assert frames[-1]["state"] == "ended"
    assert [agent[1] for agent in at(6.05)["agents"]] == [2, 2, 2]
    assert at(9.05)["agents"][2][2:] == [pytest.approx(2 / 5, rel=1e-3), None, 0.1, 0.02]  # over 5 s
    assert at(15.9)["agents"][1][2:] == [None] * 4  # it is down
    assert at(16.5)["agents"][1][2:] == [0.0, None, None, None]  # no visit lately
    assert at(12.0)["agents"][1][2] is None  # no rate of one that is down
    token = at(6.05)["tokens"][0]
    assert token[:5] == [2, 0, True, 0, 6]
    walk = [tuple(stop) for each in frames for stop in each["tokens"][0][6]]
    assert walk == [(v.time_s - BEGAN_S, NAMES.index(name)) for name, v in sorted(
        ((n, v) for n, vs in recorded().visits.items() for v in vs), key=lambda each: each[1].time_s)]  # fmt: skip
    assert all(each["tokens"][0][7] for each in frames)
    kinds = [(event["kind"], event["t"]) for event in shown["events"]]
    assert kinds == [("start", 0.0)] * 3 + [
        ("down", 8.0), ("reissue", 14.0), ("start", 16.0), ("leave", 25.0), ("left", 30.25), ("end", 30.5)
    ]  # fmt: skip
    assert [event["text"] for event in shown["events"]][-6:] == [
        "bob is down", "ann reissued token 0 without bob", "bob started again", "cay leaves", "cay has left",
        "the run has ended: enough",
    ]  # fmt: skip


def test_a_token_of_an_old_epoch_is_not_shown_any_more():
    lines = {
        "ann": (visit(1, 1, 1.0, "bob"), visit(2, 2, 4.0, "bob", epoch=0)),
        "bob": (visit(1, 2, 3.0, "ann", epoch=1), visit(2, 3, 5.0, "ann", epoch=1)),
    }
    made = past.film_of(Record("run", ("ann", "bob"), 2, 1, lines, {"ann": (), "bob": ()}, {}), "mine", "")
    walk = [tuple(stop) for each in json.loads(made.whole())["frames"] for stop in each["tokens"][0][6]]
    assert walk == [(0.0, 0), (2.0, 1), (4.0, 1)]


def test_a_record_of_one_visit_is_a_film_too():
    made = past.film_of(Record("run", ("a",), 1, 2, {"a": (visit(1, 1, 0.0, "a"),)}, {"a": ()}, {}), "mine", "")
    last = json.loads(made.whole())["frames"][-1]
    assert (last["state"], last["agents"][0][1], last["tokens"][1][0]) == ("running", 1, NOBODY)


def test_agents_whose_record_is_missing_are_named_and_not_shown():
    whole = recorded()
    there = ("ann", "bob")
    part = whole._replace(
        visits={name: whole.visits[name] for name in there}, events={name: whole.events[name] for name in there}
    )
    about = json.loads(past.film_of(part, "mine", "", [("bob", "ann"), ("bob", "cay")]).whole())["about"]
    assert (about["agents"], about["unseen"], about["links"]) == (["ann", "bob"], ["cay"], [[0, 1]])
    assert about["seen_from"] == ""


def test_a_film_holds_no_digest_and_nothing_else_of_a_token():
    """A record has digests of tokens; a film has times, places and counts only."""
    record = recorded()
    marked = {
        name: tuple(v._replace(before="SECRET", after="SECRET") for v in each) for name, each in record.visits.items()
    }
    assert b"SECRET" not in past.film_of(record._replace(visits=marked), "mine", "").whole()
