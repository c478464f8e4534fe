"""Who else watches a run: the page of amble up, Prometheus, MLflow and TensorBoard."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, final

from amble.cli.app import say
from amble.cli.page import Shown

ADDRESS = "<[address:]port>"
PROMETHEUS = "Serve metrics for Prometheus on this port of 127.0.0.1, or on another address."
MLFLOW = "Send the records to MLflow, such as http://127.0.0.1:5000."
TENSORBOARD = "Write the records into this folder, for TensorBoard."


@contextmanager
def tracked(mlflow: str | None, tensorboard: Path | None) -> Iterator[Callable[[Any], None] | None]:
    """A callback for both; None where neither is wanted."""
    from amble.tracking.mlflow import to_mlflow
    from amble.tracking.tensorboard import to_tensorboard

    with ExitStack() as stack:
        trackers = [stack.enter_context(to_mlflow(mlflow))] if mlflow else []
        trackers += [stack.enter_context(to_tensorboard(tensorboard))] if tensorboard else []

        def on_record(record: Any) -> None:
            for tracker in trackers:
                tracker(record)

        yield on_record if trackers else None


@final
class Watched:
    """Those who watch a run of amble up. Mistakes in what they were given are found before the run is prepared."""

    def __init__(self, shown: Shown, prometheus: str | None, mlflow: str | None, tensorboard: Path | None) -> None:
        self.shown, self.prometheus, self.trackers = shown, prometheus, tracked(mlflow, tensorboard)
        self.stack = ExitStack()
        self.exporter: Any = None
        self.on_record: Any = None
        self.follower: Any = None
        self.figures: Mapping[str, float] = {}

    def __enter__(self) -> "Watched":
        with ExitStack() as stack:
            stack.enter_context(self.shown)
            if self.prometheus:
                from amble.live.prometheus.server import Exporter

                self.exporter = stack.enter_context(Exporter(self.prometheus))
            self.on_record = stack.enter_context(self.trackers)
            self.stack = stack.pop_all()
        return self

    def open(self, folder: Path, title: str) -> None:
        """The run's folder is there now."""
        from amble.live.records import collect

        self.shown.open(folder, title, lambda: self.figures)
        if self.exporter is not None:
            self.exporter.folders = lambda: collect.folders_in(folder)
            self.exporter.figures = lambda: self.figures
            say(self.exporter.url, "prometheus:", "green")
        if self.on_record is not None:
            from amble.live.following import Follower
            from amble.live.settings.agent_config import AgentConfig

            first = collect.folders_in(folder)[0]
            self.follower = Follower(AgentConfig.read(first, agreed=False), title, self.on_record)

    def looked(self, overview: Any, figures: Mapping[str, float]) -> None:
        """At all agents, and at the newest model."""
        self.figures = figures
        if self.follower is not None:
            with noted():
                self.follower(overview, figures)

    def __exit__(self, *ended: Any) -> None:
        with noted():
            self.stack.__exit__(*ended)


@contextmanager
def noted() -> Iterator[None]:
    """Warnings are printed as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for note in caught:
        say(str(note.message), "note:")
