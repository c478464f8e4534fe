"""Methods of one's own are as good as amble's: settings of every kind, both engines, saved runs, the command line."""

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import amble
from amble import AmbleError, methods
from amble.cli import main
from own_samples import Agent, Gossip, Steps

HERE = Path(__file__).parent
FILE = HERE / "own_samples.py"
PROBLEM = amble.split(amble.load("diabetes"), agents=6)


def go(method, hops=40, **options):
    return amble.simulate(method, PROBLEM, hops=hops, every=7, progress=False, **options)


def run_command(monkeypatch, capsys, *arguments):
    """(exit code, what was printed, what was said on the error stream) of the command line."""
    monkeypatch.setattr(sys, "argv", ["amble", *map(str, arguments)])
    try:
        code = main()
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    return code or 0, out, err


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"steps": 3},
        {"halve": True},
        {"order": "backwards"},
        {"shifts": (0.5, 1.0)},
        {"alpha": 1, "steps": np.int64(1)},
        {"tokens": 3},
    ],
    ids=str,
)
def test_settings_of_every_kind_reach_both_engines(settings):
    """Whole numbers, truth values and text decide what is computed; numbers of a formula do not recompile the loop."""
    one, other = (go(Steps(**settings), engine=engine) for engine in ("compiled", "plain"))
    np.testing.assert_allclose(one.consensus, other.consensus, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.models, other.models, rtol=1e-9, atol=1e-12)


def test_every_setting_makes_a_difference():
    runs = [go(Steps(**settings)) for settings in ({}, {"steps": 3}, {"halve": True}, {"order": "backwards"})]
    assert len({run.consensus[-1].tobytes() for run in runs}) == len(runs)
    assert runs[2].label == "Steps (alpha=0.1, steps=2, halve=True, order=forwards, shifts=(0.0,))"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"alpha": -1}, "Steps: alpha=-1 was given; it must be a number above zero"),
        ({"alpha": "small"}, "Steps: alpha='small' was given; it must be a number above zero"),
        ({"steps": 1.5}, "Steps: steps=1.5 was given; it must be a whole number"),
        ({"halve": 1}, "Steps: halve=1 was given; it must be True or False"),
        ({"order": 3}, "no order of Steps named '3'; choose one of backwards, forwards"),
        ({"tokens": 0}, "Steps: tokens=0 was given; it must be a whole number, one or more"),
        (
            {"shifts": [0.0]},
            r"Steps: shifts=\[0.0\] was given; a setting is a number, text, True, False, None or a tuple",
        ),
    ],
)
def test_settings_are_checked_when_the_method_is_constructed(settings, sentence):
    with pytest.raises(AmbleError, match=sentence):
        Steps(**settings)


@pytest.mark.parametrize("kind", [kind for kind in methods.METHODS.values() if methods.tunable(kind)])
def test_amble_s_own_are_too(kind):
    name = kind.positive[0]
    with pytest.raises(AmbleError, match=f"{kind.label}: {name}=-1 was given; it must be a number above zero"):
        kind(**{name: -1})


def test_a_step_that_cannot_be_compiled_says_so():
    """A number of a formula is an argument of the compiled loop: it has no value for Python's if."""

    @amble.method
    class Branching(Steps):
        def gift(self, f, agent, z):
            return super().gift(f, agent, z) if self.alpha > 0.5 else (agent, z, z[0] * 0)

    with pytest.raises(AmbleError, match=r"Branching cannot be compiled: .* or give engine='plain'"):
        go(Branching(), engine="compiled")
    assert go(Branching(), engine="plain").schedule.hops == 40


def without(name):
    """Steps without one of its parts."""
    parts = {key: value for key, value in vars(Steps).items() if not key.startswith("__") and key != name}
    return dataclass(frozen=True)(type("Bare", (), parts | {"__annotations__": Steps.__annotations__, "label": "Bare"}))


@pytest.mark.parametrize("part", ["work", "weigh", "agent"])
def test_a_missing_part_is_named(part):
    with pytest.raises(AmbleError, match=f"Bare has gift and no {part}; a method with gift needs label, work, agent"):
        go(without(part)())


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"work": {"gradient": 1}}, "Odd: work is .* name grad, prox, hessian"),
        ({"work": 1}, "Odd: work is 1; it says how often a visit calls the objective"),
        ({"weigh": "agent"}, "Odd: weigh is 'agent'; it must be one of agents, scalar, full"),
    ],
)
def test_a_part_that_makes_no_sense_is_shown(change, sentence):
    with pytest.raises(AmbleError, match=sentence):
        go(amble.method(type("Odd", (Steps,), {"label": "Odd", **change}))())


class Unfrozen:
    label: ClassVar[str] = "Unfrozen"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    weigh: ClassVar[str] = "agents"
    tokens: int = 1
    agent: Any = Steps.agent
    gift: Any = Steps.gift


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (Steps, r"class 'own_samples.Steps'> was given as a method; give one with its settings, such as Steps\(\)"),
        (Unfrozen(), "Unfrozen is not a frozen dataclass; write @amble.method above its class"),
        (dataclass(Unfrozen)(), "Unfrozen is not a frozen dataclass"),
        (np.ones(3), "was given as a method; give one with its settings"),
        (5, "5 was given as a method"),
        (Agent(1.0), "was given as a method"),
    ],
)
def test_what_is_no_method_is_refused(method, sentence):
    with pytest.raises(AmbleError, match=sentence):
        go(method)


@pytest.mark.parametrize("method", [Steps(steps=3, shifts=(0.0, 0.5)), Steps(tokens=2), Gossip(alpha=0.2)])
def test_a_saved_run_is_read_without_its_class_and_resumed_with_it(method, tmp_path):
    run, name = go(method), type(method).__name__
    run.save(tmp_path / "run")
    read = amble.load_run(tmp_path / "run")
    assert read.label == run.label
    assert read.stopped == run.stopped
    assert np.array_equal(read.model, run.model)
    assert all(np.array_equal(read.history[key], run.history[key]) for key in run.history)
    assert np.array_equal(read.models, run.models)
    with pytest.raises(AmbleError, match=rf"resume needs the class {name} .*own_samples.py.*load_run\(path, methods="):
        amble.resume(read, PROBLEM, hops=60)
    with pytest.raises(AmbleError, match=f"a simulation needs the class {name}"):
        go(read.method)
    read.save(tmp_path / "again")
    whole = go(method, 60)
    for given in (type(method), [type(method)], f"{FILE}:{name}", [amble.IBCD, Gossip, Steps]):
        loaded = amble.load_run(tmp_path / "again", methods=given)
        assert methods.settings(loaded.method) == methods.settings(method)
        assert np.array_equal(amble.resume(loaded, PROBLEM, hops=60, progress=False).consensus, whole.consensus)


def test_a_saved_run_never_imports_what_it_names(tmp_path):
    """A file from a stranger may name any code; only what the user names is run."""
    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    file = go(Steps()).save(tmp_path / "run")
    plain = json.loads(file.read_text())
    plain["own"] |= {"file": str(tmp_path / "trap.py"), "module": "trap"}
    file.write_text(json.dumps(plain))
    amble.load_run(file)
    amble.load_run(file, methods=[Steps])
    assert not (tmp_path / "sprung").exists()


def test_a_class_with_the_label_of_another_is_not_taken_for_it(tmp_path):
    impostor = amble.method(type("Impostor", (Steps,), {"label": "WPG"}))()
    go(impostor).save(tmp_path / "run")
    assert not isinstance(amble.load_run(tmp_path / "run").method, amble.WPG)
    assert amble.load_run(tmp_path / "run", methods=type(impostor)).method == impostor


def test_a_run_that_an_older_amble_saved_is_found_by_its_label(tmp_path):
    """It says nothing about where the class was."""
    file = go(Steps()).save(tmp_path / "run")
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key != "own"}))
    assert amble.load_run(file).label == "Steps (alpha=0.1, steps=2, halve=False, order=forwards, shifts=(0.0,))"
    assert amble.load_run(file, methods=Steps).method == Steps()


def test_methods_that_are_no_classes_are_refused(tmp_path):
    go(Steps()).save(tmp_path / "run")
    with pytest.raises(AmbleError, match=r"methods=Steps\(.*\) was given; give classes, such as methods=\[Heavy\]"):
        amble.load_run(tmp_path / "run", methods=Steps())


def test_the_command_line_takes_a_class_in_a_file(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(HERE)
    chosen = ("-m", "own_samples.py:Steps", "-m", "own_samples.py:Steps:alpha=0.2,steps=3,halve=true", "-m", "WPG")
    code, out, err = run_command(monkeypatch, capsys, "compare", *chosen, "--hops", 30, "-n", 5, "-o", tmp_path)
    assert (code, err) == (0, "")
    assert "Steps" in out
    loaded = amble.load_run(tmp_path / "2-steps", methods="own_samples.py:Steps")
    assert methods.settings(loaded.method)["steps"] == 3
    assert methods.settings(loaded.method)["halve"] is True
    code, out, err = run_command(monkeypatch, capsys, "report", tmp_path, "-o", tmp_path / "page" / "report.html")
    assert (code, err) == (0, "")
    assert "Steps (alpha=0.2, steps=3" in (tmp_path / "page" / "report.html").read_text()


def test_so_does_an_experiment_file(monkeypatch, capsys, tmp_path):
    settings = tmp_path / "experiment.toml"
    settings.write_text(f'agents = 5\nhops = 20\n[[methods]]\nname = "{FILE}:Steps"\nsteps = 3\n')
    code, _, err = run_command(monkeypatch, capsys, "compare", settings, "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert amble.load_run(tmp_path / "out" / "1-steps").label.startswith("Steps (alpha=0.1, steps=3")


def test_its_methods_are_in_files_beside_it(monkeypatch, capsys, tmp_path):
    """Wherever amble is started."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "mine.py").write_text(FILE.read_text())
    settings = tmp_path / "beside" / "experiment.toml"
    settings.write_text('agents = 5\nhops = 20\n[[methods]]\nname = "mine.py:Steps"\n')
    monkeypatch.chdir(tmp_path)
    code, _, err = run_command(monkeypatch, capsys, "compare", settings, "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert amble.load_run(tmp_path / "out" / "1-steps").schedule.hops == 20


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nowhere.py:Steps", "'nowhere.py:Steps' was given as a method, and there is no file .*nowhere.py"),
        ("own_samples.py:Step", "no method in own_samples.py named 'Step'; did you mean 'Steps'"),
        ("own_samples.py", "'own_samples.py' was given for a method of your own; name its class too"),
        ("own_samples.py:Steps:stesp=2", "no setting of Steps named 'stesp'; did you mean 'steps'"),
        ("own_samples.py:Steps:steps=2.5", "Steps: steps=2.5 was given; it must be a whole number"),
        ("own_samples.py:Agent", "Agent in own_samples.py has no step: write one of gift, local, visit, pair, round"),
        ("leaving.py:Steps", "leaving.py cannot be imported: line 2: SystemExit: 0"),
        ("broken.py:Steps", r"broken.py cannot be imported: line 2: NameError: name 'nothing' is not defined"),
        ("unwritten.py:Steps", "unwritten.py cannot be imported: line 1: SyntaxError"),
    ],
)
def test_a_class_that_cannot_be_had_is_refused_in_a_sentence(monkeypatch, capsys, tmp_path, name, sentence):
    (tmp_path / "own_samples.py").write_text(FILE.read_text())
    (tmp_path / "broken.py").write_text("import os\nnothing\n")
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "unwritten.py").write_text("class Steps(:\n")
    monkeypatch.chdir(tmp_path)
    code, _, err = run_command(monkeypatch, capsys, "compare", "-m", name, "-o", "out")
    assert code != 0
    assert err.startswith("amble: ")
    assert re.search(sentence, " ".join(err.split()))
    assert not (tmp_path / "out").exists()


def test_a_live_run_s_settings_import_nothing(tmp_path):
    """A bundle comes from someone else; its method is one of amble's."""
    from amble.live.settings.parts import make_method

    (tmp_path / "trap.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')\n")
    with pytest.raises(AmbleError, match="no method named"):
        make_method({"name": f"{tmp_path / 'trap.py'}:Steps"}, 4)
    assert not (tmp_path / "sprung").exists()


MISTAKE = """import amble


@amble.method
class Heavy:
    alpha: float = 0.1
    tokens: int = 1
    token_rule: str = "tracked"
    work = {"grad": 1}
    positive = ("alpha",)

    def local(self, f, x, s):
        return x - self.alpha * f.gradient(x)
"""


@pytest.mark.parametrize("more", [[], ["--tune"]], ids=["", "tune"])
def test_a_mistake_in_a_file_of_your_own_is_one_sentence_with_its_line(tmp_path, monkeypatch, capsys, more):
    file = tmp_path / f"heavy_{len(more)}.py"  # a file is imported once
    file.write_text(MISTAKE)
    words = ("compare", "-n", 4, "-m", f"{file}:Heavy", "--hops", 20, "-o", tmp_path / "out", *more)
    code, _, err = run_command(monkeypatch, capsys, *words)
    assert code == 2
    line = MISTAKE.splitlines().index("        return x - self.alpha * f.gradient(x)") + 1
    assert "the method Heavy failed with AttributeError: 'LeastSquares' object has no attribute 'gradient'" in err
    assert f"({file}:{line}); fix it, and test it with amble.testing.check_method." in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("engine", ["plain", "compiled"])
def test_a_mistake_in_a_method_is_the_cause_of_the_error(engine):
    @amble.method
    class Wrong:
        tokens: int = 1
        token_rule: str = "tracked"
        work: ClassVar[dict[str, int]] = {"grad": 1}

        def local(self, f, x, s):
            return f.grad(x) + s + 1 // 0

    with pytest.raises(AmbleError, match="the method Wrong failed with ZeroDivisionError: integer") as caught:
        go(Wrong(), engine=engine)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_mistake_in_an_objective_is_one_sentence_with_its_cause():
    class Mistaken:
        def value(self, w):
            return float(w @ w)

        def grad(self, w):
            return self.factor * w

    problem = amble.Problem.from_objectives([Mistaken(), Mistaken()], dimension=3)
    sentence = r"agent 0, of class Mistaken, fails in grad\(w\) for an array w of 3 numbers, with AttributeError"
    with pytest.raises(AmbleError, match=sentence) as raised:
        amble.simulate(amble.WPG(alpha=0.5), problem, hops=4)
    assert isinstance(raised.value.__cause__, AttributeError)
