"""What README, the pages of docs and the help show is what the software does: see doc_blocks.py."""

import configparser
import re
import runpy
import subprocess
import tomllib

import pytest

from amble.simulation.experiment import Experiment, read
from amble.sweeps.settings import arguments, read_settings
from doc_blocks import (
    COMMAND,
    FENCE,
    ROOT,
    blocks_of,
    check_command,
    check_inline,
    every_command,
    inline_of,
    run_page,
)

pytestmark = pytest.mark.long

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("examples/*.md")),
]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.parametrize("name", NAMES)
def test_every_block_of_a_page_runs_or_says_why_not(name, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    run_page(blocks_of(name, (ROOT / name).read_text()), tmp_path)


@pytest.mark.parametrize("name", [*NAMES, "CHANGELOG.md"])
def test_prose_names_only_what_there_is(name):
    wrong = []
    for code in inline_of((ROOT / name).read_text()):
        try:
            check_inline(code)
        except Exception as error:
            wrong.append(f"{code}: {error!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("name", NAMES)
def test_commands_are_in_fenced_blocks_and_links_lead_to_files(name):
    page = (ROOT / name).read_text()
    for line in FENCE.sub("", page).splitlines():
        assert not (line.startswith("    ") and COMMAND.match(line.strip())), f"{line.strip()}: fence it, as ```sh"
    for target in re.findall(r"\]\((?!http)([^)#]+)[^)]*\)", page):
        assert (ROOT / name).parent.joinpath(target).exists(), target


@pytest.mark.parametrize("name", [*NAMES, "CHANGELOG.md"])
def test_no_figure_is_still_to_be_filled_in(name):
    """As `RATIO` on a line of its own was."""
    assert (
        re.findall(r"^\s*[A-Z_]{3,}\s*$|\bTODO\b|\bFIXME\b|\bTBD\b", FENCE.sub("", (ROOT / name).read_text()), re.M)
        == []
    )


COMMANDS = {" ".join(words): command for words, command in every_command()}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_of_every_help_are_commands(name):
    examples = [code for code in inline_of(COMMANDS[name].help) if COMMAND.match(code)]
    assert [code for code in examples if code.startswith(f"amble {name}")]
    for code in examples:
        check_command(code)


def test_every_example_is_tested_here():
    assert {path.suffix if path.suffix == ".toml" else path.name for path in ROOT.glob("examples/*")} == {
        ".toml",
        "demo.py",
        "gallery",  # by test_gallery.py
        "hospitals",  # by docs/sites.md
        "hospitals.py",
    }


def test_the_hospitals_are_those_that_their_script_makes(monkeypatch, tmp_path):
    made = runpy.run_path(str(ROOT / "examples/hospitals.py"))
    monkeypatch.setitem(made["main"].__globals__, "FOLDER", tmp_path / "hospitals")
    made["main"]()
    for path in (tmp_path / "hospitals").iterdir():
        assert path.read_bytes() == (ROOT / "examples/hospitals" / path.name).read_bytes()


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*.toml")), ids=lambda path: path.name)
def test_an_example_of_an_experiment_is_one(path):
    if path.name == "sweep.toml":
        assert len(arguments(*read_settings(read(path)))["method"]) == 3
    else:
        methods, problem, network = Experiment().with_settings(read(path)).build()
        assert len(methods) == len(tomllib.loads(path.read_text())["methods"])
        assert problem.agents == network.agents
    check_command(path.read_text().partition("\n")[0].removeprefix("# "))


def test_the_demo_says_what_is_seen_and_what_to_type_next(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the second replaces what the first saved
        names = runpy.run_path(str(ROOT / "examples/demo.py"), run_name="__main__")
        seen, _, following = capsys.readouterr().out.partition("What to type next")
    assert (tmp_path / "demo" / "compare.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "demo" / "report.html").is_file()
    for run in names["runs"]:
        assert len(re.findall(re.escape(run.label), seen)) >= 1
    assert "To the model: least communication: Relay (full);\n  least time: Relay (full)." in seen
    assert "-: it never came so close" in seen
    assert max(map(len, (seen + following).splitlines())) <= 80
    commands = [line.strip().split("  ")[0] for line in following.strip().splitlines()]
    assert commands[:2] == ["source .venv/bin/activate", "amble up"]
    for code in commands[1:]:
        check_command(code)


def test_make_demo_installs_what_amble_up_needs(tmp_path):
    """As make would do it in a clone without an environment."""
    command = ["make", "--dry-run", "demo", f"VENV={tmp_path}/none"]
    steps = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (extras,) = re.findall(r"pip install .*'\.\[(.*)\]'", steps)
    assert {"sim", "live"} <= set(extras.split(","))
    assert steps.index("pip install") < steps.index("examples/demo.py")


def test_the_service_is_started_again_until_that_is_of_no_use():
    """systemd gives up after five failures in ten seconds unless it is told not to."""
    from amble.live.agent.agent import Ended

    page = (ROOT / "docs/service.md").read_text()
    (block,) = [block for block in blocks_of("service.md", page) if block.language == "ini"]
    unit = configparser.ConfigParser()
    unit.read_string(block.text)
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit["Service"]["Restart"] == "on-failure"
    assert unit["Service"]["RestartPreventExitStatus"] == str(Ended.WITHOUT_A_MODEL.value)
    assert unit["Service"]["SuccessExitStatus"] == str(Ended.TERMINATED.value)


# --- the harness itself ----------------------------------------------------------------------------------------------

WRONG_PAGES = {
    "output that differs": ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "it prints\n1\n"),
    "a program that fails": ("```python\n1 / 0\n```\n", "division by zero"),
    "a command that fails": ("```sh\namble draw nothing\n```\n", "ended with 2"),
    "an unknown option": ("```sh\namble compare --agnets 3\n```\n", "--agnets"),
    "an unknown option, not run": ("<!-- not run: long -->\n```sh\namble compare --agnets 3\n```\n", "--agnets"),
    "an unknown method": ("<!-- not run: long -->\n```sh\namble compare -m I-BCE\n```\n", "did you mean 'I-BCD'"),
    "an unknown target": ("<!-- not run: long -->\n```sh\nmake dmeo\n```\n", "the Makefile has"),
    "a console's output": ("```console\n$ amble --version\namble 9\n```\n", "it prints\namble "),
    "an unknown setting": ('```toml\nname = "plant"\n[stopp]\n```\n', "stopp"),
    "no language": ("```\nrm -rf x\n```\n", "neither run nor marked"),
    "output of nothing": ("```text\n1\n```\n", "follows no block"),
    "a note that is a slip": ("<!-- not runn: long -->\n```sh\namble up\n```\n", "is no note"),
    "an indented block": ("1. this\n\n   ```python\n   x = 1\n     y = 2\n   ```\n", "unexpected indent"),
}


@pytest.mark.parametrize(("page", "sentence"), WRONG_PAGES.values(), ids=WRONG_PAGES)
def test_a_page_that_is_wrong_is_found_out(page, sentence, tmp_path):
    with pytest.raises(AssertionError) as caught:
        run_page(blocks_of("page.md", page), tmp_path)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("page.md:")


RIGHT_PAGE = """
<!-- file: rows.csv -->
```csv
a,b
```

```python
import pathlib
rows = pathlib.Path("rows.csv").read_text()
```

```sh
cp rows.csv other.csv  # a comment
cat other.csv
```

prints

```text
a,...
```

```console
$ amble --version
amble ...
```

```python
print(rows.strip())
```

```text
a,b
```
"""


def test_a_page_has_one_folder_and_one_namespace(tmp_path):
    run_page(blocks_of("page.md", RIGHT_PAGE), tmp_path)
    assert (tmp_path / "other.csv").read_text() == "a,b\n"


@pytest.mark.parametrize(
    "code", ["amble compar", "amble up --agent", "src/amble/nothing.py", "--no-such", "amble.nothing()"]
)
def test_prose_that_is_wrong_is_found_out(code):
    with pytest.raises(Exception, match=r"compar|--agent|nothing|--no-such"):
        check_inline(code)
