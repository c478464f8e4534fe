"""The documentation site: `make docs` builds it into demo/docs, with warnings as errors and without the internet."""

import os
import sys
from pathlib import Path
from typing import Any

from pygments.lexers.special import TextLexer

sys.path.insert(0, str(Path(__file__).parent))
os.environ.setdefault("JAX_PLATFORMS", "cpu")  # else JAX logs which others it has looked for

import docstrings
import gallery
import pages

import amble

project = "amble"
copyright = "the amble authors; Apache-2.0"
version = release = amble.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["made/examples"]
myst_heading_anchors = 4
root_doc = "index"
highlight_language = "none"
smartquotes = False  # many quotation marks here are of TOML and Python

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
maximum_signature_line_length = 90
add_module_names = False
toc_object_entries_show_parents = "hide"

sphinx_gallery_conf = {
    "examples_dirs": "made/examples",
    "gallery_dirs": "made/gallery",
    "image_scrapers": ("matplotlib", "gallery.pictures"),
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "matplotlib_animations": False,
}

html_theme = "furo"
html_title = f"amble {release}"
html_static_path = ["static", "made/look.css"]
html_css_files = ["look.css", "site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"


def setup(app: Any) -> None:
    pages.write_outside()
    gallery.copy()
    for language in ("csv", "nft"):  # which Pygments does not know
        app.add_lexer(language, TextLexer)
    app.connect("source-read", pages.read)
    app.connect("autodoc-process-docstring", docstrings.process)
    app.connect("autodoc-process-signature", docstrings.signature)
    app.connect("autodoc-skip-member", docstrings.skip)
