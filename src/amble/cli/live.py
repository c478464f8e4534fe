"""amble init and amble agent."""

import textwrap
from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app, console, say
from amble.cli.watched import ADDRESS, PROMETHEUS

INIT_HELP = """Prepare a live run: certificates and settings, one folder per agent.

The bundle has a folder for each agent (agent.toml, its certificate and key, the authority's certificate): copy it to
that agent's machine, and nowhere else. Do not copy the folder authority: anyone who has its key can admit anybody.

**Examples**

`amble init --example > run.toml` - a file to begin with

`amble init run.toml -o bundle`

`amble init run.toml -o bundle --renew` - new certificates and keys from the same authority, the same settings
"""


@app.command(help=INIT_HELP, short_help="Prepare a live run: certificates and settings for each agent.")
def init(
    run: Annotated[Path | None, typer.Argument(help="The run's TOML file.", show_default=False)] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The bundle: a new folder.")] = Path("bundle"),
    days: Annotated[int, typer.Option(help="How many days the agents' certificates are valid.")] = 365,
    renew: Annotated[bool, typer.Option("--renew", help="Only make new certificates, in an existing bundle.")] = False,
    example: Annotated[bool, typer.Option("--example", help="Print a run file to begin with, and exit.")] = False,
) -> None:
    from amble.errors import AmbleError, few, need

    need("cryptography", "live")
    from amble.live.settings import bundle
    from amble.live.settings.config import Config

    if example:
        typer.echo(bundle.EXAMPLE, nl=False)
        return
    if run is None:
        raise AmbleError("no run file was given; write one first: amble init --example > run.toml")
    config, folder = Config.read(run), out.absolute()
    (bundle.renew if renew else bundle.make_bundle)(config, folder, days)
    for note in config.notes():
        say(note, "note:")
    everybody = [*config.agents, *bundle.guests(folder)]
    made = "new certificates and keys were" if renew else "an authority and a folder for each agent were"
    say(f"{made} written to {out}/: {few(everybody)}")
    say(f"Copy each folder to its machine; {out}/authority stays here.")


@app.command(short_help="Run one agent of a live run, from its folder.")
def agent(
    folder: Annotated[Path, typer.Argument(help="The agent's folder, as amble init made it.")],
    data: Annotated[Path | None, typer.Option(help="Its data file; without it, the one that the run names.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Only check whether it could start, and exit.")] = False,
    prometheus: Annotated[str | None, typer.Option(metavar=ADDRESS, help=PROMETHEUS, show_default=False)] = None,
    leash: Annotated[bool, typer.Option("--leash", hidden=True, help="End when standard input does.")] = False,
) -> None:
    """Run one agent until the run ends. Its data stay here: only the token's numbers are sent.

    If it is started again after a crash, it continues from its journal. Ctrl-C or SIGTERM ends it cleanly at any time.

    Exit code 0 when the run has ended and the agent has its model, or the agent has left. 2 if it did not start; why is
    also in `amble status`. 3 if the run has ended and the agent has no model: no token came to it, or the run diverged.
    130 or 143 if Ctrl-C or SIGTERM stopped it before the run ended.

    With --check nothing is started and nothing is written: the settings, the certificate and key, the data, the
    journal, the port and each neighbour get one line each. Exit code 0 if all is well, 1 if something is wrong;
    neighbours that are not up yet are only noted.

    **Examples**

    `amble agent bundle/north`

    `amble agent bundle/north --check`

    `amble agent north --data /srv/rows.csv`

    `amble agent north --prometheus 9464` - metrics of this agent at http://127.0.0.1:9464/metrics
    """
    import os
    import sys

    if check:
        raise typer.Exit(_check(folder, data))
    arguments = [str(folder), *(["--data", str(data)] if data else []), *(["--leash"] if leash else [])]
    arguments += ["--prometheus", prometheus] if prometheus else []
    if os.name == "posix":  # replaces this process by the agent, which needs none of the command line's libraries
        os.execv(sys.executable, [sys.executable, "-m", "amble.live", *arguments])
    from amble.live.__main__ import main

    main(arguments)


def _check(folder: Path, data: Path | None) -> int:
    """Print one line per check, and return the exit code."""
    from amble.errors import need

    need("cryptography", "live")
    from amble.live.control.checking import check

    screen, indent = console(), " " * 6  # of an outcome
    wrong = 0
    for each in check(folder, data):
        wrong += each.outcome == "wrong"
        style = {"ok": "green", "note": "yellow", "wrong": "red"}[each.outcome]
        line = f"{each.what}: {each.sentence}"
        if screen.is_terminal:  # for a program each stays one line
            line = textwrap.fill(indent + line, screen.width, subsequent_indent=indent, break_on_hyphens=False).lstrip()
        say(line, f"{each.outcome:5}", style)
    return 1 if wrong else 0
