"""The gallery: copies of examples/gallery, which write their files beside themselves, and the pictures among these."""

import shutil
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
EXAMPLES, COPIES = DOCS.parent / "examples" / "gallery", DOCS / "made" / "examples"


def copy() -> None:
    COPIES.mkdir(parents=True, exist_ok=True)
    for copied in COPIES.glob("plot_*.py"):
        if not (EXAMPLES / copied.name).is_file():
            copied.unlink()
    for path in EXAMPLES.iterdir():
        if path.is_file():
            shutil.copy2(path, COPIES)


def pictures(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:  # noqa: ARG001
    """sphinx-gallery calls this after each block of an example: the pictures that it has drawn, in their order."""
    from sphinx_gallery.scrapers import figure_rst

    taken = []
    for picture in sorted(COPIES.glob("*.png"), key=lambda path: path.stat().st_mtime_ns):
        taken.append(next(block_vars["image_path_iterator"]))
        shutil.move(picture, taken[-1])
    return str(figure_rst(taken, gallery_conf["src_dir"]))
