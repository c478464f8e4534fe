"""What stands beside the code: the hooks, the pinned versions, how to cite, and the glossary."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from doc_blocks import FENCE, ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOOKS = ROOT / ".pre-commit-config.yaml"


def hooks():
    return [hook for repository in yaml.safe_load(HOOKS.read_text())["repos"] for hook in repository["hooks"]]


def test_the_hooks_run_the_linters_of_make_lint():
    made = ["make", "--dry-run", "--old-file=.venv/.dev", "lint", "VENV=.venv"]
    steps = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [hook["entry"] for hook in hooks()] == [step for step in steps if step.startswith(".venv/bin/python -m")]
    assert {(hook["language"], hook["pass_filenames"]) for hook in hooks()} == {("system", False)}


def test_a_commit_with_an_unused_import_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "cache"))
    clone = tmp_path / "clone"
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / ".venv/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (clone / ".venv/bin/python").chmod(0o755)
    shutil.copy(HOOKS, clone)
    (clone / "mine.py").write_text("import os\n")
    subprocess.run(["git", "init", "--quiet"], cwd=clone, check=True)
    subprocess.run(["git", "add", "mine.py"], cwd=clone, check=True)

    def run(hook):
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", hook], cwd=clone, capture_output=True, text=True, check=False
        )

    refused = run("ruff-check")
    assert refused.returncode == 1
    assert "F401" in refused.stdout
    assert run("ruff-format").returncode == 0


def pins(python):
    """What pip would take from constraints.txt on this version of Python, by name."""
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    applied = [pin for pin in map(Requirement, lines) if pin.marker is None or pin.marker.evaluate(environment)]
    assert len({pin.name for pin in applied}) == len(applied), "two pins of one package"
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in applied}


@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_every_requirement_has_a_pin_that_fits_it(python):
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    wanted = [each for each in map(Requirement, lines) if each.name != "amble"]
    pinned = pins(python)
    for requirement in wanted:
        version = pinned.get(canonicalize_name(requirement.name))
        assert version, f"{requirement.name} has no pin; run make constraints"
        assert requirement.specifier.contains(version), f"{requirement} and {version}; run make constraints"


@pytest.mark.parametrize("target", ["demo", "test"])
def test_make_installs_the_pinned_versions(target, tmp_path):
    made = ["make", "--dry-run", target, f"VENV={tmp_path}/none"]
    steps = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (install,) = [step for step in steps.splitlines() if "pip install" in step]
    assert "--constraint constraints.txt" in install


def test_the_group_of_tools_is_the_extra():
    assert PROJECT["dependency-groups"] == {"dev": ["amble[dev]"]}
    assert "dev" in PROJECT["project"]["optional-dependencies"]


def test_the_citation_names_this_version_and_the_paper_of_the_readme():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)  # which the format requires
    for key in ("version", "license"):
        assert citation[key] == PROJECT["project"][key]
    (paper,) = citation["references"]
    assert paper["url"] == PROJECT["project"]["urls"]["Paper"]
    assert paper["url"].rpartition("/")[2] == paper["doi"].rpartition("arXiv.")[2]
    readme = " ".join((ROOT / "README.md").read_text().split())
    authors = ", ".join(author["family-names"] for author in paper["authors"])
    assert f"*{paper['title']}* ({authors})" in readme


# --- the glossary ----------------------------------------------------------------------------------------------------

GLOSSARY = ROOT / "docs/glossary.md"
NOUNS = [
    "account", "agent", "agreement", "authority", "batch", "board", "bundle", "custody", "cycle", "epoch",
    "generation", "gift", "guard", "hop", "journal", "lane", "lap", "lease", "ledger", "loss", "meeting", "messenger",
    "neighbour", "objective", "pair", "params", "patience", "reading", "record", "recount", "reissue", "replay", "role",
    "round", "slot", "split", "stage", "survey", "sweep", "token", "unit", "virtual time", "visit", "walk",
]  # fmt: skip
WITHOUT = (GLOSSARY, ROOT / "CHANGELOG.md")  # a list of changes is not read from its beginning
PAGES = [page for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")) if page not in WITHOUT]


def definitions():
    return re.findall(r"^- \*\*([a-z ]+)\*\*(?:, [a-z ]+)?: (.+?)(?=^- |\Z)", GLOSSARY.read_text(), re.M | re.S)


def test_every_noun_has_one_definition_in_the_order_of_the_alphabet():
    defined = [noun for noun, _ in definitions()]
    assert defined == sorted(NOUNS)
    assert GLOSSARY.read_text().count("\n- ") == len(defined)


@pytest.mark.parametrize(("noun", "text"), definitions(), ids=[noun for noun, _ in definitions()])
def test_a_definition_is_one_to_three_short_sentences(noun, text):
    sentences = re.split(r"(?<=\.)\s+", text.strip())
    assert text.strip().endswith(".")
    assert 1 <= len(sentences) <= 3, noun
    assert max(len(sentence.split()) for sentence in sentences) <= 35, noun


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_that_uses_such_a_noun_links_to_the_glossary(page):
    text = page.read_text()
    used = [noun for noun in NOUNS if re.search(rf"\b{noun}s?\b", FENCE.sub("", text))]
    links = [page.parent / target for target in re.findall(r"\]\(([^)#]*glossary\.md)[^)]*\)", text)]
    assert not used or GLOSSARY in map(Path.resolve, links), f"it uses {', '.join(used)}"
