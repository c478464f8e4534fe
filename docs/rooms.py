"""Rewrites the map of CONTRIBUTING.md from the layers in pyproject.toml: python docs/rooms.py"""

import ast
import re
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
BLOCK = re.compile(r"(<!-- rooms -->\n).*?(<!-- end -->)", re.DOTALL)
NAME_WIDTH, WIDTH = 18, 120


def blocks() -> str:
    """The rooms of amble, and those of amble.live, from the lowest to the highest."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    parts = []
    for contract in contracts:
        if contract["type"] == "layers":
            folder = ROOT.joinpath("src", *contract["containers"][0].split("."))
            rooms = [re.split(r" [|:] ", layer) for layer in reversed(contract["layers"])]
            parts.append("\n".join(line(folder, room) for layer in rooms for room in layer))
    return "\n\nand within `live/`:\n\n".join(parts)


def line(folder: Path, room: str) -> str:
    """A room's name, and the first sentence of its docstring."""
    package = folder / room / "__init__.py"
    file = package if package.is_file() else folder / f"{room}.py"
    docstring = ast.get_docstring(ast.parse(file.read_text())) or ""
    sentence = " ".join(re.split(r"(?<=[.:])\s", docstring.split("\n\n")[0].replace("\n", " "))).rstrip(".")
    name = f"{room}/" if package.is_file() else room
    return textwrap.fill(f"    {name:{NAME_WIDTH}} {sentence}", WIDTH, subsequent_indent=" " * (NAME_WIDTH + 5))


if __name__ == "__main__":
    PAGE.write_text(BLOCK.sub(lambda block: f"{block[1]}\n{blocks()}\n\n{block[2]}", PAGE.read_text()))
