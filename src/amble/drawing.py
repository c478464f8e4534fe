"""Figures in matplotlib, without a window or global state: as files, and as SVG inside a page."""

import io
import re
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError, need
from amble.files import write_whole
from amble.look import INK, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS_PER_CHARACTER, LINES_IN = 6.0, 0.15  # of a headline: its width, and the height of a line
LABEL_PT, LINE_PT = 6.5, 8.5  # the size of a label at a line's end, and the height of each of its lines
PANEL_SHARE = 0.66  # of a figure's height, that its panels have at least
MOVED_MAX = 0.12  # of the panel's height: farther from its line's end a label is not read as its label
DATES = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # left out, so that the same figure is the same bytes
IN_TAG = r"(?=[^<>]*>)"  # text in a figure is not changed
FOR_PAGE = (
    (r"^.*?(?=<svg)|<!--.*?-->", ""),  # what a file begins with, and comments
    (r"<defs>\s*<style.*?</defs>", ""),  # style rules that would apply to the whole page
    (r'<g id="[^"]*"', "<g"),  # every figure has a figure_1 and an axes_1
    (r"\s*\n\s*", ""),
    (rf'font-family: [^;"]*;? ?{IN_TAG}', ""),  # the page's is used
    (rf"(\.\d\d)\d+{IN_TAG}", r"\1"),  # hundredths of a point
    (rf"#000000{IN_TAG}", "var(--ink)"),
    *((rf"{colour}{IN_TAG}", f"var(--{name})") for name, colour in LIGHT.items()),  # dark on a dark page
)


def new_figure(width: float, height: float) -> "Figure":
    """A figure without a window or global state; lengths in inches."""
    figure: Figure = need("matplotlib.figure", "sim").Figure(figsize=(width, height), layout="constrained", dpi=200)
    return figure


def headline(figure: "Figure", text: str, about: str = "") -> None:
    """What is seen, above the figure, which gets that much higher; and below it, in small, what was drawn."""
    lines = textwrap.wrap(text, int(72 * figure.get_figwidth() / POINTS_PER_CHARACTER))
    figure.set_figheight(figure.get_figheight() + LINES_IN * (len(lines) + about.count("\n") + bool(about)))
    figure.suptitle(literal("\n".join(lines)), x=0.01, ha="left")
    figure.axes[0].set_title(literal(about))


class End(NamedTuple):
    """Where a line ends, in the panel's data, and what is written there."""

    x: float
    y: float
    label: str
    colour: str


def label_ends(panel: "Axes", ends: Sequence[End]) -> bool:
    """Write each line's label to the right of where the line ends, if there is room for all; whether there is."""
    height = 72 * panel.get_figure().get_figheight() * PANEL_SHARE  # type: ignore[union-attr]
    heights = [LINE_PT * (1 + end.label.count("\n")) / height for end in ends]
    if not ends or sum(heights) > 1:
        return False
    panel.autoscale_view()  # matplotlib does it when it draws, which is too late here
    place = panel.transData + panel.transAxes.inverted()
    at = np.clip([place.transform((end.x, end.y)) for end in ends], 0, 1)
    order = np.argsort(at[:, 1], kind="stable")
    levels = spread(at[order, 1], np.array(heights)[order])
    if np.abs(levels - at[order, 1]).max() > MOVED_MAX:
        return False
    for k, level in zip(order, levels, strict=True):
        end = ends[k]
        line = {"arrowstyle": "-", "color": end.colour, "lw": 0.8, "shrinkA": 2, "shrinkB": 0, "relpos": (0, 0.5)}
        panel.annotate(
            literal(end.label), at[k], (1.07, level), "axes fraction", "axes fraction", line,
            annotation_clip=False, va="center", fontsize=LABEL_PT, color=INK, linespacing=1.1,
        )  # fmt: skip
    return True


def spread(wanted: Array, heights: Array) -> Array:
    """Rising places near the wanted ones, within 0 and 1, so far apart that labels of these heights do not touch."""
    places = np.array(wanted, float)
    gaps = (heights[1:] + heights[:-1]) / 2
    places[:1] = np.maximum(places[:1], heights[:1] / 2)
    for k, gap in enumerate(gaps):
        places[k + 1] = max(places[k + 1], places[k] + gap)
    places[-1:] = np.minimum(places[-1:], 1 - heights[-1:] / 2)
    for k, gap in reversed(list(enumerate(gaps))):
        places[k] = min(places[k], places[k + 1] - gap)
    return places


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
