"""amble init as a real process: the bundle that it makes, renews or refuses."""

import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from amble import AmbleError
from amble.live import toml
from amble.live.settings import bundle
from amble.live.settings.config import AgentConfig, Config
from amble.live.trust import identity
from config_samples import agents, made, model, refused, settings


def run_amble(*words, cwd):
    command = [sys.executable, "-W", "error", "-m", "amble", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def here(tmp_path):
    (tmp_path / "run.toml").write_text(toml.written(settings()))
    return tmp_path


def content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_init_makes_a_bundle_with_what_each_agent_needs(here):
    done = run_amble("init", "run.toml", "-o", "new/bundle", "--days", 90, cwd=here)
    assert done.returncode == 0, done.stderr
    assert "a, b, c, d" in done.stdout
    out = here / "new/bundle"
    assert sorted(path.name for path in out.iterdir()) == ["a", "authority", "b", "c", "d"]
    assert sorted(path.name for path in (out / "authority").iterdir()) == ["certificate.pem", "key.pem"]
    assert list((here / "new").iterdir()) == [out]  # nothing is left beside
    config = Config.read(here / "run.toml")
    for name in "abcd":
        files = sorted(path.name for path in (out / name).iterdir())
        assert files == ["agent.toml", "authority.pem", "certificate.pem", "key.pem"]
        assert AgentConfig.read(out / name) == config.agent(name)
        assert identity.check(out / name, name, datetime.now(UTC)) == []
        assert stat.S_IMODE((out / name / "key.pem").stat().st_mode) == 0o600
        assert (out / name / "authority.pem").read_bytes() == (out / "authority/certificate.pem").read_bytes()


def test_a_bundle_that_is_there_is_kept_and_an_empty_folder_is_used(here):
    (here / "out").mkdir()
    assert run_amble("init", "run.toml", "-o", "out", cwd=here).returncode == 0
    before = content(here)
    done = run_amble("init", "run.toml", "-o", "out", cwd=here)
    assert done.returncode == 2
    assert "out exists and is not empty; give another folder, or --renew" in done.stderr
    assert content(here) == before


def test_renew_makes_new_certificates_by_the_same_authority_and_nothing_else(here):
    run_amble("init", "run.toml", "-o", "out", "--days", 20, cwd=here)
    out = here / "out"
    own = out / "b" / "agent.toml"
    own.write_text(own.read_text().replace("visits_max = 1000000", "visits_max = 7"))  # which is its own affair
    before = content(out)
    assert len(identity.check(out / "a", "a", datetime.now(UTC))) == 1
    done = run_amble("init", "run.toml", "-o", "out", "--renew", cwd=here)
    assert done.returncode == 0, done.stderr
    after = content(out)
    changed = {str(path) for path in before if before[path] != after[path]}
    assert before.keys() == after.keys()
    assert changed == {f"{name}/{file}" for name in "abcd" for file in ("certificate.pem", "key.pem")}
    assert identity.check(out / "a", "a", datetime.now(UTC)) == []


def test_renew_refuses_other_settings_another_run_and_no_bundle(here):
    run_amble("init", "run.toml", "-o", "out", cwd=here)
    before = content(here / "out")
    (here / "changed.toml").write_text(toml.written(settings(**agents(host="10.0.0.9"))))
    (here / "other.toml").write_text(toml.written(settings(name="other")))
    for words, sentence in (
        (("changed.toml", "-o", "out"), "are not those of .*agent.toml, and --renew makes certificates only"),
        (("other.toml", "-o", "out"), "is of the run 'plant', and 'other' was given"),
        (("run.toml", "-o", "none"), "there is no authority in .*none"),
        (("run.toml", "-o", "out", "--days", 9999), "days=9999 was given; certificates are valid for 1 to 3650"),
    ):
        done = run_amble("init", *words, "--renew", cwd=here)
        assert done.returncode == 2
        with refused(sentence):
            raise AmbleError(done.stderr)
    assert content(here / "out") == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "no run file was given; write one first: amble init --example > run.toml"),
        (("none.toml",), "there is no run file none.toml"),
        (("bad.toml",), "did you mean 'ridge'"),
        (("run.toml", "--days", "0"), "days=0 was given"),
        (("run.toml", "-o", "run.toml"), "run.toml exists and is not empty"),
        (("run.toml", "-o", "run.toml/x"), "cannot be written"),
    ],
)
def test_what_init_refuses_leaves_nothing_behind(here, words, sentence):
    (here / "bad.toml").write_text(toml.written(settings(**model(rigde=1))))
    before = sorted(here.rglob("*"))
    done = run_amble("init", *words, cwd=here)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert sentence in done.stderr
    assert sorted(here.rglob("*")) == before


def test_the_example_that_is_printed_makes_a_bundle(tmp_path):
    done = run_amble("init", "--example", cwd=tmp_path)
    assert done.stdout == bundle.EXAMPLE
    (tmp_path / "run.toml").write_text(done.stdout)
    done = run_amble("init", "run.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert AgentConfig.read(tmp_path / "bundle/south").port == 7448


def test_when_the_disk_is_full_half_way_nothing_is_left(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(AgentConfig, "write", full)
    with refused(r"cannot be written \(No space left on device\)"):
        bundle.make_bundle(made(), tmp_path / "out", 10)
    assert list(tmp_path.iterdir()) == []
