"""amble collect and amble replay."""

from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app, say

FOLDERS = typer.Argument(help="Agents' folders, or a folder that contains several.", show_default=False)


@app.command(short_help="Gather the record of a live run from agents' folders.")
def collect(
    folders: Annotated[list[Path], FOLDERS],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder for record.npz.")] = Path("run"),
) -> None:
    """Gather into one file which agent visited which token when, and all other events, after the run has ended. The
    file has digests of tokens, but no agent's data, dual, slot or gradient. Copy agents' folders here, or only
    agent.toml, journal.db (with journal.db-wal, if there is one) and status.json of each.

    **Example**

    `amble collect north south west -o run`
    """
    from amble.data.datasets import count
    from amble.errors import AmbleError
    from amble.live.records import collect as gather
    from amble.live.records import measured, record
    from amble.simulation.experiment import make_folder

    gathered = gather.collect(gather.agent_folders(folders))
    if not gathered.hops:
        raise AmbleError("no visit is recorded in these folders; give the folders in which the agents ran.")
    make_folder(out)
    record.save(gathered, out / record.FILE)
    missing = [name for name in gathered.agents if name and name not in gathered.visits]
    others = ", ".join(f"{times} {kind}" for kind, times in sorted(gathered.counts().items()))
    known, active = sum(map(bool, gathered.agents)), sum(map(bool, gathered.visits.values()))
    summary = f"{count(gathered.hops, 'visit')} by {active} of {known} agents ({others or 'no events'})"
    say(f"written to {out / record.FILE}: {summary}")
    visit_ms, hop_ms = 1e3 * measured.compute_s(gathered).mean(), 1e3 * measured.hops_of(gathered).mean_s
    say(f"a visit took {visit_ms:.3g} ms, a hop {hop_ms:.3g} ms")
    for cut in gathered.cuts():
        say(f"{cut}; amble replay needs them", "note:")
    if missing:
        say(f"missing here: {', '.join(missing)}", "note:")


@app.command(short_help="Recompute every visit of a live run, and compare.")
def replay(folders: Annotated[list[Path], FOLDERS]) -> None:
    """Recompute every visit from the record and the data in the agents' folders, and compare every token's digest,
    before and after. The exit code is 1 if a digest differs or a visit could not be recomputed.

    **Example**

    `amble replay amble-up`
    """
    from amble.live.threads import one_thread

    one_thread()
    from amble.live.cluster import up
    from amble.live.records import collect as gather
    from amble.progress import interruptible

    with interruptible() as asked:
        outcome = up.again(gather.agent_folders(folders), asked.is_set)
    say(str(outcome))
    if not outcome.whole:
        raise typer.Exit(asked.code if asked.is_set() else 1)
