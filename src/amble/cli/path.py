"""amble path."""

from pathlib import Path
from typing import Annotated, Any

from amble.cli.app import app, console, say, say_written
from amble.cli.compare import DATA, SPLIT, Event, Exposure, Offset, Weight, of
from amble.cli.listed import WithNames

PATH_HELP = """Lasso and elastic net: models under ever smaller penalties, and which is best on rows held out.

One token trains them all, each from the last one; for least squares it needs one lap. Each agent holds some of its rows
out to choose by.

**Examples**

`amble path` - the lasso on embedded data

`amble path --data rows.csv --target price --by site --l1-ratio 0.5`

`amble path --data breast_cancer --agents 30 --how sorted --lambdas 50`

`amble path --folds 10` - cross-validation: each agent's rows in ten parts that take turns

`amble path --positive all` - coefficients that may not be below zero
"""
PATH, SHOWN = "Path", 20  # lines of the table: the file has all


@app.command(cls=WithNames, help=PATH_HELP, short_help="Lasso and elastic net paths; held-out rows choose.")
def path(
    data: Annotated[
        str, of(DATA, help="A name (see: amble data) or the path of a file.  [default: diabetes]")
    ] = "diabetes",
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
    how: Annotated[str, of(SPLIT, help="Who holds what: even, sorted, by-label, dirichlet.  [default: even]")] = "even",
    loss: Annotated[str | None, of(SPLIT, help="{losses}.  [default: by task and number of classes]")] = None,
    positive: Annotated[
        str | None, of(SPLIT, metavar="<column,...>", help="Coefficients that may not be below zero; or all.")
    ] = None,
    unpenalised: Annotated[
        str | None, of(SPLIT, metavar="<column,...>", help="Columns without a penalty, by name or number.")
    ] = None,
    no_scale: Annotated[bool, of(SPLIT, "--no-scale", help="Leave columns and targets in their own units.")] = False,
    no_intercept: Annotated[bool, of(SPLIT, "--no-intercept", help="A model without an intercept.")] = False,
    seed: Annotated[int, of(SPLIT, help="Network, split and held-out rows follow from it.  [default: 0]")] = 0,
    l1_ratio: Annotated[
        float, of(PATH, "--l1-ratio", help="1 is the lasso, less the elastic net.  [default: 1]")
    ] = 1.0,
    lambdas: Annotated[int, of(PATH, help="How many penalties.  [default: 100]")] = 100,
    smallest: Annotated[float, of(PATH, help="The last as a share of the first.  [default: 0.001]")] = 1e-3,
    held_out: Annotated[
        float, of(PATH, "--held-out", help="Share of each agent's rows to choose by.  [default: 0.2]")
    ] = 0.2,
    folds: Annotated[
        int | None, of(PATH, help="Instead of it, parts of each agent's rows that take turns.  [default: none]")
    ] = None,
    out: Annotated[
        Path, of(PATH, "--out", "-o", help="Folder for path.csv and path.png.  [default: amble-path]")
    ] = Path("amble-path"),
) -> None:
    from amble.simulation.experiment import Experiment, make_folder, parse_columns
    from amble.simulation.path import path as trained

    files: dict[str, Any] = {"task": task, "target": target, "header": header, "one_hot": one_hot, "by": by}
    files |= {"loss": loss, "event": event, "offset": offset, "exposure": exposure, "weight": weight}
    experiment = Experiment(data=data, **files)
    options: dict[str, Any] = {"intercept": not no_intercept, "scale": not no_scale}
    if loss is not None:
        options["loss"] = loss
    if positive is not None:
        options["positive"] = True if positive == "all" else parse_columns(positive)
    if unpenalised is not None:
        options["unpenalised"] = parse_columns(unpenalised)
    rows = experiment.read_data()
    options |= {"l1_ratio": l1_ratio, "lambdas": lambdas, "smallest": smallest, "held_out": held_out, "folds": folds}
    made = trained(rows, agents, how, seed, **options)
    if target_note := experiment.target_note(rows.target):
        say(target_note, "note:")
    make_folder(out)
    names = [made.save(out / "path.csv").name, made.plot(out / "path.png").name]
    console().print(table(made))
    costs = f"{int(made.hops.sum()):,} hops of {made.message_bytes:,} bytes for the models of all rows"
    console().print(costs, style="dim", markup=False, highlight=False)
    say_written(out, names)


def table(made: Any) -> Any:
    """Some lines of the path, evenly spaced, with the best and the simplest."""
    import numpy as np
    from rich.table import Table

    from amble.problem.prediction import METRICS

    marks = {made.simplest: "simplest within an error", made.best: "best"} if made.chooses else {}
    lines = {*np.linspace(0, len(made.lambdas) - 1, min(SHOWN, len(made.lambdas))).astype(int).tolist(), *marks}
    shown = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("lambda", "nonzero", "hops", "loss", "+-", METRICS[made.problem.task]):
        shown.add_column(title, justify="right", no_wrap=True)
    shown.add_column("")
    for k in sorted(lines):
        quality = [made.loss[k], made.loss_error[k], made.metric[k]]
        cells = ["" if np.isnan(value) else f"{value:.4g}" for value in quality]
        shown.add_row(f"{made.lambdas[k]:.4g}", str(made.nonzero[k]), str(made.hops[k]), *cells, marks.get(k, ""))
    return shown
