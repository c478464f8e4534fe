"""amble reproduce."""

from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app, console, say, say_written


@app.command(short_help="The paper's figures 3 to 6 and a verdict on each of its claims, as one page.")
def reproduce(
    figure: Annotated[
        list[int] | None,
        typer.Option(
            "--figure", "-f", metavar="<n>", help="3, 4, 5 or 6, without the other claims; repeat it.  [default: all]"
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="One seed, a quarter of the budgets, no tuned methods."),
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(help="How many seeds: networks, splits, walks, link times.  [default: 3]", min=1)
    ] = None,
    compute: Annotated[
        str, typer.Option(help="Seconds of a visit: measured on this machine once, or the fixed cost model.")
    ] = "measured",
    workers: Annotated[
        int | None, typer.Option(help="How many processes run at once.  [default: one per core]", min=1)
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the page, the figures and the runs.")] = Path(
        "amble-paper"
    ),
) -> None:
    """Repeat the paper's numerical section: cpusmall, cadata, ijcnn1 and USPS, its methods at its settings, every
    method tuned, and Relay. Then say, figure by figure, which of the paper's claims held. All methods of a figure have
    the same virtual time and the same communication. Without --figure, the claims about the size and the kind of the
    network and the worked example are tested too.

    Finished runs are kept and not repeated. Ctrl-C stops, and the same command continues from there. Data sets that are
    not on this machine are downloaded first (`amble data` lists them).

    **Examples**

    `amble reproduce --quick` - a first look, much sooner

    `amble reproduce` - everything; the page is amble-paper/report.html

    `amble reproduce -f 3 -f 4 --seeds 5 -o mine`

    `amble reproduce --compute model` - the same numbers on every machine
    """
    from amble.data.cache import ensure
    from amble.errors import AmbleError, unknown
    from amble.paper import plan
    from amble.paper import runs as paper_runs
    from amble.paper import trials as claim_trials
    from amble.paper.other_claims import studies
    from amble.paper.page import sections_of, write_all
    from amble.report.terminal import verdict_table
    from amble.simulation.experiment import make_folder

    if compute not in ("measured", "model"):
        raise unknown("way to count compute", compute, ("measured", "model"))
    numbers = [each.number for each in plan.FIGURES]
    for number in figure or ():
        if number not in numbers:
            raise unknown("figure", str(number), [str(each) for each in numbers])
    if quick and seeds is not None:
        raise AmbleError(f"--quick has one seed, and --seeds {seeds} was given; leave one of them out.")
    chosen = [each for each in plan.FIGURES if figure is None or each.number in figure]
    if quick:
        chosen = [plan.quickly(each) for each in chosen]
    for each in chosen:
        ensure(each.data)  # before any work: downloaded if necessary, or one sentence on what to do
    make_folder(out / "runs")
    screen = console()
    own_seeds = plan.SEEDS if seeds is None else range(seeds)
    jobs = plan.jobs(chosen, own_seeds, quick)
    made = paper_runs.make_all(jobs, out, compute, workers)
    planned = claim_trials.trials(quick, own_seeds) if figure is None else []
    trials = None if made is None else claim_trials.make_trials(planned, out / claim_trials.FOLDER, workers)
    if made is None or trials is None:
        say(f"finished runs are kept in {out}; the same command continues from there.", "stopped:")
        raise typer.Exit(130)
    sections = []
    for each in chosen:
        sections += sections_of(each, {job: runs for job, runs in made.items() if job.figure == each})
    others = studies(trials) if trials else []
    written = write_all(out, sections, others, paper_runs.machine_of(out), quick)
    for group in dict.fromkeys(section.group for section in sections if section.claims):
        tested = {each.title.replace(": ", "\n"): each.claims for each in sections if each.group == group}
        screen.print(verdict_table(f"Which claims held{f', {group}' if group else ''}", tested))
    if others:
        screen.print(verdict_table("Other claims", {"verdict": [claim for study in others for claim in study.claims]}))
    if figure is not None:
        say("The other claims are not tested with --figure; leave it out to test them.")
    say_written(out, [path.name for path in written], f"; the runs are in {out}/runs")
