"""A live run as a Run: the models in it are those that the agents had."""

from typing import get_args

import numpy as np
import pytest

from amble.live.core.message import Cause
from amble.live.records.export import Curves, last_state, stopped
from amble.live.records.replay import Replay
from amble.results.run import STOPPED
from linked_cores import NAMES, Link


def exported(link):
    record = link.record()
    curves = Curves(record, np.zeros(1))
    replayed = Replay(record, link.visits, {name: 1.0 + k for k, name in enumerate(NAMES)}, curves)
    assert replayed.run().whole
    return record, replayed, curves


@pytest.mark.parametrize("tokens", [1, 2])
def test_curves_are_what_the_agents_had_at_the_records(tokens):
    link = Link(tokens=tokens)
    link.walk(40)
    record, _, curves = exported(link)
    lines = sorted((line.time_s, name, line.number) for name, lines in record.visits.items() for line in lines)
    assert curves.recorded[-1] == len(lines) > 40
    for at, hop in enumerate(curves.recorded):
        newest = {name: link.holders[name, number] for _, name, number in lines[:hop]}
        x = [newest[name].agent.x if name in newest else np.zeros(1) for name in NAMES]
        np.testing.assert_allclose(curves.local[at], np.mean(x, axis=0), rtol=1e-14)
        z = link.holders[lines[hop - 1][1:]].z if hop else np.zeros(1)
        np.testing.assert_array_equal(curves.consensus[at], z)
    assert not np.array_equal(curves.local, curves.consensus)


@pytest.mark.parametrize("tokens", [1, 2])
@pytest.mark.parametrize("exact", [True, False])
def test_the_last_state_is_that_of_the_agents_journals(tokens, exact):
    link = Link(tokens=tokens, exact=exact)
    link.walk(12)
    _, replayed, _ = exported(link)
    state = last_state(replayed)
    assert state.agents.x.tolist() == [link.disks[name]["holder"].agent.x.tolist() for name in NAMES]
    assert (state.x_sum != 0).all()


def test_an_agent_that_made_no_visit_has_the_initial_model():
    link = Link()
    link.walk(1)
    assert not link.lines["c"]
    _, replayed, curves = exported(link)
    assert last_state(replayed).agents.x.tolist()[2] == [0.0]
    assert curves.local[-1] == pytest.approx(2 / 3)  # a and b have visited once each, and their x is how often


@pytest.mark.parametrize("cause", get_args(Cause))
def test_a_run_ended_by_a_cause_that_simulated_runs_know(cause):
    link = Link()
    statuses = {"a": {"cause": ""}, "b": {"cause": cause}, "c": {}}
    assert stopped(link.record()._replace(status=statuses)) in STOPPED
    assert stopped(link.record()._replace(status={"a": {"cause": ""}})) == "interrupted"


def test_seconds_are_the_time_limit():
    assert stopped(Link().record()._replace(status={"a": {"cause": "seconds"}})) == "time_s"
