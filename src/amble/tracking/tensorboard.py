"""Records as event files of TensorBoard."""

import re
from pathlib import Path
from typing import Any, final

from amble.errors import AmbleError, as_path, need
from amble.tracking.record import Record
from amble.tracking.tracker import Tracker


def to_tensorboard(folder: str | Path) -> Tracker:
    """A tracker for TensorBoard: one folder per run, with one curve per metric over the hops. The files are written by
    tensorboardX, without TensorFlow or PyTorch; numbers in them have seven digits.

    Parameters
    ----------
    folder : TensorBoard's `--logdir`. Runs get folders in it, such as 1-relay-full; earlier ones stay as they are

    Returns
    -------
    Tracker : to be given as `on_record`

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=20)
    >>> with amble.to_tensorboard("curves") as tracker:
    ...     runs = amble.compare([amble.Relay(), amble.WPG()], problem, hops=100, on_record=tracker)
    """
    library, path = need("tensorboardX", "tensorboard"), as_path(folder, "the folder for TensorBoard")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AmbleError(f"the folder {path} cannot be made ({error.strerror}); give another.") from error
    return Tracker(EventFiles(library, path))


@final
class EventFiles:
    """One folder per run."""

    name = "TensorBoard"

    def __init__(self, library: Any, folder: Path) -> None:
        self.library, self.folder = library, folder
        self.writer: Any = None

    def begin(self, record: Record) -> None:
        name = f"{record.run}-{re.sub(r'[^a-z0-9]+', '-', record.method.lower()).strip('-')}"
        path, k = self.folder / name, 1
        while path.exists():  # of an earlier comparison: two runs in one folder would be drawn as one
            k += 1
            path = self.folder / f"{name}-{k}"
        self.writer = self.library.SummaryWriter(str(path))
        rows = [f"| {key} | {value} |" for key, value in record.about.items()]
        self.writer.add_text("settings", "\n".join(["| setting | value |", "|---|---|", *rows]))

    def log(self, record: Record) -> None:
        for name, value in record.metrics.items():
            self.writer.add_scalar(name, value, record.hop)
        for name, value in record.costs.items():
            self.writer.add_scalar(f"cost/{name}", value, record.hop)
        self.writer.flush()

    def end(self, well: bool) -> None:  # noqa: ARG002 - an event file does not say how a run ended
        self.writer.close()
