"""The frame of the benchmarks, and the tables of docs/benchmarks.md, which are those of docs/benchmarks.json."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


measured = load(ROOT / "docs" / "measured.py")
measure = sys.modules["measure"]
KEPT = json.loads(measured.KEPT.read_text())


def fake(name, seconds, calls):
    """Work whose seconds are known."""

    def timed(times):
        calls.append(name)
        return times * seconds

    return timed


def test_a_ratio_is_the_cost_here_over_the_reference():
    calls = []
    row = measure.compare("one", fake("own", 3e-6, calls), "two", fake("other", 2e-6, calls), repeats=4, piece_s=0.01)
    assert (row.ratio, row.low, row.high, row.cost) == pytest.approx((1.5, 1.5, 1.5, 3.0))
    assert calls[-8:] == ["own", "other", "other", "own"] * 2  # in turn, and neither always first


def test_pieces_are_as_long_as_asked_for():
    took = []

    def timed(times):
        took.append(times * 1e-5)
        return took[-1]

    measure.compare("one", timed, "two", timed, repeats=3, piece_s=0.1)
    assert took[-6:] == pytest.approx([0.1] * 6)


def test_the_median_and_the_quartiles_are_of_the_ratios_of_pairs():
    """Not the ratio of medians: a slow minute slows both of a pair."""
    pairs = [(2.0, 1.0), (40.0, 20.0), (6.0, 2.0), (8.0, 4.0), (1.0, 1.0)]
    row = measure.ratio_of("one", "two", pairs, "us")
    assert (row.low, row.ratio, row.high) == tuple(np.quantile([2, 2, 3, 2, 1], (0.25, 0.5, 0.75), method="weibull"))
    assert row.cost == 6e6


@pytest.mark.parametrize(
    ("ratio", "text"), [(0.00118, "1/847"), (0.2041, "0.204"), (1.5, "1.5"), (123.4, "123"), (12345, "12,345")]
)
def test_small_ratios_are_fractions(ratio, text):
    assert measure.ratio_text(ratio) == text


def test_rows_are_printed_and_written(tmp_path, capsys):
    rows = [measure.count_of("hops", "another", 20, 88, "hops"), measure.missing("rounds", "a peer", "no Python 3.13")]
    measure.table(rows, tmp_path / "rows.json")
    assert [measure.Row(**row) for row in json.loads((tmp_path / "rows.json").read_text())] == rows
    shown = capsys.readouterr().out
    assert "| hops | another | 0.227 | exact | 20 hops |" in shown
    assert "| rounds | a peer | - | no Python 3.13 | - |" in shown


def test_the_page_is_that_of_the_kept_figures():
    page = measured.PAGE.read_text()
    assert len(measured.BLOCK.findall(page)) == 4
    tables = measured.blocks(KEPT, measured.releases_of(measured.HISTORY))
    assert measured.rewritten(page, tables) == page, "run python docs/measured.py"


def test_a_change_is_beyond_the_quartiles_and_five_percent():
    def figures(ratio, low, high, repeats=11):
        row = measure.Row("a hop", "bare", ratio, low, high, 1.0, "us", repeats)
        return {"format": 1, "groups": {"speed": {"title": "Speed", "rows": [row.__dict__]}}}

    def change(before, now):
        return measured._release(now, {"0.1.0": before}).splitlines()[-1].split(" | ")[-1].rstrip(" |")

    steady = figures(2.0, 1.9, 2.1)
    assert change(steady, figures(1.0, 0.9, 1.1)) == "-50%"
    assert change(steady, figures(2.2, 2.05, 2.3)) == "none"  # the quartiles overlap
    assert change(figures(2.0, 2.0, 2.0), figures(2.06, 2.05, 2.07)) == "none"  # under 5 %
    assert change(figures(200, 200, 200, 0), figures(202, 202, 202, 0)) == "+1%"  # a count
    assert measured._release(steady, {"0.1.0": steady}) == "No release has other figures to compare with."


def test_releases_are_sorted_by_number(tmp_path):
    for name in ("0.9.0", "0.10.0", "0.1.0"):
        (tmp_path / f"{name}.json").write_text("{}")
    assert list(measured.releases_of(tmp_path)) == ["0.10.0", "0.9.0", "0.1.0"]


def test_an_unknown_benchmark_is_refused_before_any_work():
    command = [sys.executable, str(ROOT / "benchmarks" / "all.py"), "sped"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no benchmark named sped; choose among speed, rounds" in done.stderr


def test_every_benchmark_of_the_table_is_a_script_that_writes_rows():
    everything = load(ROOT / "benchmarks" / "all.py")
    for benchmark in (everything.BENCHMARKS | everything.PEERS).values():
        script = (ROOT / "benchmarks" / benchmark.command[0]).read_text()
        assert "table(" in script
        assert "parser(__doc__)" in script
        for option in benchmark.command[1:]:
            assert f'"{option}"' in script


def test_two_that_do_not_do_the_same_have_no_ratio():
    models = np.array([[1.0, -2.0]])
    measure.check_equal("one and two", models * (1 + 1e-12), models)
    with pytest.raises(SystemExit, match="one and two: the models are 5e-04 of their largest number apart"):
        measure.check_equal("one and two", models + np.array([0.001, 0.0]), models)
    with pytest.raises(SystemExit, match="nan"):
        measure.check_equal("one and two", models * np.nan, models)


def test_lanes_of_the_gpu_benchmark_are_the_bare_ones():
    """In a process of its own, as the script takes one core for itself."""
    script = """
import jax
import amble, gpu
with jax.enable_x64(True):
    case = gpu.make(amble.Relay(tokens=gpu.M, form="scalar"), 4, 3, None, 60)
    for own in (gpu.ours(case), gpu.bare(case)):
        own[0]()
        print(own[1]().tolist())
"""
    process = subprocess.run([sys.executable, "-c", script], cwd=ROOT / "benchmarks", capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    lanes, bare = (np.array(json.loads(line)) for line in process.stdout.splitlines())
    assert lanes.shape == (3, 4)
    np.testing.assert_allclose(lanes, bare, rtol=1e-10)
