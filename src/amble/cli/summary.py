"""amble summary."""

from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app


@app.command(short_help="Show a model's coefficients, their errors and its fit.")
def summary(
    model: Annotated[Path, typer.Argument(help="A model.npz, a saved run (.json or .npz), or a folder with one.")],
    cov: Annotated[str, typer.Option(help="Standard errors: model, robust, cluster (by agent) or none.")] = "model",
    level: Annotated[float, typer.Option(help="Of the confidence intervals.")] = 0.95,
    latex: Annotated[bool, typer.Option("--latex", help="As a LaTeX table.")] = False,
) -> None:
    """Show a model: its coefficients in the units of the data, standard errors, tests, and how well it fits.

    The errors are those of one table of all agents' rows. A model that was trained with a penalty has none: its
    coefficients and its fit are shown. A saved run has no sums over rows, so its coefficients alone are shown.

    **Examples**

    `amble summary amble-up/model.npz`

    `amble summary north/ --cov cluster`

    `amble summary amble-out/1-i-bcd.npz --cov none`
    """
    import sys

    from amble.results.choosing import load_model

    loaded = load_model(model)
    if loaded.sums is None:
        named = (
            {str(label): each for label, each in loaded.params.items()}
            if len(loaded.labels) > 2
            else {"": loaded.params}
        )
        for label, each in named.items():
            lines = [f"{label}:"] * bool(label) + [f"{name:<30} {value:>15.4f}" for name, value in each.items()]
            sys.stdout.write("\n".join(lines) + "\n")
        sys.stderr.write("This model has no sums over its rows, and so neither standard errors nor a fit.\n")
        return
    if cov == "model" and any(loaded.penalty.values()):
        cov = "none"
    table = loaded.summary(cov, level)
    sys.stdout.write((table.to_latex() if latex else str(table)) + "\n")
