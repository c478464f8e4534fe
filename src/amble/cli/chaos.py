"""amble chaos."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from amble.cli.app import app, say

CHAOS_HELP = """Test the live protocol with simulated faults in networks, disks and clocks, which follow from one seed.

In each seed a few agents train while messages are lost, doubled or late, links are cut in one direction or both, agents
are killed, frozen, copied and restarted, disks hang, and clocks jump. Then the faults end. Checks run after every step:
no token is lost or doubled, and accounts are exact. At the end the model must be that of the living agents. Some seeds
are of surveys, whose sums must be exact, and some of whole runs in three stages, with faults in each of them.
Finished seeds are kept, and the same command continues from there.

**Examples**

`amble chaos --seeds 10000 --minutes 10`

`amble chaos --seed 17 --trace` - what happened in one seed: who sent what to whom, who crashed, what was reissued
"""


SEEDS = 1000


@app.command(help=CHAOS_HELP, short_help="Test the live protocol under simulated faults.")
def chaos(
    seeds: Annotated[int, typer.Option(help="How many seeds.", min=1)] = SEEDS,
    first_seed: Annotated[int, typer.Option(help="The first of them.", min=0)] = 0,
    faults: Annotated[int, typer.Option(help="Faults per seed; after them, nothing fails.", min=1)] = 1000,
    minutes: Annotated[float, typer.Option(help="Stop after this time; finished seeds are kept.")] = 10.0,
    seed: Annotated[int | None, typer.Option(help="Run this one seed only, and keep nothing.", min=0)] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Print what happens in --seed.")] = False,
    workers: Annotated[
        int | None, typer.Option(help="How many processes run at once.  [default: one per core]", min=1)
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="The file for finished seeds.")] = Path("chaos.json"),
) -> None:
    from amble.errors import AmbleError
    from amble.live.chaos import seeds as live
    from amble.progress import interruptible

    if seed is None and trace:
        raise AmbleError("--trace shows one seed; say which with --seed.")
    if seed is not None and seeds != SEEDS:
        raise AmbleError(f"--seed {seed} runs one seed, and --seeds {seeds} was given too; leave one of them out.")
    if seed is not None:
        result = live.run_seed(seed, faults, typer.echo if trace else None)
        show(1, sum(result["faults"].values()), result["faults"], result["counted"], [result], faults)
        return
    if not minutes > 0:
        raise AmbleError(f"--minutes {minutes:g} was given; it must be above zero.")
    if not out.absolute().parent.is_dir():
        raise AmbleError(f"the folder of {out} does not exist; make it first, or give another --out.")
    state = live.State.read(out, faults)
    try:
        state.add([])
    except OSError as error:
        raise AmbleError(f"{out} cannot be written ({error.strerror}); give another --out.") from error
    wanted = range(first_seed, first_seed + seeds)
    with interruptible(patient=True) as asked:
        finished = run_all(state, [each for each in wanted if each not in state.done], wanted, minutes * 60, workers)
    if not finished:
        left = sum(each not in state.done for each in wanted)
        say(f"{left} seeds are left; the same command continues from there.", "stopped:")
    show(len(state.done), state.kinds.total(), state.kinds, state.counted, state.broken, faults)
    if asked.is_set():
        raise typer.Exit(asked.code)


def run_all(state: Any, left: list[int], wanted: range, limit_s: float, workers: int | None) -> bool:
    """Run all remaining seeds, in batches, until the time is over or Ctrl-C comes."""
    from concurrent.futures import FIRST_COMPLETED, Future, wait

    from amble.live.chaos import seeds as live
    from amble.progress import Meter
    from amble.workers import LOOK_S, Workers

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
    """Print what was done; if a check failed, print how to repeat it, and exit with 1."""
    named = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items(), key=lambda item: -item[1]))
    say(f"{seeds:,} seed{'s' * (seeds != 1)}, {total:,} faults: {named}")
    say(
        f"{counted.get('visit', 0):,} visits, {counted.get('reissue', 0):,} reissues, "
        f"{counted.get('recount', 0):,} recounts by a neighbour, {counted.get('absorbed', 0):,} old copies discarded, "
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
