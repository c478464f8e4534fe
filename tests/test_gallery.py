"""The examples of the gallery run, print what is known, and draw their pictures; two of them as notebooks."""

import doctest
import json
import os
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient
from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
from sphinx_gallery.notebook import jupyter_notebook
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

from doc_blocks import CHECKER, LIMIT_S, ROOT

pytestmark = pytest.mark.long

EXAMPLES = {path.stem: path for path in sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))}
NOTEBOOKS = ("plot_5_tokens", "plot_8_pooled")
ENVIRONMENT = {**os.environ, "JAX_PLATFORMS": "cpu", "MPLBACKEND": "Agg"}
PRINTED = {
    "plot_1_figure_3": """\
...: test NMSE of the optimum 0...
I-BCD (tau=1): 0...
API-BCD (tau=0.1, tokens=5, published): 0...
API-BCD (tau=0.1, tokens=5, tracked): 0...
WPG (alpha=0.5): 0...
Relay (full): 0...
""",
    "plot_2_stragglers": """\
Relay: 0.6 s, with a straggler 1.4 s, 2.6 times as long
AD-PSGD: 1.7 s, with a straggler 1.8 s, 1.1 times as long
D-ADMM: 0.3 s, with a straggler 3.0 s, 9.2 times as long
FedAvg: 0.5 s, with a straggler 4.1 s, 8.5 times as long
""",
    "plot_3_label_skew": """\
even, Relay: distance 0.0..., accuracy 0.97...
even, FedAvg: distance 0.12, accuracy 0.967
dirichlet, Relay: distance 0.0..., accuracy 0.97...
dirichlet, FedAvg: distance 0.26, accuracy 0.975
by-label, Relay: distance 0.0..., accuracy 0.97...
by-label, FedAvg: distance 0.53, accuracy 0.964
""",
    "plot_4_topology": """\
messages until within 0.3 of the optimum: on a cycle, at random
ring: 871, 9,606
grid: 871, 2,807
geometric: 1,119, 4,143
complete: 871, 1,660
""",
    "plot_5_tokens": """\
M = 1: 49 hop times, 30 kB
M = 2: 25 hop times, 31 kB
M = 5: ... hop times, ... kB
M = 10: ... hop times, ... kB
M = 25: ... hop times, ... kB
""",
    "plot_6_token_rules": """\
API-BCD (tau=0.1, tokens=5, published): length of the model 0.07
API-BCD (tau=0.1, tokens=5, scaled): length of the model 0.81
API-BCD (tau=0.1, tokens=5, tracked): length of the model 0.81
I-BCD (tau=0.5): length of the model 0.81
centralised optimum: 0.91
""",
    "plot_7_live": """\
replayed: ... digests are equal
WPG with 2 tokens, stopped by hops
""",
    "plot_8_pooled": """\
largest relative difference of a coefficient below 1e-9: True
of a standard error: True
""",
    "plot_9_network": """\
WPG (alpha=1): accuracy 0..., of the last ten records 0.8... to 0.9...
TokenSGD (alpha=0.03, step=momentum): accuracy 0.9..., of the last ten records 0.8... to 0.9...
TokenSGD (alpha=0.1, local_steps=5): accuracy 0.9..., of the last ten records 0.9... to 0.9...
FedAvg (alpha=0.3, local_steps=5): accuracy 0..., of the last ten records 0.7... to 0.8...
{'A': (9, 16), 'B': (256, 10), 'b': (10,)}
""",
}
PICTURES = {
    "plot_1_figure_3": {"figure-3.png"},
    "plot_2_stragglers": {"stragglers.png", "timeline.png"},
    "plot_3_label_skew": {"partition.png", "label-skew.png"},
    "plot_4_topology": {"network.png"},
    "plot_6_token_rules": {"token-rules.png"},
    "plot_7_live": {"timeline.png", "predicted.png"},
    "plot_9_network": {"network.png"},
}


def check(printed, wanted):
    assert CHECKER.check_output(wanted, printed, doctest.ELLIPSIS), f"it prints\n{printed}\ninstead of\n{wanted}"


def test_there_are_nine_examples():
    assert list(EXAMPLES) == list(PRINTED)
    assert len(EXAMPLES) == 9
    assert set(PICTURES) | set(NOTEBOOKS) == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_a_headline_and_a_conclusion(name):
    _, (_, text, _), *_ = (None, *split_code_and_text_blocks(str(EXAMPLES[name]))[1])
    title, line, *_ = text.strip().splitlines()
    assert line == "=" * len(title)
    assert "**Conclusion.** " in text


@pytest.mark.parametrize("name", PICTURES)
def test_an_example_prints_and_draws(name, tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES[name]], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert done.returncode == 0, done.stderr
    check(done.stdout, PRINTED[name])
    assert {path.name for path in tmp_path.glob("*.png")} == PICTURES[name]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_an_example_runs_as_a_notebook(name, tmp_path, monkeypatch):
    """As the site makes it from the script, in a kernel of Jupyter."""
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    _, blocks = split_code_and_text_blocks(str(EXAMPLES[name]))
    made = jupyter_notebook(
        blocks, {**DEFAULT_GALLERY_CONF, "first_notebook_cell": "%matplotlib inline"}, str(tmp_path)
    )
    notebook = nbformat.reads(json.dumps(made), as_version=4)
    NotebookClient(notebook, timeout=LIMIT_S, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    check("".join(output.text for output in outputs if output.get("name") == "stdout"), PRINTED[name])
    assert any("image/png" in output.get("data", {}) for output in outputs)
