"""How many tokens walk, where a word says what to favour."""

import itertools

import numpy as np
import pytest

import amble
from amble import AmbleError, networks
from amble.methods.optional import FAVOURS
from amble.networks import meetings
from amble.networks.choosing import MESSAGES_MAX, NEARLY, costs, tokens_for
from amble.networks.cycles import closed_walk
from rival_samples import make_problem

NETWORKS = {
    "dense": networks.random(50, 0.7, seed=4),
    "sparse": networks.random(60, 0.12, seed=5),
    "grid": networks.grid(5, 10),
    "geometric": networks.geometric(40, seed=6),
    "star": networks.from_edges(12, [(0, i) for i in range(1, 12)], "star"),
}


@pytest.mark.parametrize("agents", [3, 8, 25, 50])
@pytest.mark.parametrize("word", FAVOURS)
def test_on_a_ring_laps_need_one_token(agents, word):
    """From one meeting to the next takes as long as one token takes for its lap, so more only send more."""
    ring = networks.ring(agents)
    assert tokens_for(word, ring, 0, once=False) == 1 or agents == 3  # a ring of three is complete
    assert tokens_for("auto", ring, 0, once=True) == 1 or agents < 25


@pytest.mark.parametrize("once", [True, False])
@pytest.mark.parametrize("name", NETWORKS)
def test_each_word_keeps_its_promise(name, once):
    """auto has the least product of all numbers of tokens that are tried; time is within its messages, and no number
    within them is faster; communication is within its own."""
    network = NETWORKS[name]
    tried = {cost.tokens: cost for cost in costs(network, 0, once)}
    one = tried[1]
    auto, time, communication = (tried[tokens_for(word, network, 0, once)] for word in FAVOURS)
    assert all(auto.hops * auto.messages <= cost.hops * cost.messages for cost in tried.values())
    assert time.messages <= MESSAGES_MAX * one.messages
    assert all(cost.hops >= time.hops for cost in tried.values() if cost.messages <= MESSAGES_MAX * one.messages)
    assert communication.messages <= NEARLY * min(cost.messages for cost in tried.values()) or not once
    assert once or communication.tokens == 1
    assert time.hops < one.hops  # none of these is a ring


@pytest.mark.parametrize("name", NETWORKS)
def test_costs_are_those_of_the_laps(name):
    """Hops and links counted along the laps themselves."""
    network = NETWORKS[name]
    order = closed_walk(network, np.random.default_rng([3, 2]))
    for lap_cost, first_cost in zip(costs(network, 3, False)[1:], costs(network, 3, True)[1:], strict=True):
        laps = meetings.laps(network, order, lap_cost.tokens)
        first = [crossed(lap.agent[: lap.role.index(meetings.DELIVER) + 1]) for lap in laps]
        whole = [crossed([*lap.agent, lap.agent[0]]) for lap in laps]
        assert (first_cost.hops, first_cost.messages) == (max(first), sum(first))
        assert (lap_cost.hops, lap_cost.messages) == (max(whole), sum(whole))


def crossed(agents):
    """The links that a walk along these agents crosses."""
    return sum(i != j for i, j in itertools.pairwise(agents))


def test_a_run_says_how_many_were_chosen(tmp_path):
    """The number is chosen before any work; the run, its label and its file have it."""
    problem, network = make_problem(20), networks.random(20, 0.7, seed=1)
    run = amble.simulate(amble.Relay(tokens="time"), problem, network, hops=100, progress=False)
    assert run.method == amble.Relay(tokens=tokens_for("time", network, 0, once=True), form="full")
    assert run.walk == "meeting"
    assert f"tokens={run.method.tokens}" in run.label
    kept = amble.load_run(run.save(tmp_path / "run"))
    assert kept.method == run.method
    assert amble.resume(kept, problem, hops=150, progress=False).schedule.hops == 150


def test_what_is_left_to_do_after_the_first_meeting_decides():
    """Least squares in the full form is done then; in the scalar form, and for other losses, laps repeat."""
    network = networks.random(20, 0.7, seed=1)
    full, scalar = (
        amble.simulate(amble.Relay("communication", form), make_problem(20), network, hops=5, progress=False).method
        for form in ("full", "scalar")
    )
    assert (full.tokens > 1, scalar.tokens) == (True, 1)


def test_tokens_that_do_not_meet_are_few():
    """On another walk they carry boards of M ledgers: two for time, else one."""
    network = networks.random(20, 0.7, seed=1)
    for word, tokens in (("time", 2), ("auto", 1), ("communication", 1)):
        run = amble.simulate(amble.Relay(word), make_problem(20), network, hops=5, walk="cycles", progress=False)
        assert run.method.tokens == tokens


def test_a_comparison_and_a_sweep_choose_for_each_run():
    problem = amble.split(amble.load("breast_cancer"), agents=12)
    runs = amble.compare([amble.Relay("time"), amble.Relay("communication")], problem, hops=30, progress=False)
    assert [run.method.tokens > 1 for run in runs] == [True, False]
    sweep = amble.sweep(amble.Relay("time"), problem, grid={"tokens": ["time", 1]}, hops=30, progress=False, workers=1)
    assert sorted(sweep.to_pandas()["tokens"].astype(str)) == ["1", "time"]


@pytest.mark.parametrize("wrong", ["fast", "Time", 0, 2.5, True, None])
def test_a_wrong_word_is_refused_at_once(wrong):
    with pytest.raises(AmbleError, match="a whole number, one or more, or one of auto, time or communication"):
        amble.Relay(tokens=wrong)


def test_other_methods_have_no_word():
    with pytest.raises(AmbleError, match=r"tokens='auto' was given; it must be a whole number, one or more\.$"):
        amble.WPG(tokens="auto")
