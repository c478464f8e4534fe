"""The command line as its users meet it: real processes, real files."""

import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import amble
from amble.cli import main

ROOT = Path(__file__).parent.parent
SMALL = ["--agents", "6", "--hops", "200"]


def run_amble(*words, cwd, **options):
    command = [sys.executable, "-m", "amble", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False, **options)


def test_compare_prints_a_table_and_writes_figure_pictures_and_runs(tmp_path):
    done = run_amble("compare", *SMALL, "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("I-BCD", "API-BCD", "gAPI-BCD", "WPG", "hops", "bytes", "NMSE", "distance"):
        assert word in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    folder = tmp_path / "here"
    for picture in ("compare.png", "network.png", "timeline.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")
    assert len(list(folder.glob("*.npz"))) == len(list(folder.glob("*.json"))) == 5
    assert not list(folder.glob("*.part"))
    assert amble.load_run(folder / "2-api-bcd").schedule.hops == 200


def test_the_example_file_runs_and_options_given_beside_it_win(tmp_path):
    done = run_amble("compare", ROOT / "examples/experiment.toml", *SMALL, "-o", "x", "--seed", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = amble.load_run(tmp_path / "x" / "1-i-bcd")
    assert (run.problem["name"], run.network.agents, run.seed, run.schedule.hops) == ("breast_cancer", 6, 3, 200)
    assert run.timing.slowdown == ((3, 10.0),)
    given = tomllib.loads((ROOT / "examples/experiment.toml").read_text())
    assert [each["name"] for each in given["methods"]] == [
        amble.load_run(path).method.label for path in sorted((tmp_path / "x").glob("*.json"))
    ]


def test_methods_walk_timing_and_limits_from_options(tmp_path):
    words = ["-m", "API-BCD:tau=0.2,tokens=3,token_rule=scaled", "-m", "SyncWalks", "--walk", "metropolis"]
    done = run_amble(
        "compare", "-n", 5, *words, "--timing", "walkman:compute=0.5", "--time-s", 40, "-o", "x", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    first, second = (amble.load_run(path) for path in sorted((tmp_path / "x").glob("*.json")))
    assert first.method == amble.APIBCD(tau=0.2, tokens=3, token_rule="scaled")
    assert (first.walk, first.timing.mean_s, first.stopped) == ("metropolis", 1.0, "time_s")
    assert first.history["time_s"][-1] <= 40
    assert second.stopped == "time_s"


def test_draw_makes_the_papers_two_figures_from_a_saved_run(tmp_path):
    problem = amble.split(amble.load("diabetes"), agents=6)
    for name, method in (("walk", amble.APIBCD(tokens=2)), ("round", amble.SyncWalks())):
        amble.simulate(method, problem, hops=60).save(tmp_path / name)
        done = run_amble("draw", name, "--out", f"{name}-pictures", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        for picture in ("network.png", "timeline.png"):
            assert (tmp_path / f"{name}-pictures" / picture).read_bytes().startswith(b"\x89PNG")


BAD = [
    (["--data", "diabetis"], "did you mean 'diabetes'"),
    (["-m", "APIBC"], "did you mean 'API-BCD'"),
    (["-m", "API-BCD:tua=1"], "did you mean 'tau'"),
    (["-m", "API-BCD:tau=0"], "tau=0 was given; it must be a number above zero"),
    (["-m", "API-BCD:tau"], "key=value"),
    (["--density", "0.01"], "use a density of at least"),
    (["--walk", "cycel"], "did you mean 'cycle'"),
    (["--timing", "papper"], "did you mean 'paper'"),
    (["--agents", "0"], "at least one agent"),
    (["--agents", "1000"], "at most 354 agents"),
    (["--hops", "-3"], "hops=-3 was given"),
    (["--how", "by-label"], "how='even'"),
    (["nothere.toml"], "there is no experiment file nothere.toml"),
    (["key.toml"], "did you mean 'agents'"),
    (["kind.toml"], "agents = '3' was given; it must be a whole number"),
    (["broken.toml"], "broken.toml is not valid TOML"),
    (["method.toml"], "write each method as a table"),
    (["--out", "key.toml"], "nothing can be written to the folder key.toml; give one of yours"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_2_with_nothing_written(words, sentence, tmp_path, monkeypatch, capsys):
    files = {"key": "agnets = 3", "kind": 'agents = "3"', "broken": "agents = ", "method": 'methods = ["I-BCD"]'}
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text)
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["amble", "compare", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert said.startswith("amble: ")
    assert sentence in said
    assert said.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def test_a_saved_run_that_is_cut_short_is_one_sentence(tmp_path):
    problem = amble.split(amble.load("diabetes"), agents=4)
    amble.simulate(amble.IBCD(), problem, hops=20).save(tmp_path / "run")
    whole = (tmp_path / "run.npz").read_bytes()
    (tmp_path / "run.npz").write_bytes(whole[: len(whole) // 2])
    done = run_amble("draw", "run", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("amble: ")
    assert "cut short" in done.stderr
    assert not (tmp_path / "network.png").exists()


def test_help_has_examples_and_loads_nothing_heavy(tmp_path):
    done = run_amble("compare", "--help", cwd=tmp_path)
    assert "amble compare --data digits" in done.stdout
    code = "import sys\nfrom amble.cli import app\nprint(sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not re.findall(r"'(jax|matplotlib|sklearn|pandas|torch|scipy|numpy|networkx)'", loaded)


def test_version():
    done = run_amble("--version", cwd=ROOT)
    assert done.stdout == f"amble {amble.__version__}\n"


def test_ctrl_c_keeps_what_there_is_and_says_so(tmp_path):
    """Also in the first seconds, while modules load and loops compile, and also when it comes twice."""
    command = [sys.executable, "-m", "amble", "compare", "-n", "4", "--hops", "50000000", "-m", "I-BCD", "-o", "x"]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(6)
        child.send_signal(signal.SIGINT)
        time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=100)
    finally:
        child.kill()
    assert child.returncode == 130, err
    assert "what there is will be kept" in err
    if "before the first run" not in out:
        run = amble.load_run(tmp_path / "x" / "1-i-bcd")
        assert run.stopped == "interrupted"
        assert 0 < run.schedule.hops < 50_000_000
        assert "stopped early" in out
