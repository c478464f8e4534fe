"""amble sweep."""

from pathlib import Path
from typing import Annotated, Any

import typer

from amble.cli.app import app, console, say, say_written
from amble.cli.compare import DATA, HOW, RUN, SPLIT, STOP, of
from amble.cli.listed import WithNames

SWEEP_HELP = """Thousands of runs: settings x seeds x networks x splits. A table, the best settings, a heat map.

Every run is the one that amble compare makes with the same settings and seed. What is done is kept in the folder: the
same command makes only what is missing, after Ctrl-C, a crash, or with more seeds.

**Examples**

`amble sweep -m API-BCD:tokens=5 --grid tau=0.01,0.1,1 --seeds 16`

`amble sweep -m I-BCD -m WPG --random tau=1e-3..10 --random alpha=0.01..1 --tries 20` - drawn on a log scale

`amble sweep -m Relay -m API-BCD --grid tokens=1,2,5 --network ring --network random --splits 3`

`amble sweep examples/sweep.toml --seeds 64` - settings from a file; options override them

`amble sweep examples/sweep.toml --rank time_s_within_0.01` - the best is the fastest to the optimum's metric

`amble sweep examples/sweep.toml --executor dask://head:8786` - on the workers of a Dask cluster

`mpiexec -n 16 amble sweep examples/sweep.toml --executor mpi` - under MPI

`amble sweep examples/sweep.toml --part 3/8` - the third of eight parts, for jobs that share the folder

{methods}
"""
WHAT, WHERE, SHOWN = "What is varied", "Where it runs", 12  # lines of the table: the file has all


@app.command(cls=WithNames, help=SWEEP_HELP, short_help="Thousands of runs: a table, the best settings, a heat map.")
def sweep(
    plan: Annotated[
        Path | None, typer.Argument(help="A TOML file of settings, all optional.", show_default=False)
    ] = None,
    method: Annotated[
        list[str] | None,
        of(WHAT, "--method", "-m", metavar="<method>", help="NAME:key=value,...; repeat it.  [default: the paper's]"),
    ] = None,
    grid: Annotated[
        list[str] | None, of(WHAT, metavar="<key=v,v,...>", help="Values of a setting; every combination is run.")
    ] = None,
    random: Annotated[
        list[str] | None,
        of(WHAT, metavar="<key=low..high>", help="A setting that is drawn: log scale, or :linear, :whole after it."),
    ] = None,
    tries: Annotated[int | None, of(WHAT, help="How many draws of --random.")] = None,
    seeds: Annotated[int | None, of(WHAT, help="How many seeds, from 0 on.  [default: 8]")] = None,
    splits: Annotated[int | None, of(WHAT, help="How many splits of the data.  [default: 1]")] = None,
    network: Annotated[
        list[str] | None, of(WHAT, metavar="<name>", help="{networks}; repeat it.  [default: random]")
    ] = None,
    data: Annotated[
        str | None, of(DATA, help="A name (see: amble data) or the path of a file.  [default: diabetes]")
    ] = None,
    target: Annotated[
        str | None, of(DATA, help="Of a file: the target column, by name or number.  [default: the last]")
    ] = None,
    agents: Annotated[int | None, of(SPLIT, "--agents", "-n", help="How many agents.  [default: 20]")] = None,
    how: Annotated[
        str | None, of(SPLIT, help="Who holds what: even, sorted, by-label, dirichlet.  [default: even]")
    ] = None,
    loss: Annotated[str | None, of(SPLIT, help="{losses}.  [default: by task and number of classes]")] = None,
    walk: Annotated[
        str | None,
        of(HOW, help="auto, cycle, cycles, stretches, meeting, metropolis, uniform, least-visited.  [default: auto]"),
    ] = None,
    timing: Annotated[
        str | None, of(HOW, help="paper, link, walkman or unit, with settings.  [default: paper]")
    ] = None,
    hops: Annotated[int | None, of(STOP, help="After this many visits.")] = None,
    time_s: Annotated[float | None, of(STOP, "--time-s", help="After this many virtual seconds.")] = None,
    comm_units: Annotated[int | None, of(STOP, "--comm-units", help="After this many link crossings.")] = None,
    tolerance: Annotated[
        float | None, of(STOP, help="When the model moves less than this over a lap; 0: none.")
    ] = None,
    rank: Annotated[
        str | None, of(RUN, metavar="<column>", help="The column that says what is best.  [default: objective]")
    ] = None,
    out: Annotated[
        Path | None, of(RUN, "--out", "-o", help="Folder for the table and all that is kept.  [default: amble-sweep]")
    ] = None,
    executor: Annotated[
        str | None,
        of(WHERE, metavar="<where>", help="dask://host:port, or mpi.  [default: the cores of this machine]"),
    ] = None,
    workers: Annotated[
        int | None, of(WHERE, min=1, help="Processes on this machine.  [default: as many as cores]")
    ] = None,
    part: Annotated[
        str | None, of(WHERE, metavar="<k/n>", help="Only the k-th of n parts, on a folder that all share.")
    ] = None,
) -> None:
    options: dict[str, Any] = dict(locals())
    from amble.errors import AmbleError
    from amble.simulation.experiment import parse, read

    if executor not in (None, "mpi") and not executor.startswith("dask://"):
        raise AmbleError(f"--executor {executor} was given; write dask://HOST:PORT, or mpi.")
    values: dict[str, Any] = {} if plan is None else read(plan)
    for key in ("plan", "method", "grid", "random", "network", "timing", "executor", "workers", "part"):
        del options[key]
    options |= {
        "out": None if out is None else str(out),
        "methods": [parse(text) for text in method] if method else None,
        "networks": network,
        "grid": dict(map(grid_of, grid)) if grid else None,
        "random": dict(map(span_of, random)) if random else None,
    }
    values |= {key: value for key, value in options.items() if value is not None}
    if timing is not None:
        parsed = parse(timing)
        values["timing"] = {"model": parsed.pop("name"), **parsed}
    if executor != "mpi":
        run(values, executor, workers, part_of(part))
        return
    from amble.sweeps.executors import mpi

    with mpi() as pool:
        if pool is not None:  # else this process has worked for the first one, and is done
            run(values, pool, workers, part_of(part))


def run(values: dict[str, Any], executor: Any, workers: int | None, part: tuple[int, int] | None) -> None:
    """Make the sweep, and show it."""
    import importlib.util

    from amble.progress import interruptible
    from amble.sweeps.settings import arguments, read_settings
    from amble.sweeps.sweep import sweep as make

    own, runs = read_settings(values)
    folder = Path(runs.out)
    with interruptible(patient=True) as asked:
        made = make(**arguments(own, runs), executor=executor, workers=workers, folder=folder, part=part)
        if part is not None or not made.cases:
            left = f", {made.missing} are missing" if made.missing else ""
            which = "no part" if part is None else f"part {part[0]} of {part[1]}"
            say(f"{len(made)} runs of {which} are done{left}; the same command without --part shows all.")
        else:
            console().print(table(made, own.rank))
            written = [made.save(folder / "sweep.csv"), made.plot(folder / "sweep.png", by=own.rank)]
            if importlib.util.find_spec("pyarrow"):
                written.append(made.save(folder / "sweep.parquet"))
            for sentence in tests(made, own.rank):
                say(sentence)
            say_written(folder, [path.name for path in written])
        if asked.is_set():
            say(f"{made.missing} runs are missing; the same command makes them.", "stopped early:")
            raise typer.Exit(asked.code)


def table(made: Any, rank: str) -> Any:
    """The best settings, the best first."""
    from rich.table import Table

    ranked = made.ranked(rank)
    shown = Table(title=f"{made!r}, the best by {rank}", title_justify="left")
    for name, side in (("setting", "left"), ("network", "left"), ("median", "right"), ("middle half", "right")):
        shown.add_column(name, justify=side)  # type: ignore[arg-type]
    shown.add_column("none", justify="right")
    for each in ranked[:SHOWN]:
        row = (each.label, each.network, f"{each.median:.4g}", f"{each.low:.4g} to {each.high:.4g}")
        shown.add_row(*row, f"{each.missed}/{each.runs}")
    if len(ranked) > SHOWN:
        shown.caption = f"and {len(ranked) - SHOWN} more settings"
    return shown


def tests(made: Any, rank: str) -> list[str]:
    """The best setting of the best method against that of each other one, over paired seeds."""
    names = list(dict.fromkeys(each.method for each in made.ranked(rank)))
    return [str(made.compare(names[0], other, by=rank)) for other in names[1:]]


def grid_of(text: str) -> tuple[str, list[Any]]:
    """tau=0.01,0.1,1 as a setting and its values."""
    from amble.errors import AmbleError
    from amble.simulation.experiment import parse

    key, equals, values = text.partition("=")
    if not equals or not values:
        raise AmbleError(f"--grid {text} was given; write KEY=VALUE,VALUE, such as tau=0.01,0.1,1.")
    return key.strip(), [parse(f"x:v={value}")["v"] for value in values.split(",")]


def span_of(text: str) -> tuple[str, tuple[Any, Any, str]]:
    """tau=1e-3..10:log as a setting and what it is drawn from."""
    from amble.errors import AmbleError

    key, _, span = text.partition("=")
    span, _, scale = span.partition(":")
    low, _, high = span.partition("..")
    try:
        return key.strip(), (float(low), float(high), scale or "log")
    except ValueError:
        raise AmbleError(f"--random {text} was given; write KEY=LOW..HIGH, such as tau=1e-3..10.") from None


def part_of(text: str | None) -> tuple[int, int] | None:
    """3/8 as the third of eight."""
    from amble.errors import AmbleError

    if text is None:
        return None
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise AmbleError(f"--part {text} was given; write K/N, such as 3/8, with K from 1 to N.")
    return int(k), int(n)
