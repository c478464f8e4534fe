"""amble summary."""

from pathlib import Path
from typing import Annotated, Any

import typer

from amble.cli.app import app


@app.command(short_help="Show a model's coefficients, their errors and its fit.")
def summary(
    model: Annotated[Path, typer.Argument(help="A model.npz, a saved run (.json or .npz), or a folder with one.")],
    cov: Annotated[
        str | None,
        typer.Option(
            help="Standard errors: model, robust, cluster (by agent) or none.  [default: model; of huber, robust]"
        ),
    ] = None,
    level: Annotated[float, typer.Option(help="Of the confidence intervals.")] = 0.95,
    latex: Annotated[bool, typer.Option("--latex", help="As a LaTeX table.")] = False,
) -> None:
    """Show a model: its coefficients in the units of the data, standard errors, tests, and how well it fits.

    The errors are those of one table of all agents' rows. Where a model has none, such as one that was trained with a
    penalty, its coefficients and its fit are shown, and why. A saved run has no sums over rows, so its coefficients
    alone are shown.

    **Examples**

    `amble summary amble-up/model.npz`

    `amble summary north/ --cov cluster` - of an agent; while it runs, the coefficients so far

    `amble summary amble-out/1-i-bcd.npz --cov none`
    """
    import sys

    from amble.live.loading import load_model

    loaded = load_model(model)
    if loaded.sums is None:
        sys.stderr.write("This model has no sums over its rows, and so neither standard errors nor a fit.\n")
    sys.stdout.write(text_of(loaded, cov, level, latex) + "\n")


def text_of(model: Any, cov: str | None = None, level: float = 0.95, latex: bool = False) -> str:
    """The table of a model, and how good it is at each agent where that is known. Without `cov`, the usual errors; and
    where it has none, the table says why."""
    if model.sums is None:
        return coefficients_text(model)
    from dataclasses import replace

    from amble.results.inference import NoErrors
    from amble.results.summary import other_rows

    usual = "robust" if model.loss == "huber" else "model"
    if any(model.penalty.values()) or other_rows(model.about):  # the table has a note of its own about that
        usual = "none"
    try:
        table = model.summary(cov or usual, level)
    except NoErrors as error:
        if cov is not None:
            raise
        table = model.summary("none", level)
        table = replace(table, notes=(*table.notes, f"No standard errors: {error.why}."))
    return str(table.to_latex() if latex else f"{table}\n{agents_text(model)}".rstrip())


def coefficients_text(model: Any) -> str:
    """The coefficients alone, in the units of the data."""
    from amble.results.summary import digits

    named = {f"{label}:": each for label, each in model.params.items()} if len(model.labels) > 2 else {"": model.params}
    lines = []
    for label, each in named.items():
        lines += [label] * bool(label) + [f"{name:<30} {digits(value):>15}" for name, value in each.items()]
    return "\n".join(lines)


def agents_text(model: Any) -> str:
    """A line per agent: its rows, and the metrics of the model on them."""
    from math import isnan

    from amble.data.datasets import count

    judged, lines = model.about.get("judged", {}), []
    for name in judged:
        said = []
        for test, label in ((False, ""), (True, "held out: ")):
            found = model.measures(test, name)
            if rows := int(found.pop("rows")):
                shown = [f"{key} {value:,.4g}" for key, value in found.items() if not isnan(value)]
                said.append(f"{label}{', '.join([count(rows, 'row'), *shown])}")
        lines.append(f"{name}: {'; '.join(said)}")
    absent = [name for name in model.about.get("agents", ()) if name not in judged] if judged else []
    return "\n".join([*lines, *(f"{name}: its rows are not in these figures" for name in absent)])
