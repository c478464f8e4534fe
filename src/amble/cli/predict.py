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
    import sys

    from amble.errors import AmbleError
    from amble.files import write_whole
    from amble.live.model import choosing, predicting

    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise AmbleError(f"{out} was given for the predictions; give a file in an existing folder.")
    loaded = choosing.choose(model)
    X, y = predicting.read_rows(loaded.model, rows, target, header)
    guess = loaded.predict(X, str(rows))
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerows([[loaded.model.target if isinstance(loaded.model.target, str) else "prediction"]])
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
        name, value = loaded.metric(guess, y)
        sys.stderr.write(f"{name} {value:.4f} on {len(y):,} rows\n")
