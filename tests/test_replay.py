"""Replay: every visit made again from the record and the data, whatever happened in between."""

import json

import numpy as np
import pytest

from amble.live.chaos.tally import Mean
from amble.live.core.visits import visits_for
from amble.live.records import record
from amble.live.records.replay import Replay
from linked_cores import NAMES, PATIENCE_S, Link


@pytest.fixture
def bereaved():
    """A run in which c died with the token: b reissued it without c."""
    link = Link(stall_s=1e6)
    link.walk(7)
    assert link.visited()[-1][0] == "b"
    for name in ("a", "b"):
        link.down(name, "c")
    link.asks.clear()
    link.wait(PATIENCE_S, "a", "b")
    (reissue,) = [report for _, report in link.said("reissue")]
    assert reissue.buried == ("c",)
    link.walk(6)
    return link


def replayed(link, gathered):
    return Replay(gathered, link.visits, {name: 1.0 + k for k, name in enumerate(NAMES)}).run()


def test_a_reissue_is_replayed_whatever_its_words_are(bereaved):
    """Who was counted out is a field: the sentence is for people, and may change."""
    gathered = bereaved.record()
    assert replayed(bereaved, gathered).whole
    events = {name: tuple(event._replace(words="without the one who died") for event in events)
              for name, events in gathered.events.items()}  # fmt: skip
    assert replayed(bereaved, gathered._replace(events=events)).whole
    forgot = {name: tuple(event._replace(buried=()) for event in events) for name, events in gathered.events.items()}
    assert not replayed(bereaved, gathered._replace(events=forgot)).whole


@pytest.mark.parametrize("weigh", ["scalar", "agents"])
def test_an_initial_model_is_replayed(weigh):
    """Every token begins with it, a reissued one too; and a replay that knows another one finds that they differ."""
    link = Link(method=Mean(1, weigh=weigh), start=np.array([-7.0]), stall_s=1e6)
    link.walk(1)
    assert link.holders["a", 1].z.tolist() == [-7.0]
    gathered = link.record()
    assert replayed(link, gathered).whole
    link.visits = visits_for(link.visits.method, 1, 3)
    assert not replayed(link, gathered).whole


def test_a_record_of_format_2_is_replayed(bereaved, tmp_path):
    """It has no field for who was counted out: its words are their names."""
    path = tmp_path / record.FILE
    record.save(bereaved.record(), path)
    with np.load(path) as held:
        arrays = dict(held)
    about = json.loads(str(arrays.pop("about"))) | {"format": 2}
    for events in about["events"].values():
        for event in events:
            del event["buried"]
    np.savez(path, about=np.array(json.dumps(about)), **arrays)
    assert record.load(path) == bereaved.record()
    assert replayed(bereaved, record.load(path)).whole
