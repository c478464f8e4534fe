"""amble compare and amble draw."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from amble.cli.app import app, console

COMPARE_HELP = """Compare methods on one problem: a table, a figure like the paper's, and the saved runs.

**Examples**

`amble compare` - the paper's methods on embedded data

`amble compare --data digits --agents 10 --hops 2000`

`amble compare -m I-BCD:tau=1 -m API-BCD:tau=0.1,tokens=5,token_rule=tracked -m WPG:alpha=0.5`

`amble compare -m all --tune` - every method, each with its step or penalty chosen by the same small search

`amble compare --data rows.csv --target price --one-hot` - a file of your own: .csv, .tsv, .npz, .parquet, LIBSVM text

`amble compare --data digits --how dirichlet --alpha 0.1` - agents that hold unlike labels

`amble compare --timing link:latency_s=0.01,bytes_per_s=1e6`

`amble compare --walk metropolis --timing walkman --time-s 500`

`amble compare examples/experiment.toml --seed 3` - settings from a file; options given here win

**Methods** (with `all` for every one) and their settings

walks: I-BCD (tau, tokens), API-BCD and gAPI-BCD (tau, tokens, token_rule = published, scaled or tracked; rho),
WPG (alpha, tokens), WADMM (beta, tokens, form = prox or gradient), PW-ADMM (beta, tokens, form = copies or own),
Relay (tokens, form = auto, full, scalar or gradient)

gossip: DGD (alpha), EXTRA (alpha), D-ADMM (rho); with a server: Central (tau), SyncWalks (tau, tokens),
FedAvg (alpha, local_steps)
"""


@app.command(help=COMPARE_HELP, short_help="Compare methods: a table, a figure, the saved runs.")
def compare(
    experiment: Annotated[Path | None, typer.Argument(help="A TOML file of settings, all optional.")] = None,
    data: Annotated[
        str | None,
        typer.Option(help="A name (see: amble data) or the path of a file.  [default: diabetes]"),
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="Of a file: regression or classification.  [default: by its targets]")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Of a file: the target column, by name or number.  [default: the last]")
    ] = None,
    header: Annotated[
        bool | None, typer.Option(help="Of a file: whether its first row names the columns.  [default: by its cells]")
    ] = None,
    one_hot: Annotated[bool, typer.Option("--one-hot", help="Of a file: make columns of text categories.")] = False,
    agents: Annotated[int | None, typer.Option("--agents", "-n", help="How many agents.  [default: 20]")] = None,
    how: Annotated[
        str | None, typer.Option(help="Who holds what: even, sorted, by-label, dirichlet, by-sizes.  [default: even]")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Of dirichlet: the smaller, the less alike agents are.  [default: 0.5]")
    ] = None,
    network: Annotated[
        str | None, typer.Option(help="random, ring, complete, grid, geometric.  [default: random]")
    ] = None,
    density: Annotated[
        float | None, typer.Option(help="Share of all links a random network has.  [default: 0.7]")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="NAME:key=value,...; repeat it.  [default: the paper's]")
    ] = None,
    walk: Annotated[
        str | None,
        typer.Option(help="auto, cycle, cycles, stretches, metropolis, uniform, least-visited.  [default: auto]"),
    ] = None,
    timing: Annotated[
        str | None,
        typer.Option(help="paper, link, walkman or unit, with settings: paper:compute=measured.  [default: paper]"),
    ] = None,
    hops: Annotated[int | None, typer.Option(help="Stop after this many visits.  [default: 10000]")] = None,
    time_s: Annotated[float | None, typer.Option("--time-s", help="Stop after this many virtual seconds.")] = None,
    comm_units: Annotated[int | None, typer.Option("--comm-units", help="Stop after this many link crossings.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Stop when the model moves less than this over a lap.")
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose each method's step or penalty by pilot runs first.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(help="Network, split, walk and link times follow from it.  [default: 0]")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for figures and runs.  [default: amble-out]")
    ] = None,
) -> None:
    from amble.experiment import Experiment, parse, read
    from amble.progress import interruptible

    given: dict[str, Any] = {} if experiment is None else read(experiment)
    options = {
        "data": data,
        "task": task,
        "target": target,
        "header": header,
        "one_hot": one_hot or None,
        "agents": agents,
        "how": how,
        "alpha": alpha,
        "network": network,
        "density": density,
        "walk": walk,
        "hops": hops,
        "time_s": time_s,
        "comm_units": comm_units,
        "tolerance": tolerance,
        "seed": seed,
        "tune": tune or None,
        "out": None if out is None else str(out),
        "methods": [parse(text) for text in method] if method else None,
    }
    given |= {key: value for key, value in options.items() if value is not None}
    if timing is not None:
        parsed = parse(timing)
        given["timing"] = {"model": parsed.pop("name"), **parsed}
    settings = Experiment().with_settings(given)
    folder, screen = Path(settings.out), console()
    with interruptible(patient=True) as asked, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chosen = settings.run(keep=folder)
        for words in dict.fromkeys(str(each.message) for each in caught):
            screen.print(f"[yellow]note:[/] {words}")
        if not chosen.runs:
            screen.print("[yellow]stopped[/] before the first run; nothing was written.")
            raise typer.Exit(asked.code)
        screen.print(chosen.table())
        if not settings.tune:
            screen.print("Steps and penalties as given, or by default; --tune chooses them.", style="dim")
        names = [path.name for path in sorted(folder.glob("*.json"))] + draw_all(chosen, folder)
        screen.print(f"written to {folder}/: {', '.join(names)} (each .json with its .npz)")
        if asked.is_set():
            screen.print("[yellow]stopped early:[/] the table and files hold what was done until then.")
            raise typer.Exit(asked.code)


def draw_all(chosen: Any, folder: Path) -> list[str]:
    """The comparison's figure, who holds what, and the two pictures of the run with most tokens."""
    from amble.report.partition import partition_picture, partition_title

    written, about = [chosen.plot(folder / "compare.png")], chosen[0].problem
    if about.get("holdings"):
        title = partition_title(about["name"], about["settings"])
        written.append(partition_picture(about["holdings"], folder / "partition.png", title))
    moving = [run for run in chosen if run.schedule.hops]
    if moving:
        shown = max(moving, key=lambda run: (hasattr(run.schedule, "token"), getattr(run.method, "tokens", 1)))
        written += [shown.plot_network(folder / "network.png"), shown.plot_timeline(folder / "timeline.png")]
    return [path.name for path in written]


@app.command(short_help="Draw the network and the tokens' time line of a saved run.")
def draw(
    run: Annotated[Path, typer.Argument(help="A saved run: its .json or .npz, or both files' common path.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path(),
    hops: Annotated[int, typer.Option(help="How many hops the time line shows.", min=1)] = 40,
) -> None:
    """Draw the paper's figures 1 and 2 from a saved run: the network with its tokens, and which copy is updated when.

    **Example**

    `amble draw amble-out/2-api-bcd --out pictures`
    """
    from amble.experiment import make_folder
    from amble.run import load_run

    loaded = load_run(run)
    make_folder(out)
    written = [loaded.plot_network(out / "network.png"), loaded.plot_timeline(out / "timeline.png", hops)]
    console().print(f"written: {', '.join(map(str, written))}")
