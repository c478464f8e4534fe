"""amble reproduce."""

from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app, console


@app.command(short_help="The paper's figures 3 to 6 and a verdict on each of its claims, as one page.")
def reproduce(
    figure: Annotated[
        list[int] | None, typer.Option("--figure", "-f", help="3, 4, 5 or 6; repeat it.  [default: all]")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, a quarter of the hops, no tuned methods: about a minute.")
    ] = False,
    seeds: Annotated[int, typer.Option(help="How many seeds: networks, splits, walks, link times.", min=1)] = 3,
    compute: Annotated[
        str, typer.Option(help="Seconds of a visit: measured on this machine once, or the fixed cost model.")
    ] = "measured",
    workers: Annotated[
        int | None, typer.Option(help="How many processes work at once.  [default: one a core]", min=1)
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the page, the figures and the runs.")] = Path(
        "amble-paper"
    ),
) -> None:
    """Run the paper's numerical section again: cpusmall, cadata, ijcnn1 and USPS, its methods at its settings, every
    other method tuned, and Relay; then say, figure by figure, which of the paper's claims held.

    Runs that are done are kept and not made again; Ctrl-C stops, and the same command goes on from there. Data sets
    that are not on this machine are fetched first (`amble data` lists them).

    **Examples**

    `amble reproduce --quick` - about a minute

    `amble reproduce` - all of it, about ten minutes on two cores; the page is amble-paper/report.html

    `amble reproduce -f 3 -f 4 --seeds 5 -o mine`

    `amble reproduce --compute model` - the same numbers on every machine
    """
    from amble import reproduction
    from amble.data.cache import ensure
    from amble.errors import unknown
    from amble.experiment import make_folder
    from amble.report.paper_page import sections_of, write_all
    from amble.report.table import verdict_table
    from amble.workers import Workers

    if compute not in ("measured", "model"):
        raise unknown("way to count compute", compute, ("measured", "model"))
    numbers = [each.number for each in reproduction.FIGURES]
    for number in figure or ():
        if number not in numbers:
            raise unknown("figure", str(number), [str(each) for each in numbers])
    chosen = [each for each in reproduction.FIGURES if figure is None or each.number in figure]
    for each in chosen:
        ensure(each.data)  # before any work: fetched if need be, or one sentence on what to do
    make_folder(out / "runs")
    screen = console()
    jobs = reproduction.jobs(chosen, range(seeds), quick)
    file, runs = out / "calibration.json", out / "runs"

    keys = {reproduction.calibration_key(job) for job in jobs}

    def measured() -> int:
        return len(keys & reproduction.calibrated(file).keys())

    def there(job: reproduction.Job) -> int:
        return sum(reproduction.is_there(job, seed, visit_s[job], runs) for seed in job.seeds)

    with Workers(workers) as pool:
        if compute == "model":
            visit_s = {job: reproduction.modelled(job) for job in jobs}
        else:  # one job for all: side by side they would disturb each other
            batch = [(jobs, file)] if measured() < len(keys) else []
            if not pool.run(reproduction.calibrate, batch, measured, len(keys), "measuring visits"):
                raise typer.Exit(130)
            seconds = reproduction.calibrated(file)
            visit_s = {job: seconds[reproduction.calibration_key(job)] for job in jobs}
        longest_first = sorted(jobs, key=lambda job: reproduction.effort(job, visit_s[job]), reverse=True)
        left = [(job, visit_s[job], runs) for job in longest_first if there(job) < len(job.seeds)]
        total = sum(len(job.seeds) for job in jobs)
        finished = pool.run(reproduction.make_runs, left, lambda: sum(map(there, jobs)), total, "runs")
    if not finished:
        kept = f"{sum(map(there, jobs))} of {total} runs are kept in {runs}"
        screen.print(f"[yellow]stopped:[/] {kept}; the same command goes on from there.")
        raise typer.Exit(130)
    sections = []
    for each in chosen:
        made = {job: reproduction.runs_of(job, visit_s[job], runs) for job in jobs if job.figure == each}
        sections += sections_of(each, made)
    written = write_all(out, sections, reproduction.machine_of(file), quick)
    screen.print(verdict_table([section for section in sections if section.claims]))
    screen.print(f"written to {out}/: {', '.join(path.name for path in written)}; the runs are in {runs}")
