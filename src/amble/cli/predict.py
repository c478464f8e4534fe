"""amble predict."""

from pathlib import Path
from typing import Annotated

import typer

from amble.cli.app import app


@app.command(short_help="Use a trained model on the rows of a file.")
def predict(
    model: Annotated[Path, typer.Argument(help="A model.npz, a saved run (.json or .npz), or a folder with one.")],
    rows: Annotated[Path, typer.Argument(help="The rows: .csv, .tsv, .npz, .parquet or LIBSVM text.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="A .csv file; without it, to the screen.")] = None,
    target: Annotated[str | None, typer.Option(help="The target column, if there is one, by name or number.")] = None,
    header: Annotated[bool | None, typer.Option(help="Whether the first row of a .csv names the columns.")] = None,
) -> None:
    """Predict with a model: one line per row, with the target in its own units, or the label.

    If the file has the target too, says how good the predictions are: accuracy, or NMSE (0 is right, 1 is no better
    than the mean).

    **Examples**

    `amble predict amble-up/model.npz new.csv -o predicted.csv`

    `amble predict north/model.npz rows.csv --target price`

    `amble predict amble-out/1-i-bcd.npz rows.csv` - a run that amble compare saved
    """
    import csv
    import io
    import math
    import sys

    from amble.data.datasets import count
    from amble.errors import AmbleError
    from amble.files import write_whole
    from amble.live.loading import load_model
    from amble.problem.prediction import METRICS, score
    from amble.results import predicting

    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise AmbleError(f"{out} was given for the predictions; give a file in a folder that is there.")
    loaded = load_model(model)
    X, y, moved = predicting.read_rows(loaded, rows, target, header)
    guess = loaded.predict(X, **moved)
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerows([[loaded.target if isinstance(loaded.target, str) else "prediction"]])
    writer.writerows([value] for value in guess.tolist())
    if out is None:
        sys.stdout.write(table.getvalue())
    else:
        try:
            write_whole({out: table.getvalue().encode()})
        except OSError as error:
            raise AmbleError(
                f"{out} cannot be written ({error.strerror}); give a file in a folder that you can write to."
            ) from error
        sys.stderr.write(f"{len(guess):,} predictions written to {out}\n")
    if y is not None:
        regression, name = loaded.task == "regression", METRICS[loaded.task]
        value = float(score(guess, y, y.mean() if regression else 0.0, regression))
        on = f"on {count(len(y), 'row')}"
        said = f"{name} {value:.4f} {on}" if math.isfinite(value) else f"no {name} {on}: it needs targets that differ"
        sys.stderr.write(f"{said}\n")
