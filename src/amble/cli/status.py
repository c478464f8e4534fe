"""amble status and amble stop."""

from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app, console
from amble.cli.record import FOLDERS

FAILED = ("diverged", "lost")  # causes of an end that count as a failure

STATUS_HELP = """Show the state of agents: who is up, where the tokens are, how far the model moves, who waits for whom.

It reads what each agent writes into its folder twice a second, and checks whether its process runs. It sends nothing to
the agents. Of neighbours whose folders are elsewhere, it says whether they are linked.

States: unstarted, joining (no token has come yet), up, leaving, left, ending (the run has ended), ended, refused (it
did not start), down (killed, frozen, silent, without a link, or ended early).

Exit code 0. With --watch: 0 when the run has ended, 1 if it diverged or its tokens were lost, 130 after Ctrl-C.

**Examples**

`amble status bundle/north`

`amble status amble-up --watch` - until the run ends, or Ctrl-C

`amble status amble-up --json` - for scripts; with --watch one line of JSON per refresh
"""


@app.command(help=STATUS_HELP, short_help="Show agents of a live run: states, tokens, who waits for whom.")
def status(
    folders: Annotated[list[Path], FOLDERS],
    watch: Annotated[bool, typer.Option("--watch", help="Show it until the run ends, or Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    from amble.live.control import glance, view
    from amble.live.records.collect import agent_folders
    from amble.progress import interruptible

    agents = agent_folders(folders, unreadable=True)
    if not watch:
        seen = glance.look(agents)
        if as_json:
            typer.echo(glance.as_line(seen))
        else:
            console().print(view.tables(seen))
        return
    with interruptible() as asked:
        seen = view.watch(agents, asked.event.wait, as_json)
    if asked.is_set():
        raise typer.Exit(asked.code)
    if seen.cause in FAILED:
        raise typer.Exit(1)


@app.command(short_help="End a live run cleanly, on all agents.")
def stop(
    folders: Annotated[list[Path], FOLDERS],
    within_s: Annotated[float, typer.Option("--within", help="Seconds to wait for the agents to end.")] = 30.0,
) -> None:
    """End the whole run in the same way as its stop rule: every agent, on every machine, writes its model and ends.

    The command asks the agents that run on this machine, by a file in each folder. They tell their neighbours, and so
    on. Agents that are down learn of it when they are started again. Exit code 0 when all agents in these folders have
    ended, 1 if one has not in time or the run had diverged or lost its tokens by then, 2 if none runs.

    **Examples**

    `amble stop bundle/north`

    `amble stop amble-up`
    """
    from amble.live.control import stopping

    with console().status("the run ends ...") as shown:
        seen, late = stopping.stop(folders, within_s, shown.update)
    typer.echo(f"the run has ended: {seen.words}" if seen.state == "ended" else "the run goes on")
    for name in late:
        typer.echo(f"{name} has not ended in time; see its log")
    if late or seen.state != "ended" or seen.cause in FAILED:
        raise typer.Exit(1)
