"""What a page is opened on: agents' folders, a run's folder or a record; and whether the run goes on."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from amble.errors import AmbleError
from amble.live import status
from amble.live.cluster.folder import MADE, RUN
from amble.live.control import glance
from amble.live.page import past
from amble.live.page.film import Film
from amble.live.page.sampler import Figures, Sampler, configs_of
from amble.live.records import collect, record
from amble.live.records.record import Record
from amble.live.settings.agent_config import AgentConfig
from amble.results import model_file
from amble.results.loading import load_run
from amble.results.run import Run, label_text


@dataclass(frozen=True, eq=False)
class Opened:
    """A film, and where the rest is that a page may show."""

    film: Film
    paths: tuple[Path, ...]  # of agents
    sampler: Sampler | None = None  # while the run goes on
    home: Path | None = None  # the folder with the results of the whole run

    @property
    def folders(self) -> dict[str, Path]:
        """The agents' own, by their names."""
        return self.sampler.folders if self.sampler else collect.agent_folders(self.paths, unreadable=True)

    def model(self) -> Path | None:
        """The model: of the run, or of the agent that has seen most."""
        if self.home is not None and (self.home / model_file.FILE).is_file():
            return self.home / model_file.FILE
        folders = {name: each for name, each in self.folders.items() if (each / model_file.FILE).is_file()}
        best = glance.newest({name: status.read(folder) for name, folder in folders.items()})
        return folders[best] / model_file.FILE if best else None

    def run(self) -> Path | None:
        """The saved run, for a report: its .json."""
        return saved_run(self.home)


def open_live(folder: Path, title: str, figures: Figures) -> Opened:
    """A run of amble up, which knows how good its model is."""
    sampler = Sampler([folder], title, figures)
    return Opened(sampler.film, (folder,), sampler, folder)


def open_page(paths: Sequence[Path]) -> Opened:
    """By what there is: a run that goes on is filmed, and of one that has ended the record is shown."""
    if not paths:
        raise AmbleError("no folder was given; give an agent's folder, a run's folder or a record.npz.")
    files = [path for path in paths if path.is_file()]
    if files and len(paths) > 1:
        raise AmbleError(f"{files[0]} is a record, and other paths were given; give one record, or agents' folders.")
    if files:
        return _past(record.load(files[0]), files[0].parent)
    home = paths[0] if len(paths) == 1 else None
    kept = paths[0] / record.FILE
    if home is not None and kept.is_file() and not _agents_in(home):  # of amble collect
        return _past(record.load(kept), home)
    folders = collect.agent_folders(paths, unreadable=True)
    seen = glance.look(folders)
    if any(agent.runs for name, agent in seen.agents.items() if name in folders):
        return _live(paths, home, folders)
    if home is not None and kept.is_file():
        return _past(record.load(kept), home)
    return _past(collect.collect(folders), home, folders) if seen.state == "ended" else _live(paths, home, folders)


def _live(paths: Sequence[Path], home: Path | None, folders: Mapping[str, Path]) -> Opened:
    sampler = Sampler(paths, title_of(home, configs_of(folders)))
    return Opened(sampler.film, tuple(paths), sampler, home)


def _past(recorded: Record, home: Path | None, folders: Mapping[str, Path] | None = None) -> Opened:
    if not recorded.hops:
        raise AmbleError("no visit is recorded there, so there is nothing to show; give a run that tokens walked in.")
    if folders is None:
        folders = collect.agent_folders([home], unreadable=True) if home is not None and _agents_in(home) else {}
    configs = configs_of(folders)
    links = [(name, peer.name) for name, config in configs.items() for peer in config.neighbours]
    saved = saved_run(home)
    run = None if saved is None else load_run(saved)
    film = past.film_of(recorded, title_of(home, configs), _method(configs, run), links, run, folders)
    return Opened(film, tuple(folders.values()), None, home)


def saved_run(home: Path | None) -> Path | None:
    """What amble up has saved: a .json, with a .npz beside it."""
    files = [] if home is None else [home / f"{RUN}.json", home / f"{RUN}.npz"]
    return files[0] if files and all(file.is_file() for file in files) else None


def _agents_in(folder: Path) -> bool:
    try:
        return bool(collect.folders_in(folder))
    except AmbleError:
        return False


def _method(configs: Mapping[str, AgentConfig], run: Run | None) -> str:
    if run is not None:
        return run.label
    return next((label_text(config.method) for config in configs.values()), "")


def title_of(folder: Path | None, configs: Mapping[str, AgentConfig]) -> str:
    """What the run is of, or else its own name, or that of the folder."""
    if folder is not None and (folder / MADE).is_file():
        try:
            return str(json.loads((folder / MADE).read_text())["problem"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
    first = next(iter(configs.values()), None)
    return first.run if first else (folder.resolve().name if folder else "a run")
