"""HTML and SVG as text. Everything is escaped except markup that was made here."""

from html import escape
from typing import TYPE_CHECKING

from amble.drawing import svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EMPTY = ("input",)  # tags that hold nothing and are not closed


class Markup(str):
    """Text that is HTML already; all other text is escaped when it is put into a tag."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """<name attribute="...">children</name>; a trailing _ is cut from an attribute's name, other _ become -."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items()
    )
    return Markup(f"<{name}{written}>" if name in EMPTY else f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: object) -> Markup:
    return Markup("".join(child if isinstance(child, Markup) else escape(str(child)) for child in children))


def picture(figure: "Figure", name: str, description: str, **attributes: object) -> Markup:
    """The figure in the page itself. `name` is its own on the page; `words` are for those who cannot see it."""
    return tag("figure", Markup(svg(figure, name)), role="img", aria_label=description, **attributes)
