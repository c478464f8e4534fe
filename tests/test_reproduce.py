"""amble reproduce: the captions' settings, verdicts that follow from the curves, kept and continued runs."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import amble
from amble.paper import plan
from amble.paper import runs as paper_runs
from amble.paper.verdicts import Side, cost_to_close, horizon, judge, paper_claims
from amble.report.claims import Verdict
from amble.report.text import cell_text

pytestmark = pytest.mark.long

FOLDER = Path(os.environ.get("AMBLE_DATA", Path(__file__).parents[2] / "shared" / "data"))
needs_cpusmall = pytest.mark.skipif(not (FOLDER / "cpusmall.bz2").is_file(), reason=f"no cpusmall.bz2 in {FOLDER}")


def made(metric, best, time_s=None, seed=0, local=None, stopped="hops"):
    """A run as far as verdicts read it: one hop a record, a unit and a millisecond each."""
    hops = np.arange(len(metric))
    history = {"metric": np.array(metric), "comm_units": hops, "time_s": hops * 1e-3 if time_s is None else time_s}
    history["metric_local"] = np.array(metric if local is None else local)
    task = "classification" if best > metric[0] else "regression"
    return SimpleNamespace(history=history, problem={"optimum_metric": best, "task": task}, seed=seed, stopped=stopped)


def test_cost_to_close_a_share_of_the_gap_for_good():
    falls = made([1.0, 0.6, 0.4, 0.8, 0.54, 0.5, 0.5], best=0.5)  # 0.4 is beyond the optimum, but it does not last
    assert cost_to_close(Side("a", [falls]), "comm_units", 0.5).value == 4
    assert cost_to_close(Side("a", [falls]), "comm_units", 0.9).value == 4
    assert cost_to_close(Side("a", [falls]), "comm_units", 0.99).value == 5
    rises = made([0.2, 0.6, 0.9], best=0.8)
    assert cost_to_close(Side("a", [rises]), "time_s", 0.5).value == pytest.approx(1e-3)
    assert cost_to_close(Side("a", [made([1.0, 0.9, np.nan], best=0.5)]), "comm_units", 0.5).value == np.inf


def test_the_median_seed_counts_and_one_that_never_arrives_is_infinite():
    quick, slow, never = (made(values, 0.0) for values in ([1, 0, 0], [1, 1, 0], [1, 1, 1]))
    assert cost_to_close(Side("a", [quick, slow, never]), "comm_units", 0.9).value == 2
    assert cost_to_close(Side("a", [quick, never, never]), "comm_units", 0.9).value == np.inf


@pytest.mark.parametrize(
    ("own", "other", "verdict"),
    [
        ([1, 0, 0, 0], [1, 1, 0, 0], "held"),
        ([1, 1, 0, 0], [1, 0, 0, 0], "did not hold"),
        ([1, 0.3, 0.3, 0.3], [1, 1, 1, 0], "held in part"),  # first half-way, never all the way
        ([1, 1, 1, 1], [1, 1, 1, 1], "undecided"),
        ([1, 1, 1, 1], [1, 1, 1, 0], "did not hold"),
        ([1, 0.6, 0.4], [1, 1, 1, 0], "held in part"),  # ahead, and it ended before it could be judged at 90 %
        ([1, 0.9], [1, 1, 1, 0], "undecided"),  # it ended before it could be judged at all
        ([1, 1, 1, 0], [1, 0.9], "undecided"),  # its baseline did
    ],
)
def test_a_verdict_follows_from_the_curves(own, other, verdict):
    claim = judge("A is faster.", "time_s", [(Side("A", [made(own, 0.0)]), [Side("B", [made(other, 0.0)])])])
    assert claim.verdict == Verdict(verdict)
    assert [row.name for row in claim.rows] == ["A", "B"]
    assert [row.claimed for row in claim.rows] == [True, False]
    assert len(claim.verdicts) == len(claim.columns) == len(claim.rows[0].cells) == 3


def test_what_was_not_reached_says_within_what():
    short, long = made([1, 0.4, 0.4], 0.0), made([1, 1, 1, 0, 0], 0.0)
    claim = judge("A is faster.", "time_s", [(Side("A", [short]), [Side("B", [long])])])
    assert claim.verdicts == (Verdict.HELD, Verdict.UNDECIDED, Verdict.UNDECIDED)
    assert [cell_text(cell, claim.measure) for cell in claim.rows[0].cells] == [
        "1 ms",
        "not within 2 ms",
        "not within 2 ms",
    ]


def test_a_run_that_met_the_budget_counts_up_to_it_and_what_comes_later_does_not_count():
    ended = made([1, 0.4, 0.4], 0.0, stopped="time_s")  # the next visit would have ended after 2.5 ms
    later = made([1, 1, 1, 0.4, 0], 0.0)
    assert cost_to_close(Side("A", [ended]), "time_s", 0.9, budget=2.5e-3) == (np.inf, 2.5e-3)
    assert cost_to_close(Side("B", [later]), "time_s", 0.5, budget=2.5e-3) == (np.inf, 2.5e-3)
    assert cost_to_close(Side("A", [made([1, 0.4, 0.9], 0.0)]), "time_s", 0.5, budget=1.5e-3).value == 1e-3
    lost = made([1, np.nan], 0.0, stopped="diverged")
    assert cost_to_close(Side("C", [lost]), "time_s", 0.5, budget=2.5e-3) == (np.inf, 2.5e-3)


def test_as_much_is_not_less():
    same = Side("A", [made([1, 0, 0], 0.0)]), Side("B", [made([1, 0, 0], 0.0)])
    assert judge("", "comm_units", [(same[0], [same[1]])]).verdict == "did not hold"


def test_a_run_that_begins_better_than_the_optimum_closes_nothing():
    worse = SimpleNamespace(
        history={"metric": np.array([0.9, 0.8]), "time_s": np.arange(2)},
        problem={"optimum_metric": 0.85, "task": "classification"},
        stopped="hops",
    )
    assert cost_to_close(Side("a", [worse]), "time_s", 0.5).value == np.inf


def test_comparable_means_at_most_twice():
    own, other = Side("A", [made([1, 1, 0, 0], 0.0)]), Side("B", [made([1, 0, 0, 0], 0.0)])
    short = Side("C", [made([1, 1], 0.0)])
    assert judge("", "comm_units", [(short, [other])]).verdict == "did not hold"
    assert judge("", "comm_units", [(short, [other])], at_most=2.0).verdict == "undecided"  # it may be there by 2 units
    assert judge("", "comm_units", [(own, [other])]).verdict == "did not hold"
    assert judge("", "comm_units", [(own, [other])], at_most=2.0).verdict == "held"


def test_both_readings_of_the_published_rule_are_judged():
    """Tokens' mean that stalls, mean of x that is first: the claim holds for one of the two readings only."""
    runs = {
        "I-BCD": made([1, 1, 0, 0], 0.0),
        "WPG": made([1, 1, 1, 0], 0.0),
        "API-BCD": made([1, 0.9, 0.9, 0.9], 0.0, local=[1, 0, 0, 0]),
        "Relay": made([1, 0, 0, 0], 0.0),
    }

    def find(label, reading=None, **_):
        return [runs[label]] if label in runs and reading is None else []

    claims = {claim.text: claim for claim in paper_claims(find, {}, tuned=False)}
    first = claims["API-BCD is the most efficient in running time."]
    assert first.verdict == "held in part"
    tokens, local = first.rows[:2]
    assert (tokens.name, local.name) == ("API-BCD (tokens' mean)", "API-BCD (mean of x)")
    assert {cell_text(cell, first.measure) for cell in tokens.cells} == {"not within 3 ms"}
    assert {cell_text(cell, first.measure) for cell in local.cells} == {"1 ms"}
    assert not any("gossip" in text for text in claims)  # the captions have no settings for it


def test_tuned_methods_are_judged_against_tuned_ones_each_by_the_reading_it_was_tuned_for():
    """The published rule at two settings: each is good in its own reading and poor in the other."""
    good, poor = [1, 0, 0, 0], [1, 0.9, 0.9, 0.9]
    tuned_for = {"": made(good, 0.0, local=poor), "_local": made(poor, 0.0, local=good)}

    def find(label, reading=None, token_rule=None, **_):
        differs = label == "gAPI-BCD" or token_rule == "published"
        return [tuned_for[reading] if differs else made([1, 1, 1, 0], 0.0)]

    claims = {claim.text: claim for claim in paper_claims(find, {}, tuned=True)}
    first = claims["API-BCD is the most efficient in running time."]
    assert first.verdict == "held"
    assert {cell.value for row in first.rows[:2] for cell in row.cells} == {1e-3}
    assert claims["The asynchronous API-BCD outperforms synchronous approaches in running time."].verdict == "held"


# data set, N, zeta, K, alpha, tau_IS, tau_API-BCD, as the captions of figures 3 to 6 give them
CAPTIONS = [
    ("cpusmall", 20, 0.7, 5, 0.5, 1, 0.1),
    ("cadata", 50, 0.7, 5, 0.2, 2.8, 0.1),
    ("ijcnn1", 50, 0.7, 5, 0.5, 2.8, 0.1),
    ("usps", 10, 0.7, 5, 0.1, 5, 1),
]


def test_the_settings_are_those_of_the_captions():
    """'Test NMSE on cpusmall dataset with N=20, zeta=0.7, K=5, alpha=0.5, tau_IS=1, tau_API-BCD=0.1.'"""
    density, tokens = plan.DENSITY, plan.TOKENS
    settings = [(f.data, f.agents, density, tokens, f.alpha, f.tau_is, f.tau_api) for f in plan.FIGURES]
    assert settings == CAPTIONS


LATER = {"DIGing", "DATOS", "AD-PSGD", "Dual-BCD", "TokenSGD", "MHLJ"}  # methods that the kept results do not have


def test_every_method_of_the_plan_has_a_part_in_every_figure():
    planned = plan.jobs()
    for figure in plan.FIGURES:
        assert {job.method.label for job in planned if job.figure == figure} == set(amble.methods.METHODS) - LATER
    assert {job.seeds for job in planned} == {(0, 1, 2)}
    tuned = {(job.method.label, getattr(job.method, "token_rule", None)): job for job in planned if job.tuned}
    assert {("API-BCD", "published"), ("API-BCD", "tracked"), ("gAPI-BCD", "published"), ("I-BCD", None)} <= set(tuned)
    assert all(job.seeds == (0,) and not job.tuned for job in plan.jobs(quick=True))


def test_a_runs_name_changes_with_all_that_it_depends_on():
    job = plan.jobs()[0]
    others = [
        replace(job, figure=replace(job.figure, time_s=9.0)),
        replace(job, figure=replace(job.figure, comm_units=9)),
        replace(job, reading="_local"),
        replace(job, tuned=True),
        replace(job, figure=replace(job.figure, ridge=1e-3)),
        replace(job, method=replace(job.method, tau=2.0)),
    ]
    names = {each.stem("seed0", 1e-5) for each in (job, *others)} | {job.stem("seed1", 1e-5), job.stem("seed0", 2e-5)}
    assert len(names) == 9


def test_kept_runs_of_other_arithmetic_are_not_used(monkeypatch):
    job = plan.jobs()[0]
    before = job.stem("seed0")
    monkeypatch.setattr(plan, "ARITHMETIC", 1)
    assert job.stem("seed0") != before


def reproduce(*words, cwd):
    command = [sys.executable, "-m", "amble", "reproduce", "-f", "3", *words]
    env = {**os.environ, "AMBLE_DATA": str(FOLDER), "COLUMNS": "200"}
    return subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def units_to_close(run, budget):
    """By hand: the first record from which on all records within the budget have closed 50, 90 and 99 % of the gap."""
    units, values, best = run.history["comm_units"], run.history["metric"], run.problem["optimum_metric"]
    within = [k for k in range(len(units)) if units[k] <= budget]
    needed = []
    for share in (0.5, 0.9, 0.99):
        goal = values[0] + share * (best - values[0])
        first = [k for k in within if all(values[j] <= goal for j in within if j >= k)]
        needed.append(float(f"{units[first[0]]:.4g}") if first else None)
    return needed


@needs_cpusmall
def test_a_stopped_reproduce_goes_on_where_it_stopped_and_a_finished_one_makes_nothing_again(tmp_path):
    first = reproduce("--quick", "--workers", "1", cwd=tmp_path)
    folder = tmp_path / "amble-paper"
    for _ in range(600):
        if list((folder / "runs").glob("*.json")):
            break
        time.sleep(0.1)
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=60)
    assert first.returncode == 130, err
    assert "finished runs are kept" in out
    assert not (folder / "report.html").exists()
    kept = {path: path.stat().st_mtime_ns for path in (folder / "runs").glob("*.json")}
    assert 1 <= len(kept) < 6

    second = reproduce("--quick", cwd=tmp_path)
    out, err = second.communicate(timeout=240)
    assert second.returncode == 0, err
    assert "The other claims are not tested with --figure" in out
    kept_numbers = json.loads((folder / "paper.json").read_text())
    (section,) = kept_numbers["sections"]
    for claim in section["claims"]:
        assert re.search(rf"{re.escape(claim['text'])}\s+{claim['verdict']}\s*\n", out)
    closed = {row: cells for claim in section["claims"] for row, cells in claim["rows"].items()
              if claim["measure"] == "comm_units"}  # fmt: skip
    for name in ("I-BCD", "WPG", "Relay"):
        run = amble.load_run(next((folder / "runs").glob(f"cpusmall-{name.lower()}-*.json")))
        assert [value for value, _ in closed[name]] == units_to_close(run, section["budgets"]["comm_units"])
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    made = {path: path.stat().st_mtime_ns for path in (folder / "runs").glob("*")}
    assert len(made) == 12
    text = (folder / "calibration.json").read_text()
    for name in ("report.html", "curves.csv", "figure-3-cpusmall.png", "figure-3-cpusmall.svg", "calibration.json"):
        assert (folder / name).stat().st_size > 100

    third = reproduce("--quick", cwd=tmp_path)
    assert third.wait(timeout=120) == 0
    third.communicate()
    assert {path: path.stat().st_mtime_ns for path in (folder / "runs").glob("*")} == made
    seconds = json.loads(text)["visit_s"]
    run = amble.load_run(next((folder / "runs").glob("*-i-bcd-*.json")))
    assert run.timing.compute == seconds['cpusmall: I-BCD {"tau": 1.0, "tokens": 1}']


@needs_cpusmall
def test_a_tuned_method_is_measured_as_it_was_chosen(tmp_path, monkeypatch):
    """The cost of a prox may depend on the penalty, so visits are measured with the one that is used."""
    monkeypatch.setenv("AMBLE_DATA", str(FOLDER))
    figure = replace(plan.FIGURES[0], time_s=0.01, comm_units=200, pilot_laps=2)
    job = plan.Job(figure, amble.WADMM(beta=7.0), True, (0,))
    (runs,) = paper_runs.make_all([job], tmp_path, "measured", 1).values()
    assert runs[0].method.beta == runs[0].tuning["chosen"] != 7.0
    measured = json.loads((tmp_path / "calibration.json").read_text())["visit_s"]
    key = f'cpusmall: WADMM {{"beta": {runs[0].method.beta}, "tokens": 1, "form": "prox"}}'
    assert runs[0].timing.compute == measured[key]
    kept = next((tmp_path / "runs").glob("*seed0*.npz"))
    kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(amble.AmbleError, match=r"is damaged; delete it, and run the same command again"):
        paper_runs.make_all([job], tmp_path, "measured", 1)
    kept.unlink()
    (tmp_path / "calibration.json").write_text("{")  # measured again
    assert paper_runs.make_all([job], tmp_path, "measured", 1) is not None


@needs_cpusmall
@pytest.mark.parametrize(
    "method",
    [amble.IBCD(tau=1.0), amble.APIBCD(tokens=5), amble.DGD(alpha=0.05), amble.Central(), amble.Relay(tokens=5)],
)
@pytest.mark.parametrize(("time_s", "comm_units"), [(0.02, 200), (0.004, 900), (0.05, 30)])
def test_every_run_spends_both_budgets(method, time_s, comm_units, monkeypatch):
    """So every method has a curve up to the same virtual time, and one up to the same communication."""
    monkeypatch.setenv("AMBLE_DATA", str(FOLDER))
    figure = replace(plan.FIGURES[0], time_s=time_s, comm_units=comm_units)
    job = plan.Job(figure, method, False, (0,))
    run = paper_runs.spend(job, 0, 1e-5)
    for cost, budget in (("time_s", time_s), ("comm_units", comm_units)):
        assert horizon(run, cost, budget) == budget


@needs_cpusmall
@pytest.mark.parametrize("comm_units", [100, 30_000], ids=["one stage", "two stages"])
def test_gossip_is_judged_by_the_models_that_its_agents_had(comm_units, monkeypatch):
    """They are noted while the run goes on; to replay it gives the same losses."""
    monkeypatch.setenv("AMBLE_DATA", str(FOLDER))
    figure = replace(plan.FIGURES[0], time_s=0.005, comm_units=comm_units)
    run, trial = paper_runs.judged(plan.Job(figure, amble.DGD(alpha=0.05), True, (0,)), 0, 1e-5)
    assert trial == paper_runs.tuning.trial(run, paper_runs.problem_of(figure, 0))
    assert len(trial.losses) > 30


@needs_cpusmall
def test_two_readings_share_pilot_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("AMBLE_DATA", str(FOLDER))
    figure = replace(plan.FIGURES[0], pilot_laps=2)
    jobs = [plan.Job(figure, amble.APIBCD(tokens=5), True, (0,), reading) for reading in ("", "_local")]
    jobs.append(plan.Job(figure, amble.IBCD(), True, (0,)))
    assert paper_runs.but_for_reading(jobs) == [jobs[:2], jobs[2:]]
    pilots, made = paper_runs.tuning.pilot_runs, []
    counted = lambda chosen, *rest: made.extend(chosen) or pilots(chosen, *rest)  # noqa: E731
    monkeypatch.setattr(paper_runs.tuning, "pilot_runs", counted)
    paper_runs.tune_jobs(jobs[:2], tmp_path)
    together = paper_runs.tuned(jobs, tmp_path)
    assert len(made) == len({*made})
    assert len(made) < sum(len(record["tried"]) for record in together.values())
    for job in jobs[:2]:
        (alone := tmp_path / f"alone{job.reading}").mkdir()
        paper_runs.tune_jobs([job], alone)
        assert paper_runs.tuned([job], alone)[job] == together[job]


@needs_cpusmall
def test_the_choice_is_made_by_the_training_loss_of_full_runs(tmp_path, monkeypatch):
    """I-BCD on cpusmall: a small penalty is the best in a few laps, a larger one over the whole budget."""
    monkeypatch.setenv("AMBLE_DATA", str(FOLDER))
    figure = replace(plan.FIGURES[0], time_s=0.1, comm_units=2000, pilot_laps=5)
    job = plan.Job(figure, amble.IBCD(), True, (0, 1))
    (runs,) = paper_runs.make_all([job], tmp_path, "model", 1).values()
    record = runs[0].tuning
    pilots_best = float(min(record["tried"], key=lambda key: record["tried"][key]))  # no pilot run has converged
    visit_s = runs[0].timing.compute
    short = paper_runs.spend(replace(job, method=amble.IBCD(tau=pilots_best)), 0, visit_s)
    assert runs[0].method.tau == record["chosen"] > pilots_best
    assert runs[0].history["objective"][-1] < short.history["objective"][-1]
    assert record["full"][f"{record['chosen']:g}"] == pytest.approx(runs[0].history["objective"][-1], rel=1e-9)
    assert len(record["full"]) <= figure.full_tries
    assert [run.method for run in runs] == [runs[0].method] * 2


@needs_cpusmall
def test_a_tuned_value_that_rises_in_the_full_run_is_refused(tmp_path, monkeypatch):
    """DGD on cpusmall: a step of 0.65 diverges within the budgets. It is refused where full runs choose, and where
    pilot runs had chosen it."""
    monkeypatch.setenv("AMBLE_DATA", str(FOLDER))
    figure = replace(plan.FIGURES[0], time_s=0.1, comm_units=200, pilot_laps=8)
    job = plan.Job(figure, amble.DGD(), True, (0, 1))
    (chosen,) = paper_runs.make_all([job], tmp_path / "full", "model", 1).values()
    assert "0.65" in chosen[0].tuning["full"]
    record = {"setting": "alpha", "tried": {}, "ranked": ["0.65", "0.14"], "full": {}, "refused": [], "chosen": 0.65}
    (tmp_path / "pilots" / "runs").mkdir(parents=True)
    paper_runs.keep_tuning(job, record, tmp_path / "pilots" / "runs")
    (next_best,) = paper_runs.make_all([job], tmp_path / "pilots", "model", 1).values()
    assert next_best[0].method.alpha == 0.14
    for runs in (chosen, next_best):
        assert "0.65" in runs[0].tuning["refused"]
        assert f"{runs[0].method.alpha:g}" not in runs[0].tuning["refused"]
        for run in runs:
            assert run.stopped != "diverged"
            assert run.history["objective"][-1] < 1.001 * run.history["objective"].min()
    assert len(list((tmp_path / "pilots" / "runs").glob("*seed*.npz"))) == 2  # nothing is left of what was refused


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-f", "7"], "'7'.*3, 4, 5, 6"),
        (["--compute", "guessed"], "'guessed'.*measured"),
        (["--quick", "--seeds", "5"], "--quick has one seed"),
        (["--quick", "--seeds", "3"], "--quick has one seed"),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(words, sentence, tmp_path):
    done = reproduce(*words, cwd=tmp_path)
    _, err = done.communicate(timeout=60)
    assert done.returncode == 2
    assert len(err.strip().splitlines()) == 1
    assert re.search(sentence, err)
    assert not list(tmp_path.iterdir())
