"""amble.sweep and amble sweep: what is varied, what is kept, where it runs, and what the results say."""

import contextlib
import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from ctypes.util import find_library
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import amble
from amble.sweeps import working
from amble.sweeps.heatmap import axes, medians
from amble.sweeps.plan import settings_of
from amble.sweeps.results import Case, Sweep
from amble.sweeps.settings import read_settings

ROOT = Path(__file__).parent.parent
PROBLEM = amble.split(amble.load("diabetes"), agents=5)
FEW = ["-n", "5", "--hops", "60", "--seeds", "4", "-m", "I-BCD", "--grid", "tau=0.1,1"]


def run_amble(*words, cwd, before=(), **options):
    command = [*before, sys.executable, "-m", "amble", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=240, check=False, **options)


@pytest.fixture(scope="module")
def small():
    chosen = [amble.APIBCD(tokens=2, token_rule="tracked"), amble.Relay()]
    return amble.sweep(chosen, PROBLEM, ["ring", "complete"], grid={"tau": [0.1, 1.0]}, seeds=range(3), hops=100)


def test_a_row_per_setting_network_and_seed_with_what_simulate_ends_with(small):
    table = small.to_pandas()
    assert len(table) == (2 + 1) * 2 * 3
    row = table[(table.method == "API-BCD") & (table.tau == 0.1) & (table.network == "ring") & (table.seed == 2)]
    method = amble.APIBCD(tau=0.1, tokens=2, token_rule="tracked")
    run = amble.simulate(method, PROBLEM, "ring", hops=100, seed=2)
    for name in ("objective", "suboptimality", "distance", "metric", "metric_local", "time_s", "comm_units", "bytes"):
        assert row[name].item() == pytest.approx(run.history[name][-1], rel=1e-10, abs=1e-12), name
    for cost in ("time_s", "comm_units", "bytes"):
        reached = run.time_to(within=0.01, cost=cost)
        assert row[f"{cost}_within_0.01"].item() == pytest.approx(reached, rel=1e-12, nan_ok=True)
    assert (row.stopped.item(), row.hops.item()) == ("hops", 100)


def test_the_table_as_csv_and_parquet_is_the_same(small, tmp_path):
    import pyarrow.parquet

    with small.save(tmp_path / "sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = pyarrow.parquet.read_table(small.save(tmp_path / "sweep.parquet")).to_pydict()
    assert list(rows[0]) == list(columns)
    assert [float(row["objective"]) for row in rows] == columns["objective"]
    assert [row["method"] for row in rows] == columns["method"]
    with pytest.raises(amble.AmbleError, match=r"end it in \.csv or \.parquet"):
        small.save(tmp_path / "sweep.xlsx")


def test_the_best_setting_is_that_of_the_lowest_median(small):
    table = small.to_pandas()
    medians = table.groupby(["method", "tau", "network"], dropna=False)["objective"].median()
    best = small.best()
    assert best.median == pytest.approx(medians.min())
    assert best.runs == 3
    assert best.low <= best.median <= best.high
    with pytest.raises(amble.AmbleError, match="no measured column named 'objectiv'; did you mean 'objective'"):
        small.best("objectiv")


def made(values, method=None, **more):
    """A sweep of one method whose runs measured these values."""
    method = method or amble.IBCD()
    cases = tuple(Case(method, "ring", 0, seed) for seed in range(len(values)))
    rows = tuple({"stopped": "hops", "objective": value, **more} for value in values)
    return Sweep(cases, rows)


def test_a_setting_that_fails_half_of_the_time_has_no_median():
    assert made([1.0, 2.0, np.nan, np.nan]).best().median == np.inf
    assert made([1.0, 2.0, 3.0, np.nan]).best().median == 3.0
    assert made([1.0, 2.0, 3.0, np.nan]).best().missed == 1


def test_two_methods_over_paired_seeds_by_scipys_wilcoxon():
    rng = np.random.default_rng(0)
    one, other = rng.lognormal(size=12), rng.lognormal(0.8, size=12)
    a, b = made(one), made(other, amble.WPG())
    both = Sweep(a.cases + b.cases, a.rows + b.rows)
    result = both.compare("I-BCD", "WPG")
    assert result.p_value == pytest.approx(stats.wilcoxon(one, other).pvalue)
    assert result.ratio == pytest.approx(np.median(one / other))
    assert (result.pairs, result.a_better) == (12, int((one < other).sum()))
    never = Sweep(a.cases + b.cases, a.rows + made([np.nan] * 12, amble.WPG()).rows).compare("I-BCD", "WPG")
    assert (never.a_better, never.p_value) == (12, pytest.approx(2 * 0.5**12))
    with pytest.raises(amble.AmbleError, match="no method in this sweep named 'Relay'"):
        both.compare("I-BCD", "Relay")


def test_heat_maps_are_pictures(small, tmp_path):
    assert small.plot(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    text = small.plot(tmp_path / "b.svg", x="tau", y="network", by="hops_within_0.01").read_text()
    assert "<svg" in text
    with pytest.raises(amble.AmbleError, match="no setting of this sweep named 'tua'; did you mean 'tau'"):
        small.plot(tmp_path / "c.png", x="tua")


def test_a_cell_of_a_heat_map_is_the_best_setting_of_its_method():
    chosen = [(amble.IBCD(tau=tau), 10.0 * tau + seed) for tau in (1.0, 2.0) for seed in range(3)]
    chosen += [(amble.DATOS(), 5.0), (amble.APIBCD(tau=1.0, tokens=2), 7.0), (amble.APIBCD(tau=1.0, tokens=3), 6.0)]
    cases = tuple(Case(method, "ring", 0, seed) for seed, (method, _) in enumerate(chosen))
    made = Sweep(cases, tuple({"stopped": "hops", "objective": value} for _, value in chosen))
    assert axes(made, None, None) == ("tokens", "method")
    cells, _, several = medians(made, "tau", "method", "objective")
    none = np.inf  # rows: API-BCD, DATOS, I-BCD; columns: no tau, 1, 2
    assert cells.tolist() == [[none, 6.0, none], [5.0, none, none], [none, 11.0, 21.0]]
    assert several
    assert str(made.best()).startswith("DATOS on ring: objective 5 ")


def test_a_random_search_draws_the_same_values_each_time_within_their_range():
    drawn = settings_of([amble.IBCD(), amble.WPG()], {}, {"tau": (1e-3, 10.0, "log")}, 20)
    assert drawn == settings_of([amble.IBCD(), amble.WPG()], {}, {"tau": (1e-3, 10.0, "log")}, 20)
    taus = [method.tau for method in drawn if isinstance(method, amble.IBCD)]
    assert len(taus) == 20
    assert 1e-3 <= min(taus) < 0.05
    assert 1 < max(taus) <= 10
    assert drawn.count(amble.WPG()) == 1  # it has no tau
    whole = settings_of([amble.APIBCD()], {}, {"tokens": (1, 3, "whole")}, 30)
    assert {method.tokens for method in whole} == {1, 2, 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"grid": {"tua": [1.0]}}, "no setting of these methods named 'tua'; did you mean 'tau'"),
        ({"grid": {"tau": 1.0}}, r"grid has tau=1.0; give a list of values"),
        ({"grid": {"tau": []}}, r"grid has tau=an empty list; give a list of values"),
        ({"grid": {"tau": [-1.0]}}, "I-BCD: tau=-1.0 was given; it must be a number above zero"),
        ({"random": {"tau": (1.0, 2.0)}}, "tries=20; give both or neither"),
        ({"random": {"tau": (0.0, 2.0, "log")}, "tries": 3}, "low must be below high, above zero on a log scale"),
        ({"random": {"tau": (1.0, 2.0, "cubic")}, "tries": 3}, r"give \(low, high, scale\), the scale one of linear"),
        ({"seeds": 8}, r"seeds=8 was given; give all of them, such as range\(8\)"),
        ({"seeds": [1, 1]}, "seeds must be different"),
        ({"hops": -1}, "hops=-1 was given; it must be above zero"),
        ({"walk": "cykle"}, "no walk named 'cykle'; did you mean 'cycle'"),
        ({"within": 0}, "within=0 was given; shares"),
        ({"part": (3, 2)}, r"part=\(3, 2\) was given"),
        ({"executor": "slurm"}, r"'slurm' was given as the executor; give dask://host:port"),
        ({"executor": "dask://127.0.0.1:1"}, "no Dask scheduler answers at 127.0.0.1:1"),
        ({"network": ["ring", "ring"]}, "the network 'ring' was given twice"),
    ],
)
def test_bad_input_is_one_sentence_before_any_work(options, message, monkeypatch):
    monkeypatch.setattr("amble.sweeps.executors.CONNECT_S", 0.2)
    with pytest.raises(amble.AmbleError, match=message):
        amble.sweep(amble.IBCD(), PROBLEM, **options)


def test_a_repeated_sweep_makes_only_what_is_missing(tmp_path, monkeypatch):
    options = {"grid": {"tau": [0.1, 1.0]}, "hops": 50, "folder": tmp_path / "kept"}
    first = amble.sweep(amble.IBCD(), PROBLEM, seeds=range(3), **options)
    jobs = []
    monkeypatch.setattr(working, "make", lambda job: jobs.append(job) or original(job))
    original = sys.modules["amble.sweeps.rows"].make
    again = amble.sweep(amble.IBCD(), PROBLEM, seeds=range(3), **options)
    assert not jobs
    assert again.rows == first.rows
    more = amble.sweep(amble.IBCD(), PROBLEM, seeds=range(4), **options)
    assert [job.seeds for job in jobs] == [[3, 3]]
    assert len(more) == 8
    amble.sweep(amble.IBCD(), PROBLEM, seeds=range(3), **{**options, "hops": 51})
    assert len(jobs) == 2


def test_a_damaged_file_is_made_again(tmp_path):
    options = {"seeds": range(2), "hops": 50, "folder": tmp_path}
    first = amble.sweep(amble.IBCD(), PROBLEM, **options)
    [file] = tmp_path.glob(working.FILES)
    file.write_bytes(file.read_bytes()[:100])
    assert amble.sweep(amble.IBCD(), PROBLEM, **options).rows == first.rows


def test_parts_of_a_sweep_are_the_whole(tmp_path):
    options = {"grid": {"tau": [0.1, 1.0]}, "seeds": range(3), "hops": 50}
    for k in (1, 2, 3, 4):
        amble.sweep(amble.IBCD(), PROBLEM, part=(k, 4), folder=tmp_path, **options)
    kept = len(list(tmp_path.glob(working.FILES)))
    whole = amble.sweep(amble.IBCD(), PROBLEM, folder=tmp_path, **options)
    assert len(list(tmp_path.glob(working.FILES))) == kept
    once = amble.sweep(amble.IBCD(), PROBLEM, **options)
    assert whole.to_pandas()["objective"].tolist() == pytest.approx(once.to_pandas()["objective"].tolist(), rel=1e-12)


def test_splits_as_a_list_and_as_a_function_of_the_seed():
    def own(seed):
        return amble.split(amble.load("diabetes"), agents=5, seed=seed)

    listed = amble.sweep(amble.Relay(), [own(0), own(1)], "ring", seeds=range(2), hops=20)
    paired = amble.sweep(amble.Relay(), own, "ring", seeds=range(2), hops=20)
    assert [(case.split, case.seed) for case in listed.cases] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert paired.rows[1]["metric"] == pytest.approx(listed.rows[3]["metric"], rel=1e-12)
    assert paired.rows[1]["metric"] != pytest.approx(listed.rows[1]["metric"], rel=1e-3)


def test_other_test_rows_are_other_runs(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    for held in (y[:9], 5 * y[:9]):
        problem = amble.Problem.from_arrays(X, y, agents=5, X_test=X[:9], y_test=held)
        row = amble.sweep(amble.IBCD(), problem, "ring", hops=30, folder=tmp_path).to_pandas()
        run = amble.simulate(amble.IBCD(), problem, "ring", hops=30)
        assert row.metric.item() == pytest.approx(run.history["metric"][-1])


def test_any_executor_takes_the_jobs_and_a_method_of_your_own():
    @amble.method
    class Plain:
        tau: float = 1.0
        tokens: int = 1
        work = {"prox": 1}  # noqa: RUF012
        weigh = "agents"
        positive = ("tau",)

        def agent(self, f, start):
            return amble.IBCD().agent(f, start)

        def gift(self, f, agent, z):
            x = f.prox(z, self.tau, agent.x)
            return agent._replace(x=x), x, 0.0 * x[0]

    with ThreadPoolExecutor(2) as pool:
        done = amble.sweep([Plain(), amble.IBCD()], PROBLEM, "ring", seeds=range(2), hops=40, executor=pool)
    own, theirs = ([row["objective"] for row in rows] for rows in (done.rows[:2], done.rows[2:]))
    assert own == pytest.approx(theirs, rel=1e-12)


def test_workers_that_are_killed_lose_nothing_but_their_jobs(tmp_path, monkeypatch):
    """A real kill -9 of a real worker: its runs are made again by new workers."""
    monkeypatch.setattr(working, "FEW_S", 0.0)
    monkeypatch.setattr(working, "LANES_LEAST", 2)
    options = {"grid": {"tau": [0.1, 1.0]}, "seeds": range(3), "hops": 50, "workers": 2}

    def killing(job, first=tmp_path / "first"):
        with contextlib.suppress(FileExistsError):
            first.touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)
        from amble.sweeps.rows import make

        return make(job)

    monkeypatch.setattr(working, "make", killing)
    done = amble.sweep(amble.IBCD(), PROBLEM, "ring", **options)
    assert (tmp_path / "first").exists()
    assert (len(done), done.missing) == (6, 0)
    monkeypatch.setattr(working, "make", lambda _: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(amble.AmbleError, match="workers were killed 3 times"):
        amble.sweep(amble.IBCD(), PROBLEM, "ring", **options)


def test_a_dask_cluster_of_two_workers_and_one_that_is_killed(tmp_path):
    distributed = pytest.importorskip("distributed")
    options = {"grid": {"tau": [0.1, 1.0]}, "seeds": range(3), "hops": 50}
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        address = cluster.scheduler_address.replace("tcp", "dask")
        done = amble.sweep(amble.IBCD(), PROBLEM, "ring", executor=address, folder=tmp_path, **options)
        first = next(iter(cluster.workers.values()))
        os.kill(first.process.pid, signal.SIGKILL)
        after = amble.sweep(amble.IBCD(), PROBLEM, "complete", executor=address, **options)
    here = amble.sweep(amble.IBCD(), PROBLEM, "ring", **options)
    assert [row["objective"] for row in done.rows] == pytest.approx([row["objective"] for row in here.rows], rel=1e-12)
    assert (len(after), after.missing) == (6, 0)


def test_the_command_makes_a_table_a_picture_and_files_and_repeats_nothing(tmp_path):
    done = run_amble("sweep", *FEW, "-m", "Relay", "--rank", "hops_within_0.01", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Sweep(12 runs of 3 settings), the best by hops_within_0.01" in done.stdout
    assert "Wilcoxon" in done.stdout
    folder = tmp_path / "amble-sweep"
    assert (folder / "sweep.png").read_bytes().startswith(b"\x89PNG")
    files = {path: path.stat().st_mtime_ns for path in folder.glob(working.FILES)}
    assert run_amble("sweep", *FEW, "-m", "Relay", cwd=tmp_path).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in folder.glob(working.FILES)} == files


def test_mpi_with_three_processes(tmp_path):
    """`mpiexec -n 3 amble sweep --executor mpi`, with Debian's mpich."""
    pytest.importorskip("mpi4py")
    library = find_library("mpich")
    if shutil.which("mpiexec") is None or library is None:
        pytest.fail("there is no mpich: apt-get install --no-install-recommends mpich")
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libmpi.so.12").symlink_to(
        next(Path("/usr/lib").glob(f"*/{library}"))
    )  # the name that mpi4py's wheel looks for
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path / "lib")}
    words = ["sweep", *FEW, "--executor", "mpi", "--out", tmp_path / "out"]
    done = run_amble(*words, cwd=tmp_path, before=["mpiexec", "-n", "3"], env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Sweep(8 runs of 2 settings)") == 1  # the other processes say nothing
    alone = run_amble(*words, cwd=tmp_path, env=env)
    assert alone.returncode == 2
    assert "start it with mpiexec -n 3, or more" in alone.stderr


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(tmp_path):
    words = ["sweep", "-n", "5", "--hops", "100000", "--seeds", "40", "-m", "Relay", "--workers", "1"]
    code = (
        "import amble.sweeps.working as w; w.LANES_LEAST, w.JOBS_PER_WORKER = 2, 20; from amble.cli import main; main()"
    )
    command = [sys.executable, "-c", code, *words]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    folder, end_s = tmp_path / "amble-sweep", time.monotonic() + 200
    while not list(folder.glob(working.FILES)) and process.poll() is None and time.monotonic() < end_s:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 130, err
    assert "runs are missing; the same command makes them" in " ".join(out.split())
    kept = working.Kept(folder)
    assert 0 < len(kept.rows) < 40


def test_a_plan_file_has_lists_of_values_and_refuses_unknown_keys():
    own, runs = read_settings({"methods": [{"name": "API-BCD", "tokens": [2, 5], "tau": [0.1, 1.0]}], "seeds": 3})
    assert [(method.tokens, method.tau) for method, _ in runs.make_methods()] == [
        (2, 0.1),
        (2, 1.0),
        (5, 0.1),
        (5, 1.0),
    ]
    assert own.seeds == 3
    with pytest.raises(amble.AmbleError, match="no setting named 'seads'; did you mean 'seeds'"):
        read_settings({"seads": 3})
    with pytest.raises(amble.AmbleError, match="tune was given; a sweep has none"):
        read_settings({"tune": True})
    with pytest.raises(amble.AmbleError, match=r"metric = 0\.9 was given; a sweep does not stop at a metric"):
        read_settings({"metric": 0.9})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--grid", "tau"], "--grid tau was given; write KEY=VALUE,VALUE"),
        (["--random", "tau=1"], "--random tau=1 was given; write KEY=LOW..HIGH"),
        (["--part", "0/3"], "--part 0/3 was given; write K/N"),
        (["--executor", "torque"], "--executor torque was given; write dask://HOST:PORT, or mpi."),
        (["--rank", "objectiv"], "no measured column named 'objectiv'; did you mean 'objective'"),
        (["--seeds", "0"], "seeds = 0 was given; give how many, one or more"),
    ],
)
def test_bad_options_are_one_sentence(words, message, tmp_path, capsys, monkeypatch):
    from amble.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["amble", "sweep", "-m", "I-BCD", *words])
    with pytest.raises(SystemExit) as exit:
        main()
    assert exit.value.code == 2
    assert message in capsys.readouterr().err
