"""amble up."""

from pathlib import Path
from typing import Annotated, Any

import typer

from amble.cli.app import app, console, say
from amble.cli.listed import WithNames
from amble.cli.page import QUIET, Shown
from amble.cli.watched import ADDRESS, MLFLOW, PROMETHEUS, TENSORBOARD, Watched

UP_HELP = """Train on this machine with real agents: one process per agent, its own rows, mTLS between them, no server.

It shows which agents are up and where the tokens are. It ends when the model has converged (--tolerance), or after
--hops or --seconds. The folder then has model.npz (see: amble predict), record.npz, and one folder per agent with its
settings, certificate, rows, journal and log. At the end it recomputes every visit from the record and compares the
digests, which also gives curves for amble report. Ctrl-C or SIGTERM stops all agents and keeps the results so far.

**Examples**

`amble up` - ten classes of digits, 8 agents, Relay with 2 tokens

`amble up --data diabetes --agents 20 -m Relay:tokens=3 --tolerance 1e-9`

`amble up --data rows.csv --target price --one-hot -o prices` - a file of your own

`amble up --data claims.csv --target claims --loss poisson --exposure years --weight w` - columns with a role

`amble up --data digits --how dirichlet --alpha 0.1 --seconds 30 --again` - in place of the last run

`amble up --model net.py -m WPG:alpha=0.5 --agents 4 --tolerance 0 --hops 2000` - a network of your own

`amble up --prometheus 9464` - with metrics of all agents at http://127.0.0.1:9464/metrics

`amble up --data hospitals --target died --loss logistic` - a folder with a table per site: the sites agree on columns
and scaling by a survey, and end with the model of all rows and its standard errors
"""

MORE = "give more --hops or --seconds, or let --tolerance end it"


@app.command(cls=WithNames, help=UP_HELP, short_help="Train on this machine with real agents, live.")
def up(
    ctx: typer.Context,
    data: Annotated[
        str, typer.Option(help="A name (see: amble data), the path of a file, or a folder with a table per site.")
    ] = "digits",
    task: Annotated[str | None, typer.Option(help="Of a file: regression or classification.")] = None,
    target: Annotated[str | None, typer.Option(help="Of a file: the target column, by name or number.")] = None,
    header: Annotated[bool | None, typer.Option(help="Of a file: whether its first row names the columns.")] = None,
    one_hot: Annotated[bool, typer.Option("--one-hot", help="Of a file: make columns of text categories.")] = False,
    agents: Annotated[int, typer.Option("--agents", "-n", help="How many agents.")] = 8,
    how: Annotated[
        str, typer.Option(help="Which agent holds which rows: even, sorted, by-label, dirichlet, by-sizes.")
    ] = "even",
    alpha: Annotated[
        float | None, typer.Option(help="Of dirichlet: the smaller it is, the more agents differ.")
    ] = None,
    sizes: Annotated[
        str | None, typer.Option(metavar="<n,n,...>", help="Rows per agent, or shares such as 0.5,0.3,0.2.")
    ] = None,
    test: Annotated[
        str | None,
        typer.Option(
            metavar="<share|folder>",
            help="Share of rows held out for the test metric; by default 0.2, of sites 0. Of sites also a folder with "
            "a test table per site.",
        ),
    ] = None,
    loss: Annotated[str | None, typer.Option(help="{losses}.")] = None,
    missing: Annotated[str, typer.Option(help="Of sites' missing cells: refuse, mean or drop.")] = "refuse",
    event: Annotated[str | None, typer.Option(help="For cox: the column of 1 (event) and 0 (censored).")] = None,
    offset: Annotated[str | None, typer.Option(help="For poisson and gamma: a column that is added.")] = None,
    exposure: Annotated[str | None, typer.Option(help="For poisson and gamma: the column of years and so on.")] = None,
    weight: Annotated[str | None, typer.Option(help="The column of row weights, how much each row counts.")] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="<column,...>", help="Of sites: the columns of the model.  [default: all]")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="<column=level,...>",
            help="Of sites: what other levels are compared with.  [default: the first]",
        ),
    ] = None,
    network: Annotated[str | None, typer.Option(help="{networks}; by default random, of sites complete.")] = None,
    density: Annotated[float, typer.Option(help="Share of all links a random network has.")] = 0.7,
    method: Annotated[str, typer.Option("--method", "-m", help="NAME:key=value,...")] = "Relay:tokens=2",
    model: Annotated[
        Path | None, typer.Option(help="A Python file with a model of your own, such as net.py: docs/own-model.md.")
    ] = None,
    ridge: Annotated[
        float | None, typer.Option(help="Weight of the squared model in the loss; by default 1e-4, of sites 0.")
    ] = None,
    l1: Annotated[
        float | None, typer.Option("--l1", help="Weight of the sum of absolute values (lasso): for Relay.")
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(metavar="<column,...>", help="Coefficients that may not be below zero: for Relay; or all."),
    ] = None,
    unpenalised: Annotated[
        str | None, typer.Option(metavar="<column,...>", help="Columns without ridge and l1.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Stop when the model moves less than this over two laps; 0: never.")
    ] = 1e-6,
    hops: Annotated[int | None, typer.Option(help="Stop after about this many visits.")] = None,
    seconds: Annotated[float | None, typer.Option(help="Stop after this many seconds.")] = None,
    pause: Annotated[float, typer.Option(help="Seconds added to each visit, to imitate a slower device.")] = 0.0,
    start: Annotated[
        Path | None, typer.Option(help="The initial model: the model.npz of an earlier run, or a .npy file.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Network, split and walk follow from it.")] = 0,
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for all files.")] = Path("amble-up"),
    again: Annotated[bool, typer.Option("--again", help="Replace the run that is in that folder.")] = False,
    page: Annotated[bool, typer.Option("--page", help="Show the run in the browser (see: amble page).")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help=f"Of --page: {QUIET}")] = False,
    prometheus: Annotated[str | None, typer.Option(metavar=ADDRESS, help=PROMETHEUS)] = None,
    mlflow: Annotated[str | None, typer.Option(metavar="<address>", help=MLFLOW)] = None,
    tensorboard: Annotated[Path | None, typer.Option(help=TENSORBOARD)] = None,
) -> None:
    from amble.live.threads import one_thread

    one_thread()
    from amble.errors import AmbleError, need

    need("cryptography", "live")
    need("zenoh", "live")
    from amble.live.cluster import up as live
    from amble.progress import interruptible
    from amble.simulation.experiment import Experiment, parse, parse_columns, parse_sizes

    lists = {"positive": positive, "unpenalised": unpenalised, "columns": columns, "reference": reference}
    stop = {"tolerance": tolerance, "hops": hops, "seconds": seconds}
    watched = Watched(Shown(page, not no_browser), prometheus, mlflow, tensorboard)
    roles = {"event": event, "offset": offset, "exposure": exposure, "weight": weight}
    built_in = {"loss": loss, "ridge": ridge, "l1": l1, "positive": positive, "unpenalised": unpenalised, **roles}
    if model is not None and (strange := next(iter(_said(built_in)), None)):
        raise AmbleError(f"--{strange} was given with --model, whose file has the whole loss; leave it out.")
    if Path(data).is_dir():
        for name in ("agents", "how", "alpha", "sizes", "one_hot", "start", "model"):
            if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE":
                option = f"--{name.replace('_', '-')}"
                raise AmbleError(f"{option} was given with a folder of tables, one agent each; leave it out.")
        tests = Path(test) if test is not None and Path(test).is_dir() else None
        open_model: dict[str, Any] = {
            "task": task, "target": target, "loss": loss, "ridge": ridge, "header": header, "l1": l1, **roles,
            **{key: True if value == "all" else value.split(",") for key, value in _said(lists).items()},
        }  # fmt: skip
        _sites(
            Path(data),
            out,
            again,
            method=parse(method),
            model=_said(open_model),
            survey=_said({"missing": missing, "test": None if tests else _share(test)}),
            stop=_said(stop),
            network=network or "complete",
            density=density,
            seed=seed,
            pause_s=pause,
            test=tests,
            watched=watched,
        )
        return
    if missing != "refuse":
        raise AmbleError(f"--missing {missing} was given with one file; it is for a folder of tables: leave it out.")
    for name in ("columns", "reference"):
        if lists.pop(name) is not None:
            raise AmbleError(f"--{name} was given, and {data} is no folder with a table per site; leave it out.")
    given: dict[str, Any] = {
        "data": data, "task": task, "target": target, "header": header, "one_hot": one_hot, "agents": agents,
        "how": how, "alpha": alpha, "test": _share(test), "network": network, "density": density, "ridge": ridge,
        "seed": seed, "loss": loss, "l1": l1, **roles,
        **{key: True if value == "all" else parse_columns(value) for key, value in _said(lists).items()},
        "sizes": None if sizes is None else parse_sizes(sizes), "methods": [parse(method)],
    }  # fmt: skip
    settings = Experiment().with_settings({key: value for key, value in given.items() if value is not None})
    with watched, interruptible(patient=True) as asked:
        plan = live.prepare(settings, _said(stop), out.resolve(), again, pause, start, model)
        for note in filter(None, [settings.target_note(plan.target), *plan.config.notes()]):
            say(note, "note:")
        if asked.is_set():
            say("before the first agent started; nothing was written.", "stopped")
            raise typer.Exit(asked.code)
        title = f"{data}: {agents} agents, {method}, {settings.network} network; Ctrl-C stops"
        with live.start(plan) as cluster:  # which holds the folder, so that nobody replaces it meanwhile
            watched.open(plan.folder, plan.problem.name)
            lost = live.watch(plan, cluster, title, asked.is_set, watched.looked)
            trained = live.finish(plan, cluster)
            if isinstance(trained, live.NoModel):
                say(f"{trained.why}; the agents' logs are in {out}/.", "no model was written:")
                raise typer.Exit(asked.code if asked.is_set() else 1)
            unmet = live.unmet(cluster, lost)
            _tell(plan, cluster, trained, {*lost, *unmet})
            checked = not asked.is_set() and _check(plan, asked.is_set)
        curves = "run.json (see: amble report), " if (plan.folder / "run.json").is_file() else ""
        say(f"written to {out}/: model.npz, record.npz, {curves}one folder per agent")
        if unmet:
            say(
                f"the run ended before a token visited {', '.join(unmet)}: the model lacks their data; {MORE}.", "note:"
            )
        for name, reason in lost.items():
            say(reason, f"{name} failed:", "red")
        if asked.is_set():
            say("the results so far were kept.", "stopped early:")
            raise typer.Exit(asked.code)
        if lost or not checked:
            raise typer.Exit(1)


def _share(test: str | None) -> float | None:
    from amble.errors import AmbleError

    try:
        return None if test is None else float(test)
    except ValueError:
        raise AmbleError(
            f"--test {test} was given; give a share of the rows, such as 0.2, or, with a folder of tables, a folder "
            "with a test table per site."
        ) from None


def _said(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if value is not None}


def _sites(data: Path, out: Path, again: bool, watched: Watched, **settings: Any) -> None:
    """A run of sites that agree on the model by a survey."""
    from amble.cli.summary import text_of
    from amble.live.cluster import sites
    from amble.live.cluster import up as live
    from amble.live.records import collect
    from amble.progress import interruptible

    with watched, interruptible(patient=True) as asked:
        plan = sites.prepare(data, out.resolve(), again, **settings)
        for note in plan.config.notes():
            say(note, "note:")
        title = f"{data}: {len(plan.sites)} sites, {plan.config.method.label}; Ctrl-C stops"
        say(f"sites: {', '.join(plan.sites)}")
        with sites.start(plan) as cluster:
            watched.open(plan.folder, data.resolve().name)
            lost = sites.watch(cluster, title, asked.is_set, watched.looked)
            model = sites.finish(plan, cluster)
            if isinstance(model, live.NoModel):
                say(f"{model.why}; the agents' logs are in {out}/.", "no model was written:")
                raise typer.Exit(asked.code if asked.is_set() else 1)
            console().print(text_of(model), markup=False, highlight=False)
            outcome = live.again(collect.agent_folders([plan.folder]), asked.is_set)
            say(str(outcome), "replayed:" if outcome.whole else "not replayed in full:")
        say(f"written to {out}/: model.npz (see: amble summary, amble predict), record.npz, one folder per site")
        said = settings["model"]
        if len(model.labels) > 2 and not {"task", "loss"} & said.keys() and not isinstance(model.labels[0], str):
            say(
                f"the {len(model.labels)} numbers of {model.target} were taken for labels; if they are amounts or "
                "counts, give --task regression or --loss poisson.",
                "note:",
            )
        for name, reason in lost.items():
            say(reason, f"{name} failed:", "red")
        if asked.is_set():
            say("what there was by then was kept.", "stopped early:")
            raise typer.Exit(asked.code)
        if lost or not outcome.whole:
            raise typer.Exit(1)


def _tell(plan: Any, cluster: Any, model: Any, absent: set[str]) -> None:
    """Print each agent's part, and how good the model is; the model may lack the data of the agents in `absent`."""
    import numpy as np
    from rich.table import Table

    from amble.live.cluster import up as live
    from amble.live.records import collect

    folders = collect.agent_folders([plan.folder])
    names, gone = tuple(folders), {*absent, *(name for name in folders if cluster.status(name).state == "left")}
    joined = live.objectives_of({name: folders[name] for name in names if name not in {*plan.config.agents, *gone}})
    models = {name: w for name in names if name not in gone and (w := cluster.model(name)) is not None}
    table = Table("agent", "visits", "farthest from another's model")
    for name in names:
        mine = models.get(name, np.full(plan.problem.dimension, np.nan))
        apart = max((live.distance(mine, other) for other in models.values()), default=np.nan)
        table.add_row(name, f"{cluster.status(name).visits:,}", f"{apart:.1e}")
    console().print(table)
    reasons = [status.stopped for name in names if (status := cluster.status(name)).cause]
    say(f"ended: {reasons[0] if reasons else 'early'}")
    best = plan.optimum(gone, tuple(joined.values()))
    whose = f" of all rows but those of {', '.join(sorted(gone))}" if gone else ""
    for name, figure in plan.figures(model.w).items():
        whole = "" if best is None else f"; of the centralised optimum{whose}: {plan.problem.metric(best):.4f}"
        say(f"test {name} {figure:.4f}{whole}")
    if best is not None:
        say(f"distance of the model to the centralised optimum{whose}: {live.distance(model.w, best):.1e}")


def _check(plan: Any, halt: Any) -> bool:
    """Whether every visit that can be recomputed gives what was recorded; visits that visits_max dropped cannot be."""
    from amble.live.cluster import up as live
    from amble.live.records import collect, record

    outcome = live.again(collect.agent_folders([plan.folder]), halt, plan)
    cut = not outcome.first and bool(record.load(plan.folder / record.FILE).dropped)
    colour = "green" if outcome.whole else "yellow" if cut else "red"
    say(str(outcome), "replayed:" if outcome.whole else "not replayed in full:", colour)
    return outcome.whole or cut
