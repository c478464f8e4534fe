"""follow: the records of a live run, from what its agents write into their folders."""

from collections.abc import Mapping
from pathlib import Path

from amble import methods
from amble.errors import as_path
from amble.live.control import glance
from amble.live.control.glance import Overview
from amble.live.control.view import DISTANCE
from amble.live.records import collect
from amble.live.settings.agent_config import AgentConfig
from amble.progress import interruptible
from amble.results.run import label_text
from amble.tracking.record import OnRecord, Record, check_callback

LOOK_S = 0.5


class Follower:
    """Calls `on_record` whenever the visits have grown by 2 %, as a simulated run does, and at the end."""

    def __init__(self, config: AgentConfig, data: str, on_record: OnRecord) -> None:
        method, self.on_record = config.method, on_record
        self.label = label_text(method)
        own = {key: value for key, value in methods.settings(method).items() if value is not None}
        about = {"data": data, "agents": len(config.agents), "seed": config.seed}
        self.about = {"method": method.label, **own, **about}
        self.began_s: float | None = None
        self.visits = 0  # of the last record

    def __call__(self, overview: Overview, figures: Mapping[str, float]) -> None:
        """One look; `figures` are what is known of the newest model, by their names for people."""
        self.began_s = overview.time_s if self.began_s is None else self.began_s
        due = self.visits + (1 if overview.state != "running" else max(1, self.visits // 50))
        training = all(agent.stage in ("", "training") for agent in overview.agents.values())  # surveys have visits too
        if overview.visits >= due and training:
            self.visits = overview.visits
            self.on_record(self._record(overview, figures, overview.time_s - self.began_s))

    def _record(self, overview: Overview, figures: Mapping[str, float], time_s: float) -> Record:
        moved = [token.moved for token in overview.tokens.values() if token.moved is not None]
        up = sum(agent.runs for agent in overview.agents.values())
        metrics = {"hops_per_s": overview.hops_per_s, "agents_up": float(up)}
        metrics |= {"moved": max(moved)} if moved else {}
        metrics |= {"distance" if name == DISTANCE else "metric": value for name, value in figures.items()}
        return Record(self.label, 1, overview.visits, time_s, None, overview.bytes, metrics, self.about)


def follow(folder: str | Path, on_record: OnRecord) -> None:
    """Follow a live run: call a function with its records, until the run has ended or Ctrl-C.

    It only reads what agents on this machine write into their folders, so it may begin and end at any time. With the
    folder of one agent of several, the records are of what that agent knows: its own visits.

    Parameters
    ----------
    folder : that of `amble up`, a bundle whose agents run here, or an agent's own
    on_record : a function that is called with a `Record` whenever the visits have grown by 2 %, or a tracker. An
        exception that it raises ends the following, not the run

    Example
    -------
    >>> import amble
    >>> with amble.to_tensorboard("curves") as tracker:  # doctest: +SKIP
    ...     amble.follow("amble-up", on_record=tracker)
    """
    check_callback(on_record)
    folders = collect.agent_folders([as_path(folder, "the folder of a live run")])
    config = AgentConfig.read(next(iter(folders.values())), agreed=False)
    follower = Follower(config, config.run, on_record)
    with interruptible() as asked:
        while True:
            overview = glance.look(folders)
            follower(overview, {})
            if overview.over or asked.event.wait(LOOK_S):
                return
