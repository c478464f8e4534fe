"""amble up in a folder that has a run already, or is in use; and amble up that is told to end. With real processes."""

import contextlib
import re
import shutil
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("zenoh")

from amble.errors import AmbleError
from amble.live.cluster import up
from amble.live.records import collect, record
from amble.progress import interruptible
from amble.results import model_file, model_reading
from amble.simulation.experiment import Experiment
from test_up import ENDLESS, agents_of, amble, begin, visited, wait_for

pytestmark = pytest.mark.long

LONG_S = 90.0


def again(folder, *words, **options):
    return amble("up", "--data", "diabetes", "-n", 3, "--ridge", 0.01, "--again", "-o", folder, *words, **options)


@contextlib.contextmanager
def begun(folder, *words):
    """An amble up that goes on forever, with four agents; nothing of it is left when the test has ended."""
    process = begin(folder, *ENDLESS, *words)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=60)
        wait_for(lambda: not agents_of(folder), LONG_S)


def wait_for_visits(folder, process):
    """Of all four agents: in a folder of three, too, they are the new ones."""
    wait_for(lambda: visited(folder) or process.poll() is not None, LONG_S)
    assert process.poll() is None, process.communicate()


def in_one_sentence(told, words):
    assert told.returncode == 2, told.stdout + told.stderr
    assert len(told.stderr.strip().splitlines()) == 1, told.stderr
    assert words in told.stderr


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    folder = tmp_path_factory.mktemp("again") / "run"
    told = again(folder)
    assert told.returncode == 0, told.stdout + told.stderr
    return folder


@pytest.fixture
def made(first, tmp_path):
    """A run of its own for each test."""
    return shutil.copytree(first, tmp_path / "run")


def test_again_and_again_also_by_a_link_to_the_folder(made):
    link = made.parent / "link"
    link.symlink_to(made)
    before = (made / model_file.FILE).stat().st_mtime_ns
    for folder in (made, link):
        told = again(folder)
        assert told.returncode == 0, told.stdout + told.stderr
    assert link.is_symlink()
    assert (made / model_file.FILE).stat().st_mtime_ns > before
    assert {path.name for path in made.parent.iterdir()} == {"run", "link"}


def test_the_folder_that_a_person_is_in_is_not_replaced(made, tmp_path):
    """Their shell would be nowhere, and the next command could not even say so."""
    for folder, inside in ((".", made), ("../run", made), ("..", made / "agent00")):
        in_one_sentence(again(folder, cwd=inside), "you are in")
    (tmp_path / "empty").mkdir()
    told = amble("up", "--data", "diabetes", "-n", 3, "-o", ".", cwd=tmp_path / "empty")
    in_one_sentence(told, "you are in")
    assert (made / model_file.FILE).is_file()


def test_in_a_folder_that_is_gone_every_command_is_one_sentence(tmp_path):
    gone = tmp_path / "gone"
    program = f"import os, sys; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); sys.argv = ['amble', *{{}}]"
    for words in (["up", "--again"], ["status", "x"]):
        gone.mkdir()
        code = program.format(words) + "\nfrom amble.cli import main\nmain()"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        in_one_sentence(told, "the folder that you are in has been deleted")


def test_a_run_that_goes_on_is_not_replaced_and_one_that_was_killed_is(made):
    with begun(made, "--again") as process:
        wait_for_visits(made, process)
        in_one_sentence(again(made), "is in use")
    wait_for(lambda: is_free(made), LONG_S)
    told = again(made)
    assert told.returncode == 0, told.stdout + told.stderr
    assert len(collect.agent_folders([made])) == 3


def is_free(folder):
    try:
        up.check_folder(folder, again=True)
    except AmbleError as error:
        assert "is in use" in str(error)  # noqa: PT017
        return False
    return True


def test_an_agent_that_has_only_just_been_started_is_not_forgotten(made):
    """It holds its folder before it has opened its journal."""
    with begun(made, "--again") as process:
        wait_for(lambda: agents_of(made), LONG_S)
        process.kill()
        process.wait()
        assert not is_free(made)
    wait_for(lambda: is_free(made), LONG_S)  # a process that ends is gone from /proc before it lets go of its files


def test_of_two_at_once_one_trains_and_the_other_says_why_not(made):
    told = []
    threads = [threading.Thread(target=lambda: told.append(again(made, "--pause", 0.01))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    codes = sorted(each.returncode for each in told)
    for each in told:
        assert "Traceback" not in each.stderr
    assert codes in ([0, 0], [0, 2]), [each.stderr for each in told]  # one after the other is right, too
    refused = [each for each in told if each.returncode]
    assert all(len(each.stderr.strip().splitlines()) == 1 for each in refused)
    assert record.load(made / record.FILE) == collect.collect(collect.agent_folders([made]))


def test_a_new_folder_that_another_has_filled_meanwhile_is_not_replaced(made):
    """Nothing was said of --again, so what is there by then stays."""
    settings = Experiment().with_settings({"data": "diabetes", "agents": 3})
    plan = up.prepare(settings, {"hops": 10}, made.parent / "new", again=False)
    shutil.copytree(made, plan.folder)
    with pytest.raises(AmbleError, match="holds an earlier run"):
        up.start(plan)
    assert (plan.folder / model_file.FILE).read_bytes() == (made / model_file.FILE).read_bytes()


@pytest.mark.parametrize("damage", ["journal", "settings", "empty"])
def test_what_is_damaged_can_be_replaced(made, damage):
    if damage == "journal":
        (made / "agent00" / "journal.db").write_bytes(b"SQLite format 3\0")
    elif damage == "settings":
        (made / "agent00" / "agent.toml").write_text("half of")
    else:
        for path in made.glob("agent*"):
            shutil.rmtree(path)
    told = again(made)
    assert told.returncode == 0, told.stdout + told.stderr


def test_a_run_that_one_has_joined_and_one_has_left_is_replaced(made):
    with begun(made, "--again", "--pause", "0.002", "--network", "complete") as process:
        wait_for_visits(made, process)
        where = ["--host", "127.0.0.1", "--port", "19999", "--near", "agent00", "--near", "agent01"]
        told = amble("join", made, "late", *where, "--data", "rows.npz")
        assert told.returncode == 0, told.stderr
        told = amble("leave", made / "agent03")
        assert told.returncode == 0, told.stdout + told.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    told = again(made)
    assert told.returncode == 0, told.stdout + told.stderr
    assert not (made / "late").exists()


# --- told to end ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("times", [1, 2])
def test_what_there_is_is_kept_when_it_is_told_to_end(tmp_path, number, code, times):
    """SIGTERM, as a service manager or kill sends it, as well as Ctrl-C; also twice."""
    folder = tmp_path / "run"
    with begun(folder) as process:
        wait_for_visits(folder, process)
        for _ in range(times):
            process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert "the results so far were kept" in said
    assert not agents_of(folder)
    assert np.isfinite(model_reading.read(folder / model_file.FILE).w).all()
    assert record.load(folder / record.FILE).hops > 0
    assert amble("replay", folder).returncode == 0


def test_told_to_end_before_any_visit_it_writes_no_model(tmp_path):
    """No agent has a model then, and zeros are none."""
    folder = tmp_path / "run"
    with begun(folder, "--pause", "10") as process:
        wait_for(lambda: any(path.stat().st_size for path in folder.glob("*/log.txt")), LONG_S)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    assert "no model was written" in said
    assert not list(folder.rglob("model.np*"))


def test_a_library_call_leaves_sigterm_alone():
    """SIGTERM ends a user's program that calls simulate, as before."""
    before = signal.getsignal(signal.SIGTERM)
    with interruptible():
        assert signal.getsignal(signal.SIGTERM) is before
    with interruptible(patient=True) as asked:
        assert signal.getsignal(signal.SIGTERM) is not before
        signal.raise_signal(signal.SIGTERM)
        assert asked.is_set()
        assert asked.code == 143
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize(
    ("alpha", "stop"),
    [("50", []), ("50", ["--tolerance", "0", "--hops", "60"]), ("1", ["--tolerance", "0", "--hops", "300"])],
    ids=["beyond bounds", "at its limit", "slowly"],
)
def test_a_run_that_diverges_has_no_model_and_says_why(tmp_path, alpha, stop):
    """A failed run ends with a non-zero exit code, writes no model that looks good, and names the likely cause."""
    folder = tmp_path / "run"
    told = amble("up", "--data", "diabetes", "-n", 3, "-m", f"WPG:alpha={alpha}", *stop, "-o", folder)
    assert told.returncode == 1, told.stdout + told.stderr
    said = " ".join(told.stdout.split())
    assert "no model was written: " in said
    assert "diverged" in said
    assert re.search(
        rf"alpha = {alpha} is above 2 / L = [0-9.]+, with L the smoothness of the loss of agent0[0-2]", said
    )
    assert "scale the columns" not in said
    assert not [*folder.rglob("model.np*")]


def test_a_run_that_ends_before_everybody_was_met_says_whose_data_the_model_lacks(tmp_path):
    told = amble("up", "--data", "diabetes", "-n", 4, "-m", "Relay", "--hops", 2, "-o", tmp_path / "run")
    assert told.returncode == 0, told.stdout + told.stderr
    met = {name for name, lines in record.load(tmp_path / "run" / record.FILE).visits.items() if lines}
    unmet = sorted({f"agent0{k}" for k in range(4)} - met)
    assert len(unmet) == 2
    said = " ".join(told.stdout.split())
    assert (
        f"the run ended before a token visited {', '.join(unmet)}: the model lacks their data; give more --hops" in said
    )
    assert "failed" not in said
    assert np.isfinite(model_reading.read(tmp_path / "run" / model_file.FILE).w).all()
