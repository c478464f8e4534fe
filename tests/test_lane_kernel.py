"""The kernel that takes lanes through their hops on a GPU, interpreted on a CPU, equals the loop; it can be built."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amble
from amble import methods
from amble.arrays import named_leaves
from amble.compiling.padded import Refused, evaluate, largest, padded
from amble.engines import act, lane_groups, lane_kernel, lane_program, row_kernel
from amble.engines.lane_program import BY_AGENT, INTERPRETED, ONE_KERNEL, TOGETHER
from amble.engines.lanes import Lanes
from amble.networks.meetings import DELIVER, VISIT
from amble.schedule.many import plan_many
from amble.simulation.many import trip
from amble.simulation.running import begin

AGENTS, HOPS, LANES = 5, 40, 3
SQUARES = [amble.split(amble.load("diabetes"), agents=AGENTS, seed=seed) for seed in (0, 1)]
LOGISTIC = amble.split(amble.load("breast_cancer"), agents=AGENTS)
WALKS = [label for label, kind in methods.METHODS.items() if methods.walks(kind)]


def lanes_of(label, problem, settings=None):
    """Three lanes with steps or penalties of their own; the last two share a schedule."""
    kind = methods.METHODS[label]
    several = {"tokens": 3} if label not in ("I-BCD", "WADMM", "AD-PSGD") else {}
    method = methods.from_settings(label, settings or several)
    name = methods.tunable(method)
    network = amble.networks.random(AGENTS, 0.6)
    runs = [begin(method, problem, network, seed=seed) for seed in (0, 1)]
    method = runs[0].method
    own = [replace(method, **{name: getattr(method, name) * by}) for by in (1.0, 0.3, 2.0)] if name else [method] * 3
    assert kind is type(method)
    schedules = plan_many([trip(run) for run in runs], hops=HOPS)
    names = ("agent", "token", *(("role",) if runs[0].meets else ()))
    columns = [np.stack([getattr(schedule, name) for schedule in schedules]) for name in names]
    return own, network, columns, runs[0].meets


def played(way, own, problems, network, columns, meets):
    """The lanes after their hops, with two pauses; the second lane ends early."""
    machine = Lanes(own, problems, [network] * len(own), None, meets)
    machine.way = way
    at = machine.start(np.array([HOPS, 23, HOPS]))
    never = np.zeros(3, bool)
    at, models, local = machine.advance(
        at, columns, np.array([0, 1, 1]), 0, np.array([0, 7, 20, HOPS]), never, never, 0.0
    )
    return machine, at, models, local


@pytest.mark.parametrize("way", [INTERPRETED, BY_AGENT])
@pytest.mark.parametrize("label", [*WALKS, "Relay, scalar form"])
def test_the_other_ways_do_what_the_loop_does(label, way):
    label, scalar, _ = label.partition(", scalar form")
    own, network, columns, meets = lanes_of(label, SQUARES[0], {"tokens": 3, "form": "scalar"} if scalar else None)
    both = [played(each, own, [SQUARES[0]] * LANES, network, columns, meets) for each in (TOGETHER, way)]
    (loop, *expected), (kernel, *found) = both
    for one, other in zip(expected[1:], found[1:], strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-12, atol=1e-13 * abs(one).max())
    for one, other in zip(loop.states(expected[0]), kernel.states(found[0]), strict=True):
        for a, b in zip(leaves(one), leaves(other), strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-12 * max(1.0, np.abs(a).max(initial=0.0)))


def leaves(state):
    return jax.tree.leaves(state)


def built(machine, columns):
    """The text of the program that a GPU would get."""
    count = 1
    points = lane_program.Points(
        np.zeros(lane_program.RECORDS + 1, np.int64), np.zeros(lane_program.RECORDS, bool),
        np.zeros(lane_program.RECORDS, bool), np.int64(count), np.float64(0.0),
    )  # fmt: skip
    with jax.enable_x64(True):
        at = machine.start(np.full(machine.count, HOPS))
        pieces = tuple(machine._column(column) for column in columns)
        which = machine._pad(np.zeros(machine.count, np.int32))
        program = lane_program.piece().trace(
            machine.shape, ONE_KERNEL, machine.lanes, machine.shared, at, pieces, which, np.int64(0), points
        )
        return program.lower(lowering_platforms=("cuda",)).as_text()


IN_KERNEL = {"API-BCD", "gAPI-BCD", "I-BCD", "WPG", "WADMM", "PW-ADMM", "Relay"}


@pytest.mark.parametrize("label", sorted(IN_KERNEL))
def test_the_program_for_a_gpu_has_one_kernel(label):
    """Least squares. The full form of Relay solves systems, and stays in the loop."""
    settings = {"tokens": 3, "form": "scalar"} if label == "Relay" else None
    own, network, columns, meets = lanes_of(label, SQUARES[0], settings)
    text = built(Lanes(own, [SQUARES[0]] * LANES, [network] * LANES, None, meets), columns)
    assert "triton" in text


def test_a_visit_that_searches_or_solves_stays_in_the_loop():
    for label, problem in (("API-BCD", LOGISTIC), ("Relay", SQUARES[0])):
        own, network, columns, meets = lanes_of(label, problem)
        text = built(Lanes(own, [problem] * LANES, [network] * LANES, None, meets), columns)
        assert "triton" not in text


@pytest.mark.parametrize("way", [INTERPRETED, BY_AGENT])
def test_many_lanes_of_which_one_diverges_and_one_has_ended(way, monkeypatch):
    """Several programs of several lanes each, from the middle of the schedules on."""
    played_by_kernel = []
    play = lane_kernel.play
    monkeypatch.setattr(lane_kernel, "play", lambda *given: played_by_kernel.append(given) or play(*given))
    network, count, offset = amble.networks.random(AGENTS, 0.6), 20, 12
    own = [amble.WPG(alpha=alpha, tokens=2) for alpha in (*np.linspace(0.05, 0.5, count - 1), 1e6)]
    runs = [begin(own[0], SQUARES[0], network, seed=seed) for seed in range(5)]
    names = ("agent", "token", *(("role",) if runs[0].meets else ()))
    schedules = plan_many([trip(run) for run in runs], hops=offset + HOPS)
    columns = [np.stack([getattr(each, name)[offset:] for each in schedules]) for name in names]
    ends, never, found = np.full(count, offset + HOPS), np.zeros(2, bool), []
    ends[3] = offset
    for each in (TOGETHER, way):
        machine = Lanes(own, [SQUARES[0]] * count, [network] * count, None, runs[0].meets)
        machine.way = each
        pauses = np.array([offset, offset + 7, offset + HOPS])
        at = machine.start(ends)
        at, models, _ = machine.advance(at, columns, np.arange(count) % 5, offset, pauses, never, never, 0.0)
        found.append((models[:-1], np.asarray(at.state.lost)[:count]))
    assert bool(played_by_kernel) == (way == INTERPRETED)
    np.testing.assert_array_equal(found[1][1], found[0][1])
    assert found[0][1][-1] >= offset
    assert not found[0][0][3].any()
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("way", [INTERPRETED, BY_AGENT])
def test_lanes_on_problems_of_their_own(way):
    own, network, columns, meets = lanes_of("WPG", SQUARES[0])
    problems = [SQUARES[0], SQUARES[1], SQUARES[0]]
    loop, other = (played(each, own, problems, network, columns, meets) for each in (TOGETHER, way))
    np.testing.assert_allclose(other[2], loop[2], rtol=1e-12, atol=1e-13 * abs(loop[2]).max())


@pytest.mark.parametrize("count", [1, 7, 64, 1000])
def test_every_lane_is_once_in_a_block_of_its_agent_and_problem(count):
    rng = np.random.default_rng(count)
    agent, problem = rng.integers(0, 6, count).astype(np.int32), rng.integers(0, 3, count).astype(np.int32)
    for which, problems in ((None, 1), (problem, 3)):
        for visits in (None, rng.random(count) < 0.6, np.zeros(count, bool)):
            lane, loss = lane_groups.visiting(agent, which, 6, problems, visits)
            lane, loss = np.asarray(lane), [np.asarray(each) for each in loss]
            block, _ = np.nonzero(lane < count)
            lanes = lane[lane < count]
            assert sorted(lanes) == list(np.arange(count) if visits is None else np.flatnonzero(visits))
            np.testing.assert_array_equal(loss[-1][block], agent[lanes])
            if which is not None:
                np.testing.assert_array_equal(loss[0][block], problem[lanes])


@pytest.mark.parametrize("count", [1, 7, 64, 1000])
def test_lanes_that_need_no_loss_are_once_in_a_block(count):
    for these in (np.random.default_rng(count).random(count) < 0.3, np.zeros(count, bool), np.ones(count, bool)):
        lane, loss = lane_groups.doing(these)
        lane = np.asarray(lane)
        assert loss is None
        assert sorted(lane[lane < count]) == list(np.flatnonzero(these))


def test_only_what_a_role_changes_is_written():
    """A visit changes neither an account nor what the token has taken, and a delivery no model."""
    own, _, _, _ = lanes_of("Relay", SQUARES[0], {"tokens": 3, "form": "scalar"})
    rule = methods.rules(own[0], np.zeros(SQUARES[0].dimension), None, True)
    f, start = SQUARES[0].objective(0), np.zeros(SQUARES[0].dimension)
    rows = f, rule.agent(f, start), rule.slot(start), rule.token(start, AGENTS, 0)
    with jax.enable_x64(True):
        changed = {
            role: lane_groups.changes(lambda *each, role=role: act(rule, role, *each), rows, ())
            for role in (VISIT, DELIVER)
        }
    names = [*named_leaves(rows[1], "agent"), *named_leaves(rows[3], "token")]
    kept = {role: {name for name, other in zip(names, changed[role], strict=True) if not other} for role in changed}
    assert kept[VISIT] == {"agent.account.total", "agent.account.weight", "token.taken.total", "token.taken.weight"}
    assert kept[DELIVER] == set(names) - {
        "agent.account.total", "agent.account.weight", "token.taken.total", "token.taken.weight"
    }  # fmt: skip


def test_what_is_in_the_padding_is_never_read():
    """Sums, products and extremes of padded arrays whose padding is not finite."""

    def function(a, b, v):
        rows = a @ b
        return rows * v, rows.max() + v.min(), (a * b).sum(axis=1), a[2] + b[:3].sum(), jnp.where(v > 0, v, -1.0)

    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=5)
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
        assert largest(jaxpr) == 8 * 4
        wide = [
            np.pad(each, [(0, to - at) for at, to in zip(each.shape, padded(each.shape), strict=True)],
                   constant_values=np.nan)
            for each in arguments
        ]  # fmt: skip
        for found, expected in zip(evaluate(jaxpr, wide), function(*arguments), strict=True):
            inside = np.asarray(found)[tuple(slice(0, side) for side in np.shape(expected))]
            np.testing.assert_allclose(inside, expected, rtol=1e-14)


def by_number(a):
    return jax.lax.select_n(a.astype(np.int32), a, 2 * a)


@pytest.mark.parametrize(
    "function", [np.linalg.det, lambda a: a @ a, lambda a: a.T @ a[0], lambda a: a[1:3], by_number]
)
def test_what_is_not_written_for_padded_arrays_is_refused(function):
    named = jnp.linalg.det if function is np.linalg.det else function
    with pytest.raises(Refused):
        largest(jax.make_jaxpr(named)(np.eye(4)).jaxpr)


def test_rows_are_written_to_their_places_and_those_beyond_are_dropped():
    rng = np.random.default_rng(0)
    array, rows = rng.normal(size=(6, 4, 5, 8)), rng.normal(size=(3, 2, 5, 8))
    lane, agent = np.array([[0, 6], [2, 3], [5, 6]]), rng.integers(0, 4, (3, 2))
    expected = array.copy()
    for b, r in zip(*np.nonzero(lane < 6), strict=True):
        expected[lane[b, r], agent[b, r]] = rows[b, r]
    with jax.enable_x64(True):
        written = row_kernel.put(jnp.asarray(array), (lane, agent), jnp.asarray(rows), interpreted=True)
    np.testing.assert_array_equal(written, expected)


def test_lanes_at_one_agent_with_a_large_loss_read_it_together_on_a_gpu():
    """70 unknowns are too many for one kernel. Rows are written by a kernel, and nothing else is."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 70))
    problem = amble.Problem.from_arrays(X, X[:, 0] + rng.normal(size=400), agents=AGENTS, intercept=False)
    own, network, columns, meets = lanes_of("API-BCD", problem)
    machine = Lanes(own, [problem] * LANES, [network] * LANES, None, meets)
    text = built(machine, columns)
    assert "triton" in text
    assert "sort" in text
