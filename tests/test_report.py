"""Figures, pictures, tables and the progress bar: what they show is what the run holds."""

import contextlib
import io
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from rich.console import Console

import amble
from amble import progress
from amble.report.curves import section_curves
from amble.report.figures import section_figure
from amble.report.looks import looks
from amble.report.sections import group
from amble.results import run as results
from amble.simulation import comparison, tuning

PROBLEM = amble.split(amble.load("diabetes"), agents=6)


@pytest.fixture
def drawn(monkeypatch):
    """Every figure, caught before it is written."""
    caught = []
    monkeypatch.setattr(comparison, "save", lambda figure, path: caught.append(figure) or path)
    monkeypatch.setattr(results, "save", lambda figure, path: caught.append(figure) or path)
    return caught


def lines_of(axes):
    return {line.get_label(): line.get_xydata() for line in axes.get_lines()}


def assert_drawn(line, run, cost, column):
    """From the first cost to the last, and at each cost the value of the last record at or before it."""
    paid, values = run.history[cost], run.history[column]
    assert (line[0, 0], line[-1, 0]) == pytest.approx((paid[paid > 0][0], paid[-1]))
    assert np.array_equal(line[:, 1], values[np.searchsorted(paid, line[:, 0], side="right") - 1])


def test_the_figure_draws_both_readings_against_both_costs(drawn):
    runs = amble.compare([amble.APIBCD(tokens=3), amble.WPG(alpha=0.2)], PROBLEM, hops=300)
    runs.plot("x.png")
    for axes, cost in zip(drawn[0].axes, ("time_s", "comm_units"), strict=True):
        lines = lines_of(axes)
        for label, column in ((runs[0].label, "metric"), (f"{runs[0].label}, mean of x", "metric_local")):
            assert_drawn(lines[label], runs[0], cost, column)
        assert f"{runs[1].label}, mean of x" not in lines  # one token: the two readings are one


SLOW = amble.Timing(slowdown={3: 20.0, 5: 0.5})


def test_a_value_holds_until_the_next_record(drawn):
    """A record's model is the model until the next one: steps, not slopes, in the figure and in the paper's."""
    runs = amble.compare([amble.APIBCD(tokens=3), amble.DGD()], PROBLEM, hops=300)
    runs.plot("x.png")
    drawn.append(section_figure(group(runs)[0]))
    for figure in drawn:
        for axes in figure.axes:
            curves = [line for line in axes.get_lines() if line.get_label() != "centralised optimum"]
            assert len(curves) == 3
            assert {line.get_drawstyle() for line in curves} == {"steps-post"}


def test_the_time_axis_begins_at_the_first_message(drawn):
    """Before it every token has only visited the agent where it starts, a microsecond into the run."""
    runs = amble.compare([amble.IBCD(), amble.APIBCD(tokens=3)], PROBLEM, hops=300, timing=SLOW)
    runs.plot("x.png")
    drawn.append(section_figure(group(runs)[0]))
    sent_s = min(run.history["time_s"][run.history["comm_units"] > 0][0] for run in runs)
    assert sent_s > 3 * runs[0].history["time_s"][1]
    for figure in drawn:
        time, units = figure.axes
        assert sent_s / 1.5 < time.get_xlim()[0] < sent_s
        assert 0.5 < units.get_xlim()[0] < 1
    shown = section_curves(group(runs)[0], looks(group(runs))[0])
    assert [cost["first"] for cost in shown["costs"]] == [sent_s, 1, 8 * PROBLEM.dimension]
    entering = [run.history["metric"][run.history["time_s"] <= sent_s][-1] for run in runs]
    assert drawn[0].axes[0].get_ylim()[1] >= max(entering)


def test_a_run_without_messages_is_drawn_from_its_first_second(drawn):
    alone = amble.Problem.from_arrays(np.eye(4), np.arange(4.0), agents=1)
    runs = amble.compare([amble.IBCD()], alone, amble.networks.ring(1), hops=20)
    runs.plot("x.png")
    line, paid = drawn[0].axes[0].get_lines()[0].get_xdata(), runs[0].history["time_s"]
    assert (line[0], line[-1]) == pytest.approx((paid[1], paid[-1]))


def test_stragglers_are_named_in_the_title(drawn):
    slow = amble.compare([amble.APIBCD(tokens=3), amble.DGD()], PROBLEM, hops=60, timing=SLOW)
    slow.plot("x.png")
    drawn.append(section_figure(group(slow)[0]))
    for run in slow:
        run.plot_timeline("x.png")
    assert len(drawn) == 4
    for figure in drawn:
        assert figure.axes[0].get_title("left").endswith("stragglers: agent 3 (20x), agent 5 (0.5x)")
    amble.compare([amble.IBCD()], PROBLEM, hops=60).plot("x.png")
    assert "straggler" not in drawn[-1].axes[0].get_title("left")
    many = amble.Timing(slowdown={i: 2.0 + i for i in range(6)})
    amble.compare([amble.IBCD()], PROBLEM, hops=60, timing=many).plot("x.png")
    assert drawn[-1].axes[0].get_title("left").endswith("6 stragglers, 2x to 7x")


def test_without_test_rows_the_figure_shows_the_distance(drawn):
    problem = amble.Problem.from_arrays(
        *np.split(np.random.default_rng(0).normal(size=(40, 4)), [3], axis=1)[:1], np.arange(40.0), agents=4
    )
    runs = amble.compare([amble.WPG(alpha=0.1)], problem, hops=100)
    runs.plot("x.png")
    assert "distance" in drawn[0].axes[0].get_ylabel()
    line = lines_of(drawn[0].axes[0])[runs[0].label]
    assert_drawn(line, runs[0], "time_s", "distance")
    text = io.StringIO()
    Console(file=text, width=80).print(runs.table())
    assert "nan" not in text.getvalue()


def test_a_table_fits_80_columns_and_breaks_no_name_setting_or_number():
    """Also with many hops, long settings, and a run that is lost."""
    chosen = [
        amble.GAPIBCD(tau=0.123456, tokens=5, token_rule="published"),
        amble.FedAvg(alpha=0.000123456, local_steps=5),
        amble.PWADMM(beta=1.23457e-05, tokens=5),
        amble.SyncWalks(tau=0.123456),
        amble.WPG(alpha=1e4),
    ]
    with pytest.warns(UserWarning, match="diverged"):
        runs = amble.compare(chosen, PROBLEM, hops=120_000)
    text = io.StringIO()
    Console(file=text, width=80).print(runs.table())
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    pieces = set(text.getvalue().replace(",", " ").split())
    for run in runs:
        assert run.method.label in pieces
        assert set(run.settings_text.replace(",", " ").split()) <= pieces
        assert f"{run.history['distance'][-1]:.1e}" in pieces
        (line,) = [line for line in lines if line.split()[:1] == [run.method.label]]
        assert f"{int(100 * run.history['idle'][-1])} %" in line
    assert "diverged" in pieces
    assert "120k" in pieces


def test_a_diverged_run_is_drawn_as_far_as_it_can_be_and_named(drawn):
    with pytest.warns(UserWarning, match="diverged"):
        runs = amble.compare([amble.WPG(alpha=1e4), amble.IBCD()], PROBLEM, hops=2000)
    runs.plot("x.png")
    lines = lines_of(drawn[0].axes[0])
    assert f"{runs[0].label} (diverged)" in lines
    assert not any(np.isinf(points).any() for points in lines.values())  # nan is a gap
    assert np.isfinite(drawn[0].axes[0].get_ylim()).all()


def test_the_time_line_has_a_bar_for_every_visit_in_its_tokens_colour(drawn):
    run = amble.simulate(amble.APIBCD(tokens=2), PROBLEM, hops=30)
    run.plot_timeline("x.png", hops=30)
    axes = drawn[0].axes[0]
    active = np.unique(run.schedule.agent)
    for m, bars in enumerate(axes.collections):
        mine = run.schedule.token == m
        ends = [segment[1] for segment in bars.get_segments()]
        assert np.allclose([x for x, _ in ends], run.schedule.time_s[mine] * 1e6)
        assert [active[int(y)] for _, y in ends] == run.schedule.agent[mine].tolist()


def test_a_bar_with_speed_and_time_left_appears_after_two_seconds_and_not_before(monkeypatch):
    clock, screen = [0.0], io.StringIO()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("rich.console.Console", lambda **_: Console(file=screen, force_terminal=True, width=120))
    with progress.Meter("I-BCD", total=1000) as meter:
        clock[0] = 1.9
        meter.update(100)
        assert meter.bar is None
        clock[0] = 4.0
        meter.update(200)
        assert meter.bar is not None
        meter.bar.refresh()
    assert "50 hops/s" in screen.getvalue()
    assert "200/1000" in screen.getvalue()


def test_without_a_terminal_a_job_that_asks_for_lines_says_each_tenth_once(capsys):
    for lines in (True, False):
        with progress.Meter("runs", total=20, lines=lines) as meter:
            for done in range(0, 21):
                meter.update(done)
    assert capsys.readouterr().err.splitlines() == [f"runs: {done} of 20" for done in range(2, 21, 2)]


def test_a_bar_counts_the_pilot_runs_of_tuning():
    """On a real terminal, with bars from the first moment on."""
    pty = pytest.importorskip("pty")
    script = (
        "import amble; from amble import progress; progress.QUIET_S = 0.0\n"
        "problem = amble.split(amble.load('diabetes'), agents=4)\n"
        "amble.simulate(amble.WPG(), problem, hops=40, tune=True, optimum=False)\n"
    )
    reading, writing = pty.openpty()
    terminal = {**os.environ, "TERM": "xterm", "COLUMNS": "160"}
    process = subprocess.Popen([sys.executable, "-c", script], stderr=writing, env=terminal)
    os.close(writing)
    screen = b""
    with contextlib.suppress(OSError):  # Linux says so at the end of a terminal
        while piece := os.read(reading, 4096):
            screen += piece
    os.close(reading)
    assert process.wait(timeout=600) == 0
    counts = [tuple(map(int, each)) for each in re.findall(r"tuning WPG.*?(\d+)/(\d+)", screen.decode())]
    assert counts[0][1] == tuning.POWERS[2] + len(tuning.FINE) + 1  # and one long one
    assert len({done for done, _ in counts}) > 1
    assert "pilot runs/s" in screen.decode()


def test_a_table_says_how_many_agents_were_not_visited():
    runs = amble.compare([amble.WPG(), amble.DGD()], PROBLEM, "ring", hops=4, walk="cycle")
    assert len(runs[0].unvisited) == 2
    assert {*runs[0].unvisited} | {*runs[0].schedule.agent.tolist()} == {*range(6)}
    assert runs[1].unvisited == ()
    assert "WPG: 2 of 6 agents were not visited; more hops reach them." in str(runs)
    assert "DGD:" not in str(runs)
    assert "4 hops (2 of 6 agents not visited)" in repr(runs[0])
    whole = amble.compare([amble.WPG()], PROBLEM, "ring", hops=6, walk="cycle")
    assert whole[0].unvisited == ()
    assert "not visited" not in str(whole) + repr(whole[0])


def test_compare_passes_warnings_on_and_refuses_an_empty_list():
    with pytest.warns(UserWarning, match="9 tokens for 6 agents"):
        amble.compare([amble.APIBCD(tokens=9)], PROBLEM, hops=20)
    with pytest.raises(amble.AmbleError, match="give a list of them"):
        amble.compare([], PROBLEM)


def test_what_is_printed_of_an_object_is_one_line():
    run = amble.simulate(amble.IBCD(), PROBLEM, hops=20)
    for thing in (run, PROBLEM, run.network, amble.Comparison((run,))):
        assert len(repr(thing)) < 200
        assert "\n" not in repr(thing)


def test_a_loss_without_an_optimum_still_gives_a_run():
    """Separable classes and no ridge: the methods run, and there is no distance to what does not exist."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    problem = amble.Problem.from_arrays(X, X[:, 0] > 0, task="classification", agents=4, ridge=0.0)
    with pytest.warns(UserWarning, match="separable"):
        run = amble.simulate(amble.WPG(), problem, hops=50)
    assert not {"suboptimality", "distance", "distance_local"} & set(run.history)
    assert "separable" in run.problem["optimum"]["why"]
    assert np.isfinite(run.history["objective"]).all()


def test_another_problem_of_your_own_is_not_resumed():
    class Parabola:
        def __init__(self, at):
            self.at = at

        def value(self, w):
            return 0.5 * np.sum((w - self.at) ** 2)

        def grad(self, w):
            return w - self.at

    first, second = (amble.Problem.from_objectives([Parabola(at), Parabola(at + 1)], 2) for at in (0.0, 5.0))
    run = amble.simulate(amble.WPG(alpha=0.5), first, hops=40)
    with pytest.raises(amble.AmbleError, match="other data or settings"):
        amble.resume(run, second, hops=80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert amble.resume(run, first, hops=80).schedule.hops == 80
