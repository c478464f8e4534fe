"""A folder holds one comparison: another one is refused, or takes its place."""

import sys

import pytest

import amble
from amble import networks
from amble.cli import main
from amble.report.export import find_runs
from amble.results.kept import PICTURES

FOUR = [
    "compare",
    "-m",
    "I-BCD",
    "-m",
    "WPG",
    "-m",
    "Relay",
    "-m",
    "DGD",
    "--agents",
    "4",
    "--hops",
    "40",
    "-o",
    "here",
]
TWO = ["compare", "-m", "Relay", "-m", "D-ADMM", "--agents", "5", "--hops", "40", "-o", "here"]


@pytest.fixture
def run_amble(tmp_path, monkeypatch, capsys):
    def run(*words):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["amble", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr()

    return run


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_used_folder_is_refused_before_any_work(run_amble, tmp_path, monkeypatch):
    assert run_amble(*FOUR)[0] == 0
    before = content(tmp_path / "here")
    monkeypatch.setattr("amble.simulation.experiment.compare", None)  # the first run would fail
    code, said = run_amble(*TWO)
    assert code == 2
    assert (
        "here holds an earlier comparison (1-i-bcd, ...); give another with --out, or --again to replace it" in said.err
    )
    assert said.err.count("\n") == 1
    assert content(tmp_path / "here") == before


def test_a_mistake_in_the_command_is_named_before_the_used_folder(run_amble):
    assert run_amble(*FOUR)[0] == 0
    code, said = run_amble(*TWO, "--data", "diabetis")
    assert code == 2
    assert "did you mean 'diabetes'" in said.err


def test_again_replaces_what_amble_wrote_and_nothing_else(run_amble, tmp_path):
    assert run_amble(*FOUR)[0] == 0
    folder = tmp_path / "here"
    (folder / "notes.txt").write_text("mine")
    (folder / "settings.json").write_text("{}")
    amble.load_run(folder / "1-i-bcd").save(folder / "best")
    code, said = run_amble(*TWO, "--again")
    assert code == 0
    runs = ["1-relay", "2-d-admm", "best"]
    files = [f"{name}{end}" for name in runs for end in (".json", ".npz")]
    assert sorted(content(folder)) == sorted([*files, *PICTURES, "notes.txt", "settings.json"])
    listed = said.out[said.out.index("written to") :].replace("\n", " ")
    assert "1-relay.json, 2-d-admm.json, compare.png" in listed
    assert "i-bcd" not in listed
    (folder / "best.json").unlink()
    assert [run.method.label for run in find_runs([folder])] == ["Relay", "D-ADMM"]
    assert {run.network.agents for run in find_runs([folder])} == {5}


def test_a_file_that_only_looks_like_a_run_is_not_removed(run_amble, tmp_path):
    assert run_amble(*FOUR)[0] == 0
    (tmp_path / "here" / "2-wpg.json").write_text('{"sha256": "of another"}')
    before = content(tmp_path / "here")
    code, said = run_amble(*TWO, "--again")
    assert code == 2
    assert "here holds 2-wpg.json, which amble did not write in this form; move it" in said.err
    assert content(tmp_path / "here") == before


def test_a_folder_of_other_files_may_be_used(run_amble, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "notes.txt").write_text("mine")
    (tmp_path / "here" / "1-notes.json").write_text("{}")
    assert run_amble(*TWO)[0] == 0
    assert (tmp_path / "here" / "1-notes.json").read_text() == "{}"


def test_a_comparison_is_saved_where_there_is_none(tmp_path):
    problem, network = amble.split(amble.load("diabetes"), agents=4), networks.ring(4)
    options = {"hops": 8, "progress": False}
    three = amble.compare([amble.IBCD(), amble.WPG(), amble.Relay()], problem, network, **options)
    three.save(tmp_path)
    two = amble.compare([amble.DGD(), amble.Relay()], problem, network, **options)
    with pytest.raises(amble.AmbleError, match=r"holds an earlier comparison.*again=True to replace it"):
        two.save(tmp_path)
    assert len(find_runs([tmp_path])) == 3
    two.save(tmp_path, again=True)
    assert [run.method.label for run in find_runs([tmp_path])] == ["DGD", "Relay"]
    with pytest.raises(amble.AmbleError, match="holds an earlier comparison"):
        amble.compare([amble.IBCD()], problem, network, keep=tmp_path, **options)
    amble.compare([amble.IBCD()], problem, network, keep=tmp_path, again=True, **options)
    assert [run.method.label for run in find_runs([tmp_path])] == ["I-BCD"]
