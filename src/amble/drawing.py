"""Figures in matplotlib, without a window or global state: as files, and as SVG inside a page."""

import io
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from amble.errors import AmbleError, need
from amble.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can distinguish
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
STYLES = ("-", "--", "-.")  # when the colours begin again
DATES = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # left out, so that the same figure is the same bytes
IN_TAG = r"(?=[^<>]*>)"  # text in a figure is not changed
FOR_PAGE = (
    (r"^.*?(?=<svg)|<!--.*?-->", ""),  # what a file begins with, and comments
    (r"<defs>\s*<style.*?</defs>", ""),  # style rules that would apply to the whole page
    (r'<g id="[^"]*"', "<g"),  # every figure has a figure_1 and an axes_1
    (r"\s*\n\s*", ""),
    (rf'font-family: [^;"]*;? ?{IN_TAG}', ""),  # the page's is used
    (rf"(\.\d\d)\d+{IN_TAG}", r"\1"),  # hundredths of a point
    (rf"#000000{IN_TAG}", "currentColor"),
    (rf"#ffffff{IN_TAG}", "var(--paper)"),
)


def new_figure(width: float, height: float) -> "Figure":
    """A figure without a window or global state; lengths in inches."""
    figure: Figure = need("matplotlib.figure", "sim").Figure(figsize=(width, height), layout="constrained", dpi=200)
    return figure


def literal(text: str) -> str:
    """A user's text, escaped so that matplotlib does not read it as a formula."""
    return text.replace("$", r"\$")


def rendered(figure: "Figure", ending: str) -> bytes:
    """The file of the figure, in the format of this ending."""
    drawn = io.BytesIO()
    with need("matplotlib", "sim").rc_context({"svg.hashsalt": "amble", "pdf.fonttype": 42}):
        figure.savefig(drawn, format=ending, metadata=DATES.get(ending))
    return drawn.getvalue()


def save(figure: "Figure", path: Path) -> Path:
    """Write the figure in the format of the path's ending, whole or not at all."""
    ending = path.suffix.lstrip(".").lower()
    if ending not in figure.canvas.get_supported_filetypes():
        raise AmbleError(f"{path.name!r} was given for a figure; end it in .png, .svg or .pdf.")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole({path: rendered(figure, ending)})
    return path


def svg(figure: "Figure", name: str) -> str:
    """The figure as a part of a page, whose ink, paper and font it takes. `name` makes its ids unique on the page."""
    for artist in figure.findobj():
        artist.set_clip_on(False)  # nothing is outside the axes, and every clip would be one more element
    drawn = io.StringIO()
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with (
        need("matplotlib", "sim").rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has other fonts
        figure.savefig(drawn, format="svg", transparent=True, metadata=metadata)
    text = drawn.getvalue()
    for pattern, instead in FOR_PAGE:
        text = re.sub(pattern, instead, text, flags=re.DOTALL)
    return text
