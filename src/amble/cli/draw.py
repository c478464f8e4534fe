"""amble draw."""

from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app, say


@app.command(short_help="Draw the network, the tokens' time line and their walk from a saved run.")
def draw(
    run: Annotated[Path, typer.Argument(help="A saved run: its .json or .npz, or both files' common path.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path(),
    hops: Annotated[int, typer.Option(help="How many hops the time line and the walk show.", min=1)] = 40,
) -> None:
    """Draw the paper's figures 1 and 2 from a saved run: the network with its tokens, and which copy is updated when.

    A run with tokens, of up to 60 agents, also gives walk.svg, an animation of the tokens that any browser plays.

    **Example**

    `amble draw amble-out/2-api-bcd --out pictures`
    """
    from amble.results.animation import can_walk
    from amble.results.loading import load_run
    from amble.simulation.experiment import make_folder

    loaded = load_run(run)
    make_folder(out)
    written = [loaded.plot_network(out / "network.png"), loaded.plot_timeline(out / "timeline.png", hops)]
    if can_walk(loaded, hops):
        written.append(loaded.plot_walk(out / "walk.svg", hops))
    say(f"written: {', '.join(map(str, written))}")
