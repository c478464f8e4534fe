"""amble page, and the page of amble up."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, final

import typer

from amble.cli.app import app, say

PAGE_HELP = """Show a live run in the browser: network, tokens, model, agents and events, while it goes on and later.

Give an agent's folder, a run's folder, or a record.npz. A run that goes on is shown as it happens, with a slider that
goes back in time. A run that has ended is replayed from its record. With the folder of one agent of several, the page
shows what that agent knows: itself, its neighbours and the tokens that came by.

The page is for browsers on this machine: it listens on 127.0.0.1, and its address has a secret. It reads what agents
write into their folders. It can also stop the run and let an agent leave, if you confirm that. Ctrl-C ends the page,
not the run.

**Examples**

`amble page amble-up` - a run of amble up, running or ended

`amble page bundle/north` - what one agent knows

`amble page run/record.npz` - the replay of a record

`amble page bundle/north --port 8800 --no-browser` - for ssh -L 8800:127.0.0.1:8800
"""

QUIET = "Print the page's address, and open no browser."
ENDED = (130, 143)  # exit codes of a command that was asked to end


@app.command(help=PAGE_HELP, short_help="Show a live run in the browser, running or ended.")
def page(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Agents' folders, a folder that contains several, or a record.npz.", show_default=False),
    ],
    port: Annotated[int, typer.Option(help="The port; 0 is any free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help=QUIET)] = False,
) -> None:
    from amble.errors import need

    need("uvicorn", "page")
    need("msgspec", "live")
    from amble.live.page.opened import open_page
    from amble.live.page.server import Server
    from amble.progress import interruptible

    with interruptible() as asked, Server(open_page([path.absolute() for path in folders]), port) as server:
        tell(server.url, not no_browser)
        say("Ctrl-C ends the page.")
        while not asked.event.wait(3600.0):
            pass


def tell(url: str, browser: bool) -> None:
    """Print where the page is, and open it if there is a screen."""
    import webbrowser

    say(url, "page:", "green")
    screen = (
        os.name == "nt" or sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
    if browser and screen:
        webbrowser.open(url)


@final
class Shown:
    """The page of amble up. It is open as long as the command; with a terminal, until Ctrl-C."""

    def __init__(self, wanted: bool, browser: bool) -> None:
        self.wanted, self.browser = wanted, browser
        self.server: Any = None
        if wanted:
            from amble.errors import need

            need("uvicorn", "page")

    def open(self, folder: Path, title: str, figures: Any) -> None:
        """The run's folder is there now; `figures` gives what is known of the newest model."""
        if self.wanted:
            from amble.live.page.opened import open_live
            from amble.live.page.server import Server

            self.server = Server(open_live(folder, title, figures)).__enter__()
            tell(self.server.url, self.browser)

    def __enter__(self) -> "Shown":
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if self.server is None:
            return
        asked = error is not None and getattr(error, "exit_code", 1) in ENDED
        if sys.stdout.isatty() and not asked:
            from amble.progress import interruptible

            say("the page stays open; Ctrl-C ends it.")
            with interruptible() as ended:
                while not ended.event.wait(3600.0):
                    pass
        self.server.__exit__(kind, error, trace)
