"""What the README and the other pages show is what the software does."""

import configparser
import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_python_example_prints_what_the_readme_shows(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", README, re.S)
    shown = re.search(r"```text\n(.*?)```", README, re.S)
    exec(compile(code[1], "README.md", "exec"), {})
    assert capsys.readouterr().out == shown[1]


def test_links_lead_to_files():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (Path(__file__).parent.parent / target).is_file(), target


def test_the_service_is_started_again_until_that_is_of_no_use():
    """systemd gives up after five failures in ten seconds unless it is told not to."""
    pytest.importorskip("zenoh")
    from amble.live.agent import Ended

    page = (Path(__file__).parent.parent / "docs" / "live.md").read_text()
    unit = configparser.ConfigParser()
    unit.read_string(re.search(r"```ini\n(.*?)```", page, re.S)[1])
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["RestartPreventExitStatus"] == str(Ended.WITHOUT_A_MODEL.value)
