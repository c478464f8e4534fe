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


def test_figures_in_the_result_are_those_of_the_demo():
    """ "at test NMSE 0.85 in the figure, where the mean of the agents' models reaches 0.51 and the optimum is 0.48" """
    from amble.experiment import Experiment

    comparison = Experiment(methods=[{"name": "API-BCD", "tau": 0.1, "tokens": 5}]).run(progress=False)
    history = comparison[0].history
    for value in (history["metric"][-1], history["metric_local"][-1], comparison.best_metric):
        assert f"{value:.2f}" in README


def test_links_lead_to_files():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (Path(__file__).parent.parent / target).is_file(), target
