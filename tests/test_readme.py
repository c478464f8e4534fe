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
    from amble.experiment import Experiment

    published, tracked = (
        {"name": "API-BCD", "tau": 0.1, "tokens": 5, "token_rule": rule} for rule in ("published", "tracked")
    )
    comparison = Experiment(methods=[published, tracked]).run(progress=False)
    (tokens, local), (mended, _) = ((run.history["metric"][-1], run.history["metric_local"][-1]) for run in comparison)
    words = " ".join(README.split())
    assert f"at test NMSE {tokens:.2f} in the figure, where the mean of the agents' models reaches {local:.2f}" in words
    assert f"and the optimum is {comparison.best_metric:.2f}." in words
    assert f"the solution of the penalised problem, {mended:.2f} here" in words


def test_links_lead_to_files():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (Path(__file__).parent.parent / target).is_file(), target
