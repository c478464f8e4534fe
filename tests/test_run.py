"""Runs: what they record, saving, loading, resuming as if never stopped, stopping, Ctrl-C."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import amble
from amble import AmbleError, networks
from amble.schedule.timing import Timing

N = 6
KEYS = ["hop", "time_s", "comm_units", "bytes", "objective", "suboptimality", "distance", "metric", "metric_local"]
METHODS = {
    "I-BCD": amble.IBCD(tau=0.7),
    "API-BCD": amble.APIBCD(tau=0.3, tokens=3, token_rule="tracked"),
    "gAPI-BCD": amble.GAPIBCD(tau=0.3, tokens=2),
    "WPG": amble.WPG(alpha=0.2),
    "SyncWalks": amble.SyncWalks(tau=0.2, tokens=2),
}
NETWORK = networks.random(N, 0.7, seed=0)


def make_problem(seed=0, task="regression"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=80)
    y = y if task == "regression" else np.where(y > 0, "yes", "no")
    held_out = {"X_test": X[60:], "y_test": y[60:]}
    return amble.Problem.from_arrays(X[:60], y[:60], agents=N, task=task, **held_out)


PROBLEM = make_problem()


def limit(method, hops):
    """A number of hops, or of rounds for the method that has rounds."""
    return {"rounds" if isinstance(method, amble.SyncWalks) else "hops": hops}


def go(method, hops=50, **options):
    limits = limit(method, hops) if hops else {}
    return amble.simulate(method, PROBLEM, NETWORK, seed=4, **{**limits, **options})


def assert_same_tuples(one, other):
    assert type(one) is type(other)
    for mine, yours in zip(one, other, strict=True):
        assert np.array_equal(mine, yours)
        assert np.asarray(mine).dtype == np.asarray(yours).dtype


def assert_same_runs(one, other):
    """Every array to the bit, and every setting."""
    for field in ("recorded", "consensus", "local", "compute_s"):
        assert np.array_equal(getattr(one, field), getattr(other, field)), field
    assert one.history.keys() == other.history.keys()
    for key in one.history:
        assert np.array_equal(one.history[key], other.history[key], equal_nan=True), key
    assert_same_tuples(one.schedule, other.schedule)
    for part in ("agents", "slots", "tokens"):
        assert_same_tuples(getattr(one.state, part), getattr(other.state, part))
    assert np.array_equal(one.state.x_sum, other.state.x_sum)
    for field in ("agents", "name", "starts", "neighbours"):
        assert np.array_equal(getattr(one.network, field), getattr(other.network, field)), field
    for field in ("method", "timing", "seed", "every", "message_bytes", "problem", "stopped", "label"):
        assert getattr(one, field) == getattr(other, field), field
    assert np.array_equal(one.walk, other.walk)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_run_has_the_promised_columns_and_models(method):
    run = go(method, every=8)
    assert set(KEYS) <= set(run.history)
    assert run.recorded.tolist() == [0, 8, 16, 24, 32, 40, 48, 50]
    assert all(len(column) == 8 for column in run.history.values())
    assert all(np.isfinite(column).all() for column in run.history.values())
    assert run.model.shape == (4,)
    assert np.array_equal(run.model, run.consensus[-1])
    assert run.models.shape == (N, 4)
    assert np.allclose(run.models.mean(axis=0), run.local[-1], rtol=1e-12)


def test_the_columns_say_what_their_names_say():
    run = go(METHODS["API-BCD"], every=10)
    best = PROBLEM.optimum()
    k = run.recorded
    assert np.array_equal(run.history["hop"], k)
    assert np.array_equal(run.history["time_s"], [0, *run.schedule.time_s[k[1:] - 1]])
    assert run.history["comm_units"].tolist() == [int(run.schedule.moved[:hop].sum()) for hop in k]
    assert np.array_equal(run.history["bytes"], run.history["comm_units"] * 8 * 4)
    values = [sum(PROBLEM.objective(i).value(w) for i in range(N)) for w in run.consensus]
    assert np.allclose(run.history["objective"], values, rtol=1e-12)
    assert np.allclose(run.history["suboptimality"], np.array(values) - best.value, atol=1e-12)
    apart = np.linalg.norm(run.consensus - best.w, axis=1) / np.linalg.norm(best.w)
    assert np.allclose(run.history["distance"], apart, rtol=1e-12)
    assert np.allclose(run.history["metric"], [PROBLEM.metric(w) for w in run.consensus], rtol=1e-12)
    assert np.allclose(run.history["metric_local"], [PROBLEM.metric(w) for w in run.local], rtol=1e-12)


def test_a_round_costs_n_visits_and_its_units():
    run = go(METHODS["SyncWalks"], hops=5, every=1)
    assert run.history["hop"].tolist() == [0, 6, 12, 18, 24, 30]
    assert run.history["comm_units"].tolist() == [0, 24, 48, 72, 96, 120]
    assert run.history["bytes"].tolist() == [0, 768, 1536, 2304, 3072, 3840]


def test_to_pandas():
    run = go(amble.IBCD(), every=10)
    frame = run.to_pandas()
    assert list(frame.columns) == list(run.history)
    assert len(frame) == 6
    assert frame["distance"].tolist() == run.history["distance"].tolist()


@pytest.mark.parametrize("hops", [7, 200, 1000])
def test_records_without_every_are_denser_at_the_start_and_do_not_depend_on_the_end(hops):
    run, longer = go(amble.IBCD(), hops), go(amble.IBCD(), 1500)
    assert run.recorded[0] == 0
    assert run.recorded[-1] == hops
    assert np.isin(run.recorded[:-1], longer.recorded).all()
    assert (np.diff(run.recorded) <= 1 + run.recorded[:-1] // 20).all()


@pytest.mark.parametrize("path", ["run", "deeper/run", "run.npz", "run.json"])
def test_saved_and_loaded_runs_are_equal(path, tmp_path):
    run = go(METHODS["API-BCD"], timing=Timing(slowdown={1: 3.0}, compute=1e-5), walk="metropolis", every=7)
    written = run.save(tmp_path / path)
    assert sorted(file.name for file in written.parent.iterdir()) == ["run.json", "run.npz"]
    for name in (path, path.split(".")[0] + ".npz", path.split(".")[0] + ".json"):
        assert_same_runs(amble.load_run(tmp_path / name), run)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method_s_run_survives_the_disk(method, tmp_path):
    run = go(method)
    assert_same_runs(amble.load_run(run.save(tmp_path / "run")), run)


@pytest.mark.parametrize("wrap", [np.asarray, scipy.sparse.csr_array], ids=["dense", "sparse"])
def test_a_run_on_a_matrix_walk_is_saved_and_resumed(wrap, tmp_path):
    P = np.eye(N) / 2
    for i in range(N):
        P[i, NETWORK.neighbours_of(i)] = 0.5 / NETWORK.degrees[i]
    loaded = amble.load_run(go(amble.IBCD(), 40, walk=wrap(P), every=9).save(tmp_path / "run"))
    resumed, whole = amble.resume(loaded, PROBLEM, hops=90), go(amble.IBCD(), 90, walk=P, every=9)
    assert np.array_equal(resumed.models, whole.models)
    assert_same_tuples(resumed.schedule, whole.schedule)


def test_names_with_dots_are_kept_apart(tmp_path):
    one, other = go(amble.IBCD(tau=0.1)), go(amble.IBCD(tau=0.2))
    one.save(tmp_path / "tau0.1")
    other.save(tmp_path / "tau0.2")
    assert amble.load_run(tmp_path / "tau0.1").method.tau == 0.1
    assert amble.load_run(tmp_path / "tau0.2").method.tau == 0.2


@pytest.mark.parametrize(
    ("method", "every", "seed"),
    [
        (amble.IBCD(tokens=np.int64(2)), 5, 0),
        (amble.IBCD(tau=np.float32(0.5)), 5, 0),
        (amble.IBCD(), np.int64(5), 0),
        (amble.IBCD(), 5, np.int64(3)),
    ],
    ids=["tokens", "tau", "every", "the problem's seed"],
)
def test_settings_that_are_numpy_numbers_can_be_saved(method, every, seed, tmp_path):
    problem = amble.Problem.from_arrays(np.eye(6), np.arange(6.0), agents=6, seed=seed)
    run = amble.simulate(method, problem, NETWORK, hops=10, every=every, engine="plain")
    loaded = amble.load_run(run.save(tmp_path / "run"))
    assert (loaded.method, loaded.every, loaded.problem) == (run.method, run.every, run.problem)


@pytest.mark.parametrize("disk", [False, True], ids=["memory", "disk"])
@pytest.mark.parametrize("every", [None, 8])
@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_resumed_run_is_the_run_that_never_stopped(method, every, disk, tmp_path):
    run = go(method, 37, every=every)
    if disk:
        run = amble.load_run(run.save(tmp_path / "run"))
    assert_same_runs(amble.resume(run, PROBLEM, **limit(method, 90)), go(method, 90, every=every))


@pytest.mark.parametrize("stops", [[1], [8, 16], [13, 14, 15, 89]])
def test_it_may_stop_many_times_and_anywhere(stops):
    method = METHODS["API-BCD"]
    run = go(method, stops[0], every=8)
    for hops in [*stops[1:], 90]:
        run = amble.resume(run, PROBLEM, hops=hops)
    assert_same_runs(run, go(method, 90, every=8))


def test_resuming_leaves_the_run_it_started_from_as_it_was():
    run, untouched = go(METHODS["API-BCD"], 37), go(METHODS["API-BCD"], 37)
    first, second = (amble.resume(run, PROBLEM, hops=90) for _ in range(2))
    assert_same_runs(run, untouched)
    assert_same_runs(first, second)


def test_resuming_by_the_clock_or_by_units():
    whole = go(METHODS["API-BCD"], 90, every=8)
    half = go(METHODS["API-BCD"], 37, every=8)
    by_clock = amble.resume(half, PROBLEM, time_s=float(whole.schedule.time_s[-1]))
    assert np.array_equal(by_clock.models, whole.models)
    by_units = amble.resume(half, PROBLEM, comm_units=60)
    assert by_units.history["comm_units"][-1] == 60


@pytest.mark.parametrize("every", [4, None])
def test_resuming_to_a_tolerance_stops_where_an_unbroken_run_does(every):
    """The tolerance is over a whole lap, also where the run had been stopped within one."""
    method, tolerance = amble.WPG(alpha=0.02), 0.1
    whole = go(method, None, tolerance=tolerance, every=every)
    assert whole.stopped == "tolerance"
    hops = whole.schedule.hops
    for stop in (hops - N - 1, hops - N - 2, hops - 2 * N - 1):
        assert_same_runs(amble.resume(go(method, stop, every=every), PROBLEM, tolerance=tolerance), whole)


def test_a_limit_already_passed_is_refused():
    with pytest.raises(AmbleError, match="is already at hop 50; give a limit beyond it"):
        amble.resume(go(amble.IBCD()), PROBLEM, hops=49)


def test_another_problem_s_run_is_refused():
    with pytest.raises(AmbleError, match="made on 'data' with other data or settings than the problem given"):
        amble.resume(go(amble.IBCD()), make_problem(seed=1), hops=90)


def test_stops_by_hops_and_rounds():
    run, unlimited = go(amble.IBCD(), 33), go(amble.IBCD(), None, every=5000)
    assert (run.schedule.hops, run.stopped) == (33, "hops")
    assert (unlimited.schedule.hops, unlimited.stopped) == (10_000, "hops")
    rounds = go(METHODS["SyncWalks"], 5)
    assert (rounds.recorded[-1], rounds.stopped) == (5, "rounds")
    by_hops = amble.simulate(METHODS["SyncWalks"], PROBLEM, NETWORK, hops=5 * N, seed=4)
    assert_same_runs(by_hops, rounds)


def test_a_round_method_on_one_agent_makes_all_its_hops():
    alone = amble.Problem.from_arrays(np.eye(4), np.arange(4.0), agents=1)
    run = amble.simulate(amble.SyncWalks(), alone, networks.ring(1), hops=12_000, every=12_000)
    assert run.recorded[-1] == 12_000


@pytest.mark.parametrize("method", [METHODS["API-BCD"], METHODS["SyncWalks"]], ids=lambda method: method.label)
def test_stops_by_the_clock(method):
    whole = go(method, 90)
    limit_s = float(whole.schedule.time_s[60])
    run = go(method, None, time_s=limit_s)
    assert (run.stopped, run.schedule.hops) == ("time_s", 61)
    assert run.history["time_s"][-1] == limit_s
    assert go(method, None, time_s=limit_s * (1 - 1e-12)).schedule.hops == 60


def test_stops_by_units():
    run = go(METHODS["API-BCD"], None, comm_units=40)
    assert (run.stopped, run.history["comm_units"][-1]) == ("comm_units", 40)
    rounds = go(METHODS["SyncWalks"], None, comm_units=100)
    assert (rounds.stopped, rounds.recorded[-1]) == ("comm_units", 4)  # a round is 24 units, and a fifth is too many


@pytest.mark.parametrize("method", [METHODS["API-BCD"], METHODS["SyncWalks"]], ids=lambda method: method.label)
def test_the_limit_that_was_reached_first_is_the_one_named(method):
    whole = go(method, 90)
    soon_s, late_s = float(whole.schedule.time_s[40]) * (1 + 1e-9), 1e3
    few, many = 48, 10**7
    assert go(method, None, time_s=soon_s, comm_units=many).stopped == "time_s"
    assert go(method, None, time_s=late_s, comm_units=few).stopped == "comm_units"
    assert go(method, 500, time_s=soon_s, comm_units=many).stopped == "time_s"
    assert go(method, 500, time_s=late_s, comm_units=few).stopped == "comm_units"
    assert go(method, 2, time_s=late_s, comm_units=many).stopped == next(iter(limit(method, 2)))


@pytest.mark.parametrize("method", [amble.WPG(alpha=0.02), METHODS["SyncWalks"]], ids=lambda method: method.label)
def test_stops_by_tolerance_at_the_first_lap_that_moves_less(method):
    lap = 1 if isinstance(method, amble.SyncWalks) else N
    run = go(method, None, tolerance=0.05)
    laps = go(method, run.schedule.hops + lap, every=lap).consensus
    moved = np.linalg.norm(np.diff(laps, axis=0), axis=1) / np.linalg.norm(laps[1:], axis=1)
    assert run.stopped == "tolerance"
    assert run.schedule.hops == lap * (int(np.argmax(moved <= 0.05)) + 1)
    assert run.schedule.hops > 2 * lap


def test_divergence_stops_the_run_with_a_warning():
    with pytest.warns(UserWarning, match="diverged.*try another alpha"):
        run = go(amble.WPG(alpha=1e6), 5000)
    assert run.stopped == "diverged"
    assert run.schedule.hops < 5000
    assert np.isfinite(run.consensus[:-1]).all()


CHILD = """
import signal, sys, threading, time
sys.path.insert(0, sys.argv[2])
import test_run

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with it ignored

def tell():
    while signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        time.sleep(0.001)
    print("running", flush=True)

threading.Thread(target=tell, daemon=True).start()
run = test_run.go(test_run.METHODS["API-BCD"], 3_000_000, every=1000)
print(run.stopped, run.schedule.hops, flush=True)
run.save(sys.argv[1])
"""


def test_ctrl_c_returns_the_run_so_far_which_can_be_resumed(tmp_path):
    words = [sys.executable, "-c", CHILD, str(tmp_path / "run"), str(Path(__file__).parent)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "running\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    stopped, hops = out.split()
    assert stopped == "interrupted"
    assert 0 < int(hops) < 3_000_000
    run = amble.load_run(tmp_path / "run")
    assert (run.stopped, run.schedule.hops, run.recorded[-1]) == ("interrupted", int(hops), int(hops))
    goal = int(hops) + 3000
    assert_same_runs(amble.resume(run, PROBLEM, hops=goal), go(METHODS["API-BCD"], goal, every=1000))


def test_ctrl_c_works_as_before_after_a_run():
    before = signal.getsignal(signal.SIGINT)
    go(amble.IBCD())
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("suffix", "spoil"),
    [
        *((suffix, lambda c, cut=cut: c.rstrip()[:cut]) for suffix in (".npz", ".json") for cut in (0, 20, 500, -1)),
        (".npz", lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:]),
        *((".json", lambda _, text=text: text) for text in (b"[]", b"{}", b"null", b'{"format": 1}', b"no \xff json")),
    ],
)
def test_a_damaged_file_is_one_clear_sentence(suffix, spoil, tmp_path):
    file = go(amble.IBCD()).save(tmp_path / "run").with_suffix(suffix)
    file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(
        AmbleError, match="run is damaged or cut short; save it again, or copy both files again"
    ) as caught:
        amble.load_run(tmp_path / "run")
    assert "\n" not in str(caught.value)


def test_files_of_two_runs_do_not_mix(tmp_path):
    go(amble.IBCD()).save(tmp_path / "one")
    go(amble.WPG()).save(tmp_path / "other")
    (tmp_path / "one.npz").replace(tmp_path / "other.npz")
    with pytest.raises(AmbleError, match="is damaged or cut short"):
        amble.load_run(tmp_path / "other")


def test_another_format_is_named(tmp_path):
    file = go(amble.IBCD()).save(tmp_path / "run")
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 99}))
    with pytest.raises(AmbleError, match="has format 99, and this amble reads format"):
        amble.load_run(file)


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_missing_file_is_named(suffix, tmp_path):
    go(amble.IBCD()).save(tmp_path / "run")
    (tmp_path / "run").with_suffix(suffix).unlink()
    with pytest.raises(AmbleError, match=f"there is no .*run{suffix}; a saved run is a .json and a .npz file"):
        amble.load_run(tmp_path / "run")


def test_saving_over_an_older_run_replaces_it_whole(tmp_path):
    go(amble.IBCD()).save(tmp_path / "run")
    newer = go(amble.WPG(), 70)
    newer.save(tmp_path / "run")
    assert_same_runs(amble.load_run(tmp_path / "run"), newer)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.json", "run.npz"]


@pytest.mark.parametrize("blocked", ["run.npz", "run.json"])
def test_a_save_that_fails_leaves_nothing_half_written(blocked, tmp_path):
    (tmp_path / blocked).mkdir()  # a folder where the file should go
    with pytest.raises(
        AmbleError, match=r"cannot be saved to .*run \(Is a directory\); give a path that you can write to"
    ):
        go(amble.IBCD()).save(tmp_path / "run")
    assert not list(tmp_path.glob("*.part"))
