"""amble chaos."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from amble.cli.app import app, say

CHAOS_HELP = """Try the live protocol in a world that fails: simulated networks, disks and clocks, one seed for all.

In each seed a few agents train while messages are lost, doubled and late, links cut in one direction or both, agents
killed, frozen, copied and restarted, disks hang, and clocks leap; then all heals. After every step it is checked that
no token is lost or doubled, that accounts are exact, and in the end that the model is that of the agents who live.
Seeds that are done are kept, and the same command goes on from there.

**Examples**

`amble chaos --seeds 10000 --minutes 10`

`amble chaos --seed 17 --trace` - the story of one seed: who sent what to whom, who crashed, what was reissued
"""


@app.command(help=CHAOS_HELP, short_help="Try the live protocol under simulated faults.")
def chaos(
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = 1000,
    first_seed: Annotated[int, typer.Option(help="The first of them.", min=0)] = 0,
    faults: Annotated[int, typer.Option(help="Faults in each seed; then the world heals.", min=1)] = 1000,
    minutes: Annotated[float, typer.Option(help="Stop after this time; what is done is kept.")] = 10.0,
    seed: Annotated[int | None, typer.Option(help="Run this one seed only, and keep nothing.", min=0)] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print the story of --seed.")] = False,
    workers: Annotated[
        int | None, typer.Option(help="How many processes work at once.  [default: one per core]", min=1)
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where seeds that are done are kept.")] = Path("chaos.json"),
) -> None:
    from amble.errors import AmbleError
    from amble.live.chaos import seeds as live
    from amble.progress import interruptible

    if seed is None and trace:
        raise AmbleError("--trace tells the story of one seed; say which with --seed.")
    if seed is not None:
        result = live.run_seed(seed, faults, typer.echo if trace else None)
        show(1, sum(result["faults"].values()), result["faults"], result["counted"], [result], faults)
        return
    if not minutes > 0:
        raise AmbleError(f"--minutes {minutes:g} was given; it must be above zero.")
    if not out.absolute().parent.is_dir():
        raise AmbleError(f"the folder of {out} does not exist; make it first, or give another --out.")
    state = live.State.read(out, faults)
    wanted = range(first_seed, first_seed + seeds)
    with interruptible(patient=True) as asked:
        finished = run_all(state, [each for each in wanted if each not in state.done], wanted, minutes * 60, workers)
    if not finished:
        left = sum(each not in state.done for each in wanted)
        say(f"{left} seeds are left; the same command goes on from there.", "stopped:")
    show(len(state.done), state.kinds.total(), state.kinds, state.counted, state.broken, faults)
    if asked.is_set():
        raise typer.Exit(asked.code)


def run_all(state: Any, left: list[int], wanted: range, limit_s: float, workers: int | None) -> bool:
    """All seeds that are left, in batches, until the time is over or Ctrl-C comes."""
    from concurrent.futures import FIRST_COMPLETED, Future, wait

    from amble.live.chaos import seeds as live
    from amble.paper.workers import LOOK_S, Workers
    from amble.progress import Meter

    end_s = time.monotonic() + limit_s
    batches = iter([left[k : k + live.BATCH] for k in range(0, len(left), live.BATCH)])
    waiting = set[Future[list[dict[str, Any]]]]()
    if not left:
        return True
    begun = len(wanted) - len(left)
    with Workers(workers) as crew, Meter("seeds", len(wanted), begun, unit="seeds", lines=True) as meter:
        while not crew.asked.is_set() and time.monotonic() < end_s:
            while len(waiting) < 2 * crew.count and (batch := next(batches, None)):
                waiting.add(crew.pool.submit(live.run_batch, batch, state.faults))
            if not waiting:
                return True
            ended, waiting = wait(waiting, LOOK_S, FIRST_COMPLETED)
            if ended:
                state.add([result for each in ended for result in each.result()])
            meter.update(sum(each in state.done for each in wanted))
    return False


def show(seeds: int, total: int, kinds: Any, counted: Any, broken: list[Any], faults: int) -> None:
    """What was done; and if something broke, how to see it again, and exit code 1."""
    named = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items(), key=lambda item: -item[1]))
    say(f"{seeds:,} seed{'s' * (seeds != 1)}, {total:,} faults: {named}")
    say(
        f"{counted.get('visit', 0):,} visits, {counted.get('reissue', 0):,} re-issues, "
        f"{counted.get('recount', 0):,} recounts by a neighbour, {counted.get('absorbed', 0):,} absorptions, "
        f"{counted.get('stopped', 0):,} agents that stopped"
    )
    wrong = [each for each in broken if each["broken"]]
    for each in wrong:
        say(f"seed {each['seed']}, after {each['time_s']:.3f} s: {each['broken']}", "broken:", "red")
        option = "" if faults == 1000 else f" --faults {faults}"
        say(f"  see it: amble chaos --seed {each['seed']}{option} --trace")
    if wrong:
        raise typer.Exit(1)
    say("No invariant was broken.")
