"""amble compare."""

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer

from amble.cli.app import app, console, say, say_written
from amble.cli.listed import WithNames
from amble.cli.watched import MLFLOW, TENSORBOARD, tracked

COMPARE_HELP = """Compare methods on one problem: a table, a figure like the paper's, and the saved runs.

**Examples**

`amble compare` - the paper's methods on embedded data

`amble compare --data digits --agents 10 --hops 2000`

`amble compare -m I-BCD:tau=1 -m API-BCD:tau=0.1,tokens=5,token_rule=tracked -m WPG:alpha=0.5`

`amble compare -m mine.py:Heavy:beta=0.9 -m WPG` - a method of your own: the class Heavy in the file mine.py

`amble compare -m all --tune` - every method, each with its step or penalty chosen by the same small search

`amble compare -m WPG:alpha=0.5 -m I-BCD --tune` - a value that you set is kept: only I-BCD's penalty is chosen

`amble compare --data rows.csv --target price --one-hot` - a file of your own: .csv, .tsv, .npz, .parquet, LIBSVM text

`amble compare --data rows.csv --by site` - one agent per site: the column says to which site a row belongs

`amble compare --data claims.csv --target claims --loss poisson --exposure years --weight w` - columns with a role

`amble compare --data digits --how dirichlet --alpha 0.1` - agents with different labels

`amble compare -m Relay --l1 0.01 --unpenalised age` - the lasso: some coefficients are exactly zero

`amble compare --timing link:latency_s=0.01,bytes_per_s=1e6`

`amble compare --walk metropolis --timing walkman --time-s 500`

`amble compare examples/experiment.toml --seed 3` - settings from a file; options override them

`amble compare --slow 3=10,5=10` - agents 3 and 5 compute ten times slower than the others

`amble compare --tensorboard curves` - with the curves for tensorboard --logdir curves, while the runs go on

{methods}
"""


def of(panel: str, *names: str, **settings: Any) -> Any:
    """An option of one group of the help. Its default is in the text, because settings of the file override it."""
    return typer.Option(*names, rich_help_panel=panel, show_default=False, **settings)


DATA, SPLIT, HOW, RUN = "Data", "Agents and their losses", "Network, walk and time", "Methods"
STOP = "When to stop (by default after 10,000 hops)"

# the columns with a role, for every command that reads a file
Event = Annotated[
    str | None, of(DATA, help="Of a file, for cox: the column of 1 (the event was seen) and 0 (censored).")
]
Offset = Annotated[str | None, of(DATA, help="Of a file, for poisson, gamma: a column, added to the linear predictor.")]
Exposure = Annotated[str | None, of(DATA, help="Of a file, for poisson, gamma: the column of years, areas and so on.")]
Weight = Annotated[str | None, of(DATA, help="Of a file: the column of row weights, how much each row counts.")]


@app.command(cls=WithNames, help=COMPARE_HELP, short_help="Compare methods: a table, a figure, the saved runs.")
def compare(
    experiment: Annotated[
        Path | None, typer.Argument(help="A TOML file of settings, all optional.", show_default=False)
    ] = None,
    data: Annotated[
        str | None, of(DATA, help="A name (see: amble data) or the path of a file.  [default: diabetes]")
    ] = None,
    task: Annotated[
        str | None, of(DATA, help="Of a file: regression or classification.  [default: by its targets]")
    ] = None,
    target: Annotated[
        str | None, of(DATA, help="Of a file: the target column, by name or number.  [default: the last]")
    ] = None,
    header: Annotated[
        bool | None,
        of(DATA, "--header/--no-header", help="Of a file: its first row names columns.  [default: by its cells]"),
    ] = None,
    one_hot: Annotated[bool, of(DATA, "--one-hot", help="Of a file: make columns of text categories.")] = False,
    event: Event = None,
    offset: Offset = None,
    exposure: Exposure = None,
    weight: Weight = None,
    by: Annotated[
        str | None, of(SPLIT, "--by", metavar="<column>", help="Of a file: one agent per value of this column.")
    ] = None,
    agents: Annotated[int | None, of(SPLIT, "--agents", "-n", help="How many agents.  [default: 20]")] = None,
    how: Annotated[
        str | None,
        of(SPLIT, help="Which agent holds which rows: even, sorted, by-label, dirichlet, by-sizes.  [default: even]"),
    ] = None,
    alpha: Annotated[
        float | None, of(SPLIT, help="Of dirichlet: the smaller it is, the more agents differ.  [default: 0.5]")
    ] = None,
    sizes: Annotated[
        str | None, of(SPLIT, metavar="<n,n,...>", help="Of by-sizes: rows per agent, or shares such as 0.5,0.3,0.2.")
    ] = None,
    test: Annotated[float | None, of(SPLIT, help="Share of rows kept for testing.  [default: 0.2]")] = None,
    loss: Annotated[
        str | None, of(SPLIT, help="{losses}; squared is least-squares.  [default: by task and number of classes]")
    ] = None,
    ridge: Annotated[
        float | None, of(SPLIT, help="Weight of the squared model in the loss.  [default: 0.0001]")
    ] = None,
    l1: Annotated[
        float | None, of(SPLIT, "--l1", help="Weight of the sum of absolute values: for full Relay.  [default: 0.0]")
    ] = None,
    positive: Annotated[
        str | None,
        of(SPLIT, metavar="<column,...>", help="Coefficients that may not be below zero: for full Relay; or all."),
    ] = None,
    unpenalised: Annotated[
        str | None, of(SPLIT, metavar="<column,...>", help="Columns without ridge and l1, by name or number.")
    ] = None,
    weights: Annotated[
        str | None,
        of(
            SPLIT,
            help="Which count alike: rows, or agents. (A column of row weights is --weight.)  [default: rows]",
        ),
    ] = None,
    no_scale: Annotated[bool, of(SPLIT, "--no-scale", help="Leave columns and targets in their own units.")] = False,
    no_intercept: Annotated[bool, of(SPLIT, "--no-intercept", help="A model without an intercept.")] = False,
    network: Annotated[str | None, of(HOW, help="{networks}.  [default: random]")] = None,
    density: Annotated[float | None, of(HOW, help="Share of all links a random network has.  [default: 0.7]")] = None,
    walk: Annotated[
        str | None,
        of(HOW, help="auto, cycle, cycles, stretches, meeting, metropolis, uniform, least-visited.  [default: auto]"),
    ] = None,
    timing: Annotated[
        str | None,
        of(HOW, help="paper, link, walkman or unit, with settings: paper:compute=measured.  [default: paper]"),
    ] = None,
    slow: Annotated[
        str | None,
        of(HOW, metavar="<i=x,...>", help="Agents that compute slower: 3=10 makes agent 3 ten times slower."),
    ] = None,
    seed: Annotated[
        int | None, of(HOW, help="Network, split, walk and link times follow from it.  [default: 0]")
    ] = None,
    method: Annotated[
        list[str] | None,
        of(RUN, "--method", "-m", metavar="<method>", help="NAME:key=value,...; repeat it.  [default: the paper's]"),
    ] = None,
    start: Annotated[
        Path | None, of(RUN, help="The initial model: a .npy file, as numpy.save(path, run.model) writes it.")
    ] = None,
    tune: Annotated[
        bool, of(RUN, "--tune", help="Choose the steps and penalties that you do not set, by pilot runs.")
    ] = False,
    penalised: Annotated[
        bool, of(RUN, "--penalised", help="Record the paper's F (eq. 3, 10) of methods that minimise it.")
    ] = False,
    every: Annotated[
        int | None,
        of(RUN, help="Record every so many hops, or rounds.  [default: whenever the hops have grown by 2 %]"),
    ] = None,
    out: Annotated[
        Path | None, of(RUN, "--out", "-o", help="Folder for figures and runs.  [default: amble-out]")
    ] = None,
    again: Annotated[bool, of(RUN, "--again", help="Replace the comparison that is in that folder.")] = False,
    mlflow: Annotated[str | None, of(RUN, metavar="<address>", help=MLFLOW)] = None,
    tensorboard: Annotated[Path | None, of(RUN, help=TENSORBOARD)] = None,
    hops: Annotated[int | None, of(STOP, help="After this many visits.")] = None,
    time_s: Annotated[float | None, of(STOP, "--time-s", help="After this many virtual seconds.")] = None,
    comm_units: Annotated[int | None, of(STOP, "--comm-units", help="After this many link crossings.")] = None,
    tolerance: Annotated[
        float | None, of(STOP, help="When the model moves less than this over a lap; 0: none.")
    ] = None,
    metric: Annotated[
        float | None,
        of(STOP, help="When the test accuracy is at least this or, of a regression, the NMSE at most; at a record."),
    ] = None,
) -> None:
    options: dict[str, Any] = dict(locals())
    from amble.data.packed import read_npy
    from amble.progress import interruptible
    from amble.simulation.comparison import file_name
    from amble.simulation.experiment import Experiment, parse, parse_columns, parse_sizes, parse_slow, read

    values: dict[str, Any] = {} if experiment is None else read(experiment)
    for key in ("experiment", "no_scale", "no_intercept", "timing", "slow", "method", "again", "mlflow", "tensorboard"):
        del options[key]
    options |= {
        "one_hot": one_hot or None,
        "positive": True if positive == "all" else None if positive is None else parse_columns(positive),
        "unpenalised": None if unpenalised is None else parse_columns(unpenalised),
        "sizes": None if sizes is None else parse_sizes(sizes),
        "scale": False if no_scale else None,
        "intercept": False if no_intercept else None,
        "start": None if start is None else read_npy(start).tolist(),
        "tune": tune or None,
        "penalised": penalised or None,
        "out": None if out is None else str(out),
        "methods": [parse(text) for text in method] if method else None,
    }
    values |= {key: value for key, value in options.items() if value is not None}
    if timing is not None:
        parsed = parse(timing)
        values["timing"] = {"model": parsed.pop("name"), **parsed}
    if slow is not None:
        base = values.get("timing", "paper")
        values["timing"] = {**(base if isinstance(base, dict) else {"model": str(base)}), "slowdown": parse_slow(slow)}
    settings = Experiment().with_settings(values)
    folder, screen = Path(settings.out), console()
    with interruptible(patient=True) as asked, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with tracked(mlflow, tensorboard) as on_record:
            chosen = settings.run(keep=folder, again=again, on_record=on_record)
        for note in dict.fromkeys(str(each.message) for each in caught):
            say(note, "note:")
        if not chosen.runs:
            say("before the first run ended; nothing was written.", "stopped")
            raise typer.Exit(asked.code)
        if target_note := settings.target_note(chosen[0].problem.get("target")):
            say(target_note, "note:")
        screen.print(chosen.table())
        screen.print(steps_note(chosen, settings.tune), style="dim", markup=False, highlight=False)
        names = [f"{file_name(k, run)}.json" for k, run in enumerate(chosen, 1)] + draw_all(chosen, folder)
        say_written(folder, names, " (each .json with its .npz)")
        if asked.is_set():
            say("the table and the files have what was done until then.", "stopped early:")
            raise typer.Exit(asked.code)


def steps_note(chosen: Any, tune: bool) -> str:
    """Where the steps and penalties of a comparison come from."""
    from amble.methods import tunable

    if not tune:
        return "Steps and penalties as given, or by default; --tune chooses them."
    kept = [f"{tunable(run.method)} of {run.method.label}" for run in chosen if tunable(run.method) and not run.tuning]
    return f"Steps and penalties were chosen by pilot runs{'; as given: ' if kept else ''}{', '.join(kept)}."


def draw_all(chosen: Any, folder: Path) -> list[str]:
    """The comparison's figure, which agent holds which rows, and two pictures of the run with most tokens."""
    from amble.methods import walks
    from amble.problem.picture import partition_picture

    written, about = [chosen.plot(folder / "compare.png")], chosen[0].problem
    if about.get("holdings"):
        path = folder / "partition.png"
        written.append(partition_picture(path, about["name"], about["holdings"], about["settings"]))
    moving = [run for run in chosen if run.schedule.hops]
    if moving:
        shown = max(moving, key=lambda run: (walks(run.method), getattr(run.method, "tokens", 1)))
        written += [shown.plot_network(folder / "network.png"), shown.plot_timeline(folder / "timeline.png")]
    return [path.name for path in written]
