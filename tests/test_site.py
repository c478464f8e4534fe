"""The documentation site: what its pages say about the code follows from the code, and every page can be found."""

import ast
import http.server
import importlib
import inspect
import re
import subprocess
import sys
import threading
import tomllib
from dataclasses import dataclass, fields

import pytest

import amble
from amble import testing
from amble.live import toml
from amble.live.model.model import Model
from amble.live.settings import bundle, config
from amble.live.settings.parts import LiveTiming, Retention, Stop
from amble.live.settings.surveyed import Surveyed
from amble.simulation.experiment import Experiment
from doc_blocks import ROOT, every_command

pytestmark = pytest.mark.long  # not because it takes long: it does not depend on the version of Python

DOCS = ROOT / "docs"
sys.path.insert(0, str(DOCS))
api, commands, comments, docstrings, drawings, links, pages, settings = map(
    importlib.import_module,
    ("api", "commands", "comments", "docstrings", "drawings", "links", "pages", "settings"),
)


# --- every page, every name, every command, every setting -------------------------------------------------------------


def test_every_page_is_in_the_contents_once():
    contents = re.findall(r"^.* <([\w./-]+)>$", pages.with_contents((DOCS / "index.md").read_text()), re.M)
    listed = [target for target in contents if not target.startswith("..")]
    assert sorted(listed) == sorted(path.stem for path in DOCS.glob("*.md") if path.stem != "index")


def test_every_public_name_is_on_a_page():
    public = {f"amble.{name}" for name in dir(amble) if name not in ("__version__", "networks")}
    public |= {f"amble.networks.{name}" for name in amble.networks.__all__ if name != "Network"}
    public |= {f"amble.testing.{name}" for name in testing.__all__}
    assert public - api.documented() == set(), "name them in an <!-- api: ... --> of docs/api-*.md"


@pytest.mark.parametrize("name", sorted(api.documented()))
def test_a_name_on_a_page_is_one_that_autodoc_finds(name):
    kind, _, _ = api.directive(name).partition(":: ")
    found = importlib.import_module("pkgutil").resolve_name(name)
    assert inspect.getdoc(found)
    assert (
        kind == f".. auto{'module' if inspect.ismodule(found) else 'class' if inspect.isclass(found) else 'function'}"
    )


def test_every_command_has_its_options_on_the_page():
    page = commands.commands()
    sections = dict(re.findall(r"^#{3,4} `amble ([\w ]+)`\n(.*?)(?=^#{2,4} |\Z)", page, re.M | re.S))
    assert {" ".join(words) for words, _ in every_command()} == set(sections)
    for words, command in every_command():
        section = sections[" ".join(words)]
        for param in (each for each in command.params if not getattr(each, "hidden", False) and each.name != "help"):
            assert f"`{param.opts[0]}`" in section, f"{words}: {param.opts}"
    assert not re.search(r"\{(methods|losses|networks)\}", page)
    assert "| `--seeds` | number | How many seeds. | 1000 |" in page
    assert "| `--first-seed` | number | The first of them. | 0 |" in page


@pytest.mark.parametrize(
    "kind", [Model, Surveyed, Stop, LiveTiming, Retention, config.Walk], ids=lambda kind: kind.__name__
)
def test_every_setting_of_a_run_file_is_on_the_page_with_what_it_is(kind):
    page, told = settings.run_file(), comments.comments(kind)
    for key, each in toml.kinds_of(kind).items():
        row = f"| `{key}` | {commands.cell(each.description)} |"
        assert row in page
        assert told.get(key) or key == "y_std", f"{kind.__name__}.{key} has no comment"
    for key in {*config.RUN, *tomllib.loads(bundle.EXAMPLE)}:
        assert f"`{key}`" in page or f"`[{key}]`" in page or f"`[[{key}]]`" in page


def test_every_setting_of_an_experiment_file_is_on_the_page():
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.+) \|$", settings.experiment_file(), re.M))
    assert list(rows) == [field.name for field in fields(Experiment)]


# --- how text becomes pages -------------------------------------------------------------------------------------------


def test_a_page_shows_titles_and_leads_to_copies_of_the_pages_outside():
    text = [
        "See [live.md](live.md#cost), [SECURITY.md](../SECURITY.md), [pictures](../examples/gallery), [x](https://a.b)."
    ]
    pages.read(None, "page", text)
    assert (
        text[0] == "See [](live.md#cost), [](made/security.md), [pictures](made/gallery/index.rst), [x](https://a.b)."
    )


def test_a_drawing_becomes_a_part_of_its_page():
    text = ["![A token\nwalks](drawings/walk.svg)"]
    pages.read(None, "page", text)
    assert '<svg role="img" aria-label="A token walks" ' in text[0]
    assert "<style>" not in text[0]
    assert "\n\n" not in text[0].strip()  # where Markdown would end the block


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_a_drawing_is_what_its_script_makes(name):
    assert (drawings.FOLDER / f"{name}.svg").read_text() == drawings.DRAWINGS[name](), "run python docs/drawings.py"
    assert any(f"drawings/{name}.svg" in page.read_text() for page in DOCS.glob("*.md"))


DOCSTRING = """A step: |x| of `z`.

    x' = z - tau |x|      (eq. 1)

where
    z    travels, and
         comes back
    tau  is the step
It ends there.

Parameters
----------
a, b,
c : three, and
    more about coef_
d : `None`

Returns
-------
Run

Example
-------
>>> 1
1
"""
RST = r"""A step: \|x\| of ``z``.

::

    x' = z - tau |x|      (eq. 1)

where

``z``
    travels, and comes back

``tau``
    is the step

It ends there.

.. rubric:: Parameters

``a, b, c``
    three, and more about coef\_

``d``
    ``None``

.. rubric:: Returns

Run

.. rubric:: Example

>>> 1
1
"""


def test_a_docstring_as_sphinx_reads_it():
    assert docstrings.as_rst(inspect.cleandoc(DOCSTRING)) == RST


@dataclass
class Sample:
    a: int = 1  # one
    # two lines
    # above it
    b: int = 2
    c: int = 3


def test_the_comment_beside_a_field_is_what_it_is_for():
    assert comments.comments(Sample) == {"a": "one", "b": "two lines above it"}


# --- messages, and links to elsewhere ---------------------------------------------------------------------------------


def sentences():
    """Every text of the code, with `...` for what is put into it."""
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "..." for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield re.sub(r"%[sdg]", "...", node.value)


def quoted(page):
    """The messages that a page is about: the code in bold at the beginning of an item."""
    for item in re.findall(r"^- ((?:\*\*`[^`]+`\*\*(?:, )?)+)", page, re.M):
        yield from (" ".join(code.split()) for code in re.findall(r"`([^`]+)`", item))


def test_every_message_of_the_page_of_troubles_is_one_of_the_code():
    known = [" ".join(text.split()) for text in sentences()]
    messages = list(quoted((DOCS / "trouble.md").read_text()))
    assert len(messages) > 40
    assert [message for message in messages if not any(message in text for text in known)] == []


def test_a_message_that_is_not_in_the_code_is_seen():
    assert list(quoted("- **`the moon is ... cheese`** Eat it.\n")) == ["the moon is ... cheese"]
    assert not any("the moon is ... cheese" in text for text in sentences())


class Site(http.server.BaseHTTPRequestHandler):
    """Has one page, one that is gone, and one that programs may not see."""

    def do_GET(self):
        self.send_response({"/here": 200, "/refused": 403}.get(self.path, 404))
        self.end_headers()

    def log_message(self, *_):
        pass


def test_links_are_there_or_gone_or_not_tried(capsys):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        site = f"http://127.0.0.1:{server.server_port}"
        nobody = "http://127.0.0.1:9/closed"
        assert links.main({f"{site}/here": ["a.md"], f"{site}/refused": ["a.md"], nobody: ["b.md"]}) == 0
        assert links.main({f"{site}/lost": ["c.md"]}) == 1
        server.shutdown()
    printed = capsys.readouterr().out
    assert f"{nobody}: not tried" in printed
    assert "3 links: 2 there, 0 gone, 1 not tried" in printed
    assert "/lost: gone (404); on c.md" in printed
    assert "https://zenoh.io" in links.links()


def test_make_docs_has_warnings_as_errors_and_checks_words(tmp_path):
    made = ["make", "--dry-run", "docs", f"VENV={tmp_path}/none"]
    steps = subprocess.run(made, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "--fail-on-warning" in steps
    assert "codespell" in steps
