"""One look for figures, the report, the live page and the site: colours in light and in dark, and the sizes of figures

The eight colours of lines can be told apart by readers with any colour vision, and each can be seen on its paper:
tests/test_look.py computes both.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from amble.errors import need

# name: on light paper, on dark paper
PAIRS = {
    "paper": ("#ffffff", "#161618"),
    "ink": ("#1a1a1a", "#e8e8e4"),
    "quiet": ("#5c5c5c", "#a5a5a0"),
    "rule": ("#d8d8d4", "#3a3a3e"),
    "raised": ("#f5f5f3", "#202023"),
    "link": ("#0b5c94", "#7db8e8"),
    "held": ("#0b6b3a", "#5fcf93"),
    "failed": ("#a8321c", "#ff9580"),
    "part": ("#7a5a00", "#e6c15c"),
    "c0": ("#006ac5", "#0a75b0"),  # blue
    "c1": ("#aa1704", "#ec4800"),  # red
    "c2": ("#06744f", "#279c68"),  # green
    "c3": ("#d06883", "#e289b0"),  # pink
    "c4": ("#b38d04", "#eebe0b"),  # yellow
    "c5": ("#109fd2", "#4fdaf9"),  # sky
    "c6": ("#1a1a1a", "#e8e8e4"),  # ink
    "c7": ("#4e2e68", "#7494ff"),  # violet
}
LIGHT = {name: light for name, (light, _) in PAIRS.items()}
PAPER, INK, QUIET, RULE = (LIGHT[name] for name in ("paper", "ink", "quiet", "rule"))
COLOURS = tuple(LIGHT[f"c{k}"] for k in range(8))
STYLES = ("-", "--", "-.")  # when the colours begin again
FIGURES = {
    "font.size": 8, "axes.titlesize": 7.5, "axes.titlelocation": "left", "axes.titlecolor": QUIET, "axes.titlepad": 8,
    "figure.titlesize": 9, "figure.titleweight": "bold", "text.color": INK, "axes.labelcolor": INK,
    "axes.edgecolor": QUIET, "xtick.color": QUIET, "ytick.color": QUIET,
    "xtick.labelcolor": INK, "ytick.labelcolor": INK,
    "axes.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False, "lines.linewidth": 1.3,
    "lines.markersize": 3.5, "grid.color": RULE, "grid.linewidth": 0.5,
    "legend.frameon": False, "legend.fontsize": 7, "legend.handlelength": 3,
}  # fmt: skip


@contextmanager
def look() -> Iterator[None]:
    """Figures of matplotlib that are drawn within `with look():`, or in a function below `@look()`, have this look."""
    matplotlib = need("matplotlib", "sim")
    with matplotlib.rc_context({**FIGURES, "axes.prop_cycle": matplotlib.cycler(color=COLOURS)}):
        yield


def css(names: Iterable[str] = PAIRS, light: str = ":root", dark: str = ":root", always_dark: str = "") -> str:
    """The colours as variables: of the elements `light`, and of `dark` where the reader asks for dark pages. Those of
    `always_dark` are dark by themselves."""
    own = list(names)
    on_light, on_dark = ("".join(f"--{name}:{PAIRS[name][k]};" for name in own) for k in (0, 1))
    text = f"{light}{{{on_light}}}\n@media(prefers-color-scheme:dark){{{dark}{{{on_dark}}}}}\n"
    return text + (f"{always_dark}{{{on_dark}}}\n" if always_dark else "")
