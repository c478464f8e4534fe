"""amble join and amble leave."""

from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app, console, say


@app.command(short_help="Invite an agent into a live run.")
def join(
    bundle: Annotated[Path, typer.Argument(help="The bundle that amble init made, with its authority.")],
    name: Annotated[str, typer.Argument(help="The newcomer's name.")],
    host: Annotated[str, typer.Option(help="The host name or address at which others reach it.")],
    port: Annotated[int, typer.Option(help="The port it listens on.")],
    near: Annotated[
        list[str], typer.Option(metavar="<name>", help="Its neighbour, an agent of the run; give one or more.")
    ],
    data: Annotated[str | None, typer.Option(help="Its data file's name, in its folder.")] = None,
    days: Annotated[int, typer.Option(help="How many days its certificate is valid.")] = 365,
) -> None:
    """Make a folder for one more agent, with a certificate and an invitation signed by the run's authority.

    Copy the folder to the newcomer's machine and start it there with amble agent, while the run goes on: it shows its
    invitation to its neighbours, they accept it, and its data are in the model from its first visit. You need to do
    nothing on the other machines.

    **Example**

    `amble join bundle east --host 10.0.0.9 --port 7450 --near north --near south --data rows.csv`
    """
    from amble.errors import need

    need("cryptography", "live")
    from amble.live.settings import joining
    from amble.live.settings.agent_config import Peer

    made = joining.invite(bundle.absolute(), Peer(name, host, port), tuple(near), data, days)
    off = [m for m, before in enumerate(made.after) if not before]
    say(f"written to {bundle / name}: {name} at place {made.index}, beside {', '.join(near)}")
    if off and (ways := joining.pairs(bundle.absolute(), off[0])):
        note = f"its data will be in the model, but {len(off)} of {len(made.after)} tokens will visit it less often"
        better = f"to avoid this, choose two neighbours that follow each other on the walk: {', '.join(ways[:4])}"
        say(f"{note}; {better}.", "note:")
    say(f"Copy the folder to its machine, and run there: amble agent {name}")


@app.command(short_help="Let an agent leave a live run, and remove its gifts from the model.")
def leave(
    folder: Annotated[Path, typer.Argument(help="The agent's folder, on the machine where it runs.")],
    within_s: Annotated[float, typer.Option("--within", help="Seconds until it leaves anyway.")] = 30.0,
) -> None:
    """Remove an agent's gifts from the model, pass on its tokens, and end it. The run goes on without it.

    A token that does not come in time is recounted without it, as if the agent had died. The exit code is then 1.

    **Example**

    `amble leave north`
    """
    from amble.live.control.leaving import ask, follow

    ask(folder, within_s)
    with console().status(f"{folder.name} leaves ...") as shown:
        how, whole = follow(folder, within_s, shown.update)
    say(how)
    if not whole:
        raise typer.Exit(1)
