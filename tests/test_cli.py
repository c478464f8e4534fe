"""The command line as its users meet it: real processes, real files."""

import re
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import amble
from amble import methods
from amble.cli import app, main
from amble.cli.app import PANELS, say
from amble.data.partition import PARTITIONS
from amble.losses import LOSSES
from amble.networks import KINDS as NETWORKS
from amble.networks import walks
from amble.problem.assemble import TASKS, WEIGHTS
from amble.schedule import timing
from amble.simulation.experiment import Experiment
from doc_blocks import every_command

ROOT = Path(__file__).parent.parent
SMALL = ["--agents", "6", "--hops", "200"]


def run_amble(*words, cwd, **options):
    command = [sys.executable, "-m", "amble", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False, **options)


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


def test_tuning_keeps_the_values_that_are_given_and_says_so(tmp_path):
    words = ["-m", "WPG:alpha=0.3", "-m", "I-BCD", "-m", "Relay", "--tune"]
    done = run_amble("compare", "-n", 4, *words, "--hops", 40, "-o", "x", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    given, tuned, relay = (amble.load_run(path) for path in sorted((tmp_path / "x").glob("*.json")))
    assert (given.method.alpha, given.tuning, relay.tuning) == (0.3, {}, {})
    assert tuned.tuning["setting"] == "tau"
    assert "Steps and penalties were chosen by pilot runs; as given: alpha of WPG." in done.stdout
    default = Experiment().with_settings({"tune": True})
    assert all(tuned for _, tuned in default.make_methods())  # nobody gave the paper's values


def test_tuning_is_said_method_by_method():
    problem = amble.split(amble.load("diabetes"), agents=4)
    runs = amble.compare([amble.WPG(), amble.WPG()], problem, hops=20, tune=[True, False], optimum=False)
    assert [bool(run.tuning) for run in runs] == [True, False]
    with pytest.raises(amble.AmbleError, match="tune has 1 values for 2 methods"):
        amble.compare([amble.WPG(), amble.WPG()], problem, hops=20, tune=[True])


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
    (["-m", "all:tau=1"], "each method has its own"),
    (["-m", "API-BCD:tau=0"], "tau=0 was given; it must be a number above zero"),
    (["-m", "API-BCD:tau"], "key=value"),
    (["--density", "0.01"], "use a density of at least"),
    (["--walk", "cycel"], "did you mean 'cycle'"),
    (["--timing", "papper"], "did you mean 'paper'"),
    (["--agents", "0"], "a whole number, one or more"),
    (["--agents", "1000"], "at most 354 agents"),
    (["--hops", "-3"], "hops=-3 was given"),
    (["--hops", "abc"], "--hops abc was given; it must be a whole number."),
    (["-n=2.5"], "--agents 2.5 was given; it must be a whole number."),
    (["--time-s", "10s"], "--time-s 10s was given; it must be a number."),
    (["--how", "by-label"], "how='even'"),
    (["--loss", "softmx"], "did you mean 'softmax'"),
    (["--loss", "logistic"], "loss='logistic' was given for regression; it takes 'least-squares'"),
    (["--weights", "row"], "did you mean 'rows'"),
    (["--sizes", "3,many"], "--sizes 3,many was given; write numbers, such as 30,20,10"),
    (["--slow", "3"], "--slow 3 was given; write AGENT=FACTOR, such as 3=10,5=10"),
    (["--slow", "20=2"], "slows agent 20 down; agents are numbered 0 to 19"),
    (["--slow", "3=-1"], "agent 3's slowdown is -1.0; it must be above zero"),
    (["nothere.toml"], "there is no experiment file nothere.toml"),
    (["key.toml"], "did you mean 'agents'"),
    (["kind.toml"], "agents = '3' was given; it must be a whole number"),
    (["broken.toml"], "broken.toml is not valid TOML"),
    (["method.toml"], "write each method as a table"),
    (["timing.toml", "--slow", "3=2"], "there is no timing named '3'"),
    (["--out", "key.toml"], "nothing can be written to the folder key.toml; give another"),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_2_with_nothing_written(words, sentence, tmp_path, monkeypatch, capsys):
    files = {"key": "agnets = 3", "kind": 'agents = "3"', "broken": "agents = ", "method": 'methods = ["I-BCD"]'}
    files["timing"] = "timing = 3"
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


def help_of(words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, [*words, "--help"])
    assert done.exit_code == 0
    return done.stdout


@pytest.mark.parametrize("words", [words for words, _ in every_command()], ids=" ".join)
def test_help_has_examples_shows_flags_as_flags_and_fits_80_columns(words, monkeypatch):
    text = help_of(words, monkeypatch)
    assert re.search(r"^ Examples? ", text, re.M)
    assert f"amble {' '.join(words)}" in text.partition("Usage:")[2].partition("\n")[2]
    assert "bool" not in text.lower()
    assert "list[" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_commands_are_in_groups(monkeypatch):
    text = help_of([], monkeypatch)
    assert [text.index(f"─ {panel} ─") for panel in PANELS] == sorted(text.index(f"─ {panel} ─") for panel in PANELS)
    assert "─ Commands ─" not in text
    assert re.search(r"─ Simulate ─.* compare .*─ Live ─.* up .* chaos .*─ Data ─.* data .* predict ", text, re.S)


def test_loading_the_commands_loads_nothing_heavy():
    code = "import sys\nfrom amble.cli import app\nprint(sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not re.findall(r"'(jax|matplotlib|sklearn|pandas|torch|scipy|numpy|networkx)'", loaded)


def test_the_help_of_compare_names_every_method_and_setting(monkeypatch):
    text = help_of(["compare"], monkeypatch)
    for label, kind in methods.METHODS.items():
        (line,) = re.findall(rf"• {re.escape(label)}(?::|  )(.*\n(?:    .*\n)*)", text)
        for field in fields(kind):
            assert re.search(rf"\b{field.name}\b", line), (label, field.name)
        for choice in (choice for names in getattr(kind, "choices", {}).values() for choice in names):
            assert choice in line


def test_compare_has_an_option_for_every_setting_of_a_file_with_its_default():
    ((_, command),) = [each for each in every_command() if each[0] == ["compare"]]
    helps = {name.lstrip("-").replace("-", "_"): param.help for param in command.params for name in param.opts}
    elsewhere = {"methods": "method", "scale": "no_scale", "intercept": "no_intercept"}
    defaults = {field.name: getattr(Experiment(), field.name) for field in fields(Experiment)}
    assert [name for name in defaults if elsewhere.get(name, name) not in helps] == []
    plain = {name: str(each) for name, each in defaults.items() if type(each) in (str, int, float)}
    assert {"data", "agents", "ridge"} <= set(plain)
    assert {name: re.search(r"\[default: (.*)\]", helps[name])[1] for name in plain} == plain
    listed = {
        "how": PARTITIONS,
        "walk": ("auto", *walks.NAMES),
        "timing": timing.NAMED,
        "weights": WEIGHTS,
        "task": TASKS,
    }
    for name, choices in listed.items():
        assert all(re.search(rf"\b{choice}\b", helps[name]) for choice in choices), name


@pytest.mark.parametrize(
    ("command", "option", "names"),
    [("compare", "--loss", LOSSES), ("compare", "--network", NETWORKS), ("up", "--network", NETWORKS)],
)
def test_the_help_lists_what_is_in_the_registry(command, option, names, monkeypatch):
    text = help_of([command], monkeypatch)
    line = " ".join(re.search(rf"│ {option} .*?(?= --)", text, re.S)[0].replace("│", " ").split())
    assert ", ".join(names) in line


def test_a_run_is_told_by_options_what_a_file_would_tell_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--loss", "softmax", "--slow", "3=10,1=2.5", "--weights", "rows", "--ridge", "0.01", "--test", "0.3"]
    words += ["--sizes", "10,20,30,40", "--every", "50", "--no-scale", "--no-intercept"]
    data = ["--data", "breast_cancer", "-n", "4", "-m", "I-BCD", "--hops", "100"]
    assert CliRunner().invoke(app, ["compare", *data, *words, "-o", "options"]).exit_code == 0
    (tmp_path / "all.toml").write_text(
        'data = "breast_cancer"\nagents = 4\nhops = 100\nloss = "softmax"\nweights = "rows"\nridge = 0.01\ntest = 0.3\n'
        "sizes = [10, 20, 30, 40]\nevery = 50\nscale = false\nintercept = false\n"
        'timing = {slowdown = {3 = 10, 1 = 2.5}}\nmethods = [{name = "I-BCD"}]\n'
    )
    assert CliRunner().invoke(app, ["compare", "all.toml", "-o", "file"]).exit_code == 0
    one, other = (amble.load_run(tmp_path / folder / "1-i-bcd") for folder in ("options", "file"))
    assert one.problem == other.problem
    assert (one.timing, one.recorded.tolist()) == (other.timing, [0, 50, 100])
    assert dict(one.timing.slowdown) == {3: 10, 1: 2.5}
    assert one.problem["settings"]["loss"] == "softmax"
    assert one.model.shape == (2 * 30,)
    assert one.model.tobytes() == other.model.tobytes()


def test_runs_start_at_the_model_of_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = np.linspace(-1, 1, 11)
    np.save("first.npy", first)
    words = ["compare", "-n", "4", "--hops", "8", "-m", "I-BCD", "-o", "x", "--start"]
    assert CliRunner().invoke(app, [*words, "first.npy"]).exit_code == 0
    assert np.array_equal(amble.load_run("x/1-i-bcd").consensus[0], first)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no file first.npy; give the path of one"),
        (b"no numbers", "first.npy is not a .npy file of numbers; write it with numpy.save"),
        (np.zeros(3), r"start has shape \(3,\); .* needs \(11,\)"),
    ],
)
def test_a_file_that_holds_no_initial_model_is_refused(tmp_path, content, sentence):
    file = tmp_path / "first.npy"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        np.save(file, content)
    done = run_amble("compare", "--start", "first.npy", cwd=tmp_path)
    assert done.returncode == 2
    assert re.search(sentence, " ".join(done.stderr.split()))
    assert not (tmp_path / "amble-out").exists()


def test_slow_agents_replace_those_of_a_file_and_leave_the_rest_of_its_timing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.toml").write_text('[timing]\nmodel = "unit"\ncompute = 0.5\nslowdown = {0 = 3}\n')
    words = ["-n", "4", "--hops", "8", "-m", "I-BCD", "--slow", "2=4", "-o", "x"]
    assert CliRunner().invoke(app, ["compare", "x.toml", *words]).exit_code == 0
    assert amble.load_run(tmp_path / "x" / "1-i-bcd").compute_s.tolist() == [0.5, 0.5, 2.0, 0.5]


def test_live_agents_hold_as_many_rows_as_they_are_given(tmp_path):
    done = run_amble("up", "--data", "diabetes", "-n", 3, "--sizes", "30,60,90", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [amble.read_file(tmp_path / "amble-up" / f"agent0{i}" / "rows.npz") for i in range(3)]
    assert [len(each.y) for each in rows] == [30, 60, 90]


def test_a_folder_whose_name_looks_like_markup_is_printed_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["compare", "-n", "4", "--hops", "8", "-m", "I-BCD", "-o", "my[bold]runs"])
    assert done.exit_code == 0, done.output
    assert "written to my[bold]runs/: 1-i-bcd.json" in done.output


def test_a_sentence_that_names_a_table_of_the_run_file_is_printed_whole(capsys):
    say("scale the columns (X_mean and X_std of [model])", "no model was written:")
    assert capsys.readouterr().out == "no model was written: scale the columns (X_mean and X_std of [model])\n"


def test_version():
    done = run_amble("--version", cwd=ROOT)
    assert done.stdout == f"amble {amble.__version__}\n"


def test_ctrl_c_keeps_what_there_is_and_says_so(tmp_path):
    """Relay is done at once; WPG with so small a step moves too little to arrive, and too much to be at rest."""
    words = ["-m", "Relay", "-m", "WPG:alpha=1e-12", "--tolerance", "1e-9", "--hops", "50000000", "-n", "4", "-o", "x"]
    command = [sys.executable, "-m", "amble", "compare", *words]
    child = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(tmp_path / "x" / "1-relay.json", child)
        child.send_signal(signal.SIGINT)
        line = child.stderr.readline() + child.stderr.readline()
        child.send_signal(signal.SIGINT)  # a second one waits, too
        out, err = child.communicate(timeout=100)
    finally:
        child.kill()
    assert "the results so far will be kept" in line
    assert child.returncode == 130, err
    assert "stopped early" in out
    first, second = (amble.load_run(tmp_path / "x" / name) for name in ("1-relay", "2-wpg"))
    assert (first.stopped, second.stopped) == ("tolerance", "interrupted")
    assert 0 < second.schedule.hops < 50_000_000


def wait_for(path, child):
    """Until the child has written the file."""
    for _ in range(2000):
        if path.is_file():
            return
        assert child.poll() is None, child.stderr.read()
        time.sleep(0.05)
    raise TimeoutError(path)


def test_ctrl_c_before_the_first_run_writes_nothing(tmp_path, monkeypatch, capsys):
    def interrupted_split(*parts, **options):
        signal.raise_signal(signal.SIGINT)
        return amble.split(*parts, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("amble.simulation.experiment.split", interrupted_split)
    monkeypatch.setattr(sys, "argv", ["amble", "compare", "-o", "x", *SMALL])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 130
    assert "before the first run ended; nothing was written" in said.out
    assert "the results so far will be kept" in said.err
    assert not list((tmp_path / "x").iterdir())


def test_compare_stops_at_a_metric(tmp_path):
    words = ["--data", "digits", "-n", "4", "-m", "WPG:alpha=0.3", "--every", "20", "--hops", "2000", "-o", "a"]
    done = run_amble("compare", *words, "--metric", "0.85", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    run = amble.load_run(tmp_path / "a" / "1-wpg")
    assert run.stopped == "metric"
    assert run.history["metric"][-1] >= 0.85 > run.history["metric"][-2]
    (tmp_path / "e.toml").write_text('data = "diabetes"\nagents = 4\nmetric = 0.6\nmethods = [{name = "WPG"}]\n')
    done = run_amble("compare", "e.toml", "-o", "b", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert amble.load_run(tmp_path / "b" / "1-wpg").history["metric"][-1] <= 0.6


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--data", "digits", "--metric", "90"], "an accuracy is a share of the test rows: give 0.9 for 90 %"),
        (["--data", "diabetes", "--metric", "-1"], "the NMSE is above zero, and lower is better"),
        (["--data", "diabetes", "--metric", "0.5", "--test", "0"], "has no metric on held-out rows; stop by hops"),
    ],
)
def test_a_metric_that_cannot_be_reached_is_refused_before_any_work(tmp_path, words, sentence):
    done = run_amble("compare", *words, "-o", "a", cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert not (tmp_path / "a").exists()
