"""The command line: parses, calls, prints."""

import os
import sys

from amble.cli import (  # noqa: F401 (they add their commands)
    chaos,
    compare,
    data,
    draw,
    joining,
    live,
    page,
    path,
    predict,
    record,
    report,
    reproduce,
    status,
    summary,
    survey,
    sweep,
    up,
)
from amble.cli.app import app


def main() -> None:
    """Run the command line; bad input is one sentence and exit code 2."""
    from amble.errors import AmbleError

    try:
        try:
            os.getcwd()
        except FileNotFoundError:  # otherwise every command that takes a path would fail in its own way
            raise AmbleError("the folder that you are in has been deleted; go to another one (cd) first.") from None
        app()
    except AmbleError as error:
        sys.stderr.write(f"amble: {error}\n")
        sys.exit(2)
