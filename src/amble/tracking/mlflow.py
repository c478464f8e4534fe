"""Records as runs of MLflow."""

import math
import os
import time
from typing import Any, final

from amble import __version__
from amble.errors import AmbleError, need
from amble.tracking.record import Record
from amble.tracking.tracker import Tracker

SEND_S, SEND_MAX = 1.0, 1000  # metrics are sent together, once a second, as many as a server takes at once
VALUE_MAX = 500  # characters of a parameter, which every version of MLflow takes
RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"


def to_mlflow(uri: str | None = None, experiment: str = "amble") -> Tracker:
    """A tracker for MLflow: one run per run, with its settings as parameters and its records as metrics over the hops.

    Parameters
    ----------
    uri : of the tracking server, such as http://127.0.0.1:5000, or whatever else MLflow takes; without it, where MLflow
        is set to keep its runs (MLFLOW_TRACKING_URI)
    experiment : the experiment's name; it is made if there is none

    Returns
    -------
    Tracker : to be given as `on_record`

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=20)
    >>> with amble.to_mlflow("http://127.0.0.1:5000") as tracker:  # doctest: +SKIP
    ...     amble.compare([amble.Relay(), amble.WPG()], problem, hops=100, on_record=tracker)
    """
    mlflow = need("mlflow", "mlflow")
    retries = os.environ.get(RETRIES)
    os.environ[RETRIES] = retries or "1"  # so that it is known at once whether a server answers, not after minutes
    try:
        client = mlflow.MlflowClient(uri)
        known = client.get_experiment_by_name(experiment)
        number = known.experiment_id if known else client.create_experiment(experiment)
        client.get_experiment(number)
    except Exception as error:  # of the library, which has several
        raise AmbleError(
            f"MLflow cannot be used at {uri or 'its default address'} ({_reason(error)}); start its server and give "
            "its address, such as http://127.0.0.1:5000."
        ) from error
    finally:
        if retries is None:
            del os.environ[RETRIES]
    return Tracker(MLflowRuns(client, number, mlflow.entities))


def _reason(error: BaseException) -> str:
    """What the system says, which the library wraps in several exceptions, or else what the library says."""
    each: BaseException | None = error
    while each is not None:
        if isinstance(each, OSError) and each.strerror:
            return each.strerror
        each = each.__cause__ or each.__context__
    return next(iter(str(error).splitlines()), "").rstrip(".")


@final
class MLflowRuns:
    """The runs of one experiment."""

    name = "MLflow"

    def __init__(self, client: Any, experiment: str, entities: Any) -> None:
        self.client, self.experiment, self.entities = client, experiment, entities
        self.run = ""
        self.waiting: list[Any] = []
        self.sent_s = 0.0

    def begin(self, record: Record) -> None:
        tags = {"amble.version": __version__, "amble.run": str(record.run)}
        self.run = self.client.create_run(self.experiment, run_name=record.method, tags=tags).info.run_id
        params = [self.entities.Param(key, str(value)[:VALUE_MAX]) for key, value in record.about.items()]
        self.client.log_batch(self.run, params=params)
        self.waiting, self.sent_s = [], time.monotonic()

    def log(self, record: Record) -> None:
        values, now_ms = {**record.costs, **record.metrics}, int(time.time() * 1000)
        metrics = [
            self.entities.Metric(name, value, now_ms, record.hop)
            for name, value in values.items()
            if not math.isnan(value)
        ]
        if len(self.waiting) + len(metrics) > SEND_MAX:
            self.send()
        self.waiting += metrics
        if time.monotonic() - self.sent_s > SEND_S:
            self.send()

    def send(self) -> None:
        self.client.log_batch(self.run, metrics=self.waiting)
        self.waiting, self.sent_s = [], time.monotonic()

    def end(self, well: bool) -> None:
        self.send()
        self.client.set_terminated(self.run, "FINISHED" if well else "FAILED")
