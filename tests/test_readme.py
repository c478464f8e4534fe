"""What the README shows is what the software does."""

import re
from pathlib import Path

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
