"""What the build does to a page before Sphinx reads it. On a code host the same file reads well without it.

The lists of links in index.md are the contents of the site. `<!-- made: NAME -->` and `<!-- api: NAMES -->` become what
the code says. Pages outside of docs, and the gallery, are pages of the site too.
"""

import os
import re
from html import escape
from pathlib import Path
from typing import Any

import api
import commands
import settings

from amble.look import css

DOCS = Path(__file__).parent
ROOT = DOCS.parent
MADE = DOCS / "made"  # what is not in git: copies of the pages outside, and the gallery
OUTSIDE = ("SECURITY", "CONTRIBUTING", "CHANGELOG")
MARK = re.compile(r"<!-- made: ([\w-]+) -->")
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?!https?:|#|mailto:)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
DRAWING = re.compile(r"!\[(?P<alt>[^\]]*)\]\(drawings/(?P<name>[\w-]+)\.svg\)")
COLOURS = re.compile(r"<style>.*?</style>\n", re.DOTALL)  # a drawing's own, which the page has already
PARTS = {
    "commands": commands.commands,
    "run-file": settings.run_file,
    "experiment-file": settings.experiment_file,
    "api": api.summary,
}


def write_outside() -> None:
    """Copies of the pages beside docs, whose links lead from there; and the colours, as furo switches them."""
    MADE.mkdir(exist_ok=True)
    MADE.joinpath("look.css").write_text(
        css(light="body", dark="body:not([data-theme=light])", always_dark="body[data-theme=dark]")
    )
    for name in OUTSIDE:
        text = LINK.sub(lambda link: _link(ROOT, MADE, link), (ROOT / f"{name}.md").read_text())
        page = MADE / f"{name.lower()}.md"
        if not page.is_file() or page.read_text() != text:  # Sphinx reads again what is newer
            page.write_text(text)


def read(app: Any, docname: str, source: list[str]) -> None:  # noqa: ARG001 - as Sphinx calls it
    """Sphinx calls this for each page, with its text in a list of one."""
    if docname.startswith("made/"):
        return
    text = DRAWING.sub(_inlined, source[0])
    text = MARK.sub(lambda mark: PARTS[mark[1]](), text)
    text = LINK.sub(lambda link: _link(DOCS, DOCS, link), text)
    text = api.MARK.sub(lambda mark: api.reference(mark[1]), text)
    source[0] = with_contents(text) if docname == "index" else text


def with_contents(index: str) -> str:
    """Each list of links below a heading is also a part of the site's contents."""
    parts = []
    for section in re.split(r"^(?=## )", index, flags=re.M):
        title = re.match(r"## (.*)", section)
        links = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\.(?:md|rst)\)", section, re.M)
        lines = "".join(f"{text} <{target}>\n" for text, target in links)
        tree = f"\n```{{toctree}}\n:hidden:\n:caption: {title[1]}\n\n{lines}```\n\n" if title and links else ""
        parts.append(section.rstrip("\n") + "\n" + tree)
    return "\n".join(parts)


def _inlined(drawing: re.Match[str]) -> str:
    """A drawing as a part of the page, whose colours it then has."""
    svg = (DOCS / "drawings" / f"{drawing['name']}.svg").read_text()
    svg = COLOURS.sub("", svg, count=1)
    named = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(" ".join(drawing["alt"].split()))}" ', 1)
    return f'<div class="drawn" tabindex="0">{named}</div>'


def _link(here: Path, there: Path, link: re.Match[str]) -> str:
    """A link as it leads from another folder: to the copy of a page outside, to the gallery, or to the same file. One
    that shows the name of a page's file shows its title instead."""
    path = Path(os.path.normpath(here / link["path"]))
    text = "" if link["text"].endswith(path.name) and path.suffix == ".md" else link["text"]
    if path.parent == ROOT and path.stem in OUTSIDE:
        path = MADE / f"{path.stem.lower()}.md"
    elif path == ROOT / "README.md":
        path = DOCS / "index.md"
    elif path == ROOT / "examples" / "gallery":
        path = MADE / "gallery" / "index.rst"
    return f"[{text}]({os.path.relpath(path, there)}{link['anchor'] or ''})"
