"""Figures in matplotlib, without a window or global state."""

import io
from pathlib import Path
from typing import Any

from amble.errors import AmbleError, need
from amble.files import write_whole

# Okabe and Ito's colours, which colour-blind readers can distinguish
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999933")
STYLES = ("-", "--", "-.")  # when the colours begin again


def new_figure(width: float, height: float) -> Any:
    """A figure without a window or global state."""
    return need("matplotlib.figure", "sim").Figure(figsize=(width, height), layout="constrained", dpi=150)


def save(figure: Any, path: Path) -> Path:
    """Write the figure in the format that the path's ending names. A failure leaves no partial file."""
    ending = path.suffix.lstrip(".").lower()
    if ending not in figure.canvas.get_supported_filetypes():
        raise AmbleError(f"{path.name!r} was given for a figure; end it in .png, .svg or .pdf.")
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    figure.savefig(drawn, format=ending)
    write_whole({path: drawn.getvalue()})
    return path
