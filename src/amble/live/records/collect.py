"""Collects the status and the record of agents from their folders. Journals are opened read-only."""

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from amble.errors import AmbleError
from amble.files import ending
from amble.live import status
from amble.live.journal import file as journal_file
from amble.live.journal.journal import Event, Visited, read_events
from amble.live.records.record import Record
from amble.live.settings.agent_config import FILE, AgentConfig, agents_in

JOURNAL = "journal.db"
NOTHING = (), (), journal_file.ARITHMETIC  # of an agent that never began


def agent_folders(paths: Iterable[Path], unreadable: bool = False) -> dict[str, Path]:
    """Agents' folders, by the agents' names: each path is an agent's own, or a bundle of several. With `unreadable`, an
    agent whose settings are wrong is among them, under its folder's name."""
    folders: dict[str, Path] = {}
    for folder in (each for path in paths for each in folders_in(path)):
        try:
            name = AgentConfig.read(folder).name
        except AmbleError:
            if not unreadable:
                raise
            name = folder.name
        if folders.setdefault(name, folder).resolve() != folder.resolve():
            raise AmbleError(f"{folders[name]} and {folder} are both of agent {name!r}; give one of them.")
    return folders


def folders_in(folder: Path) -> list[Path]:
    """An agent's own folder, or all agents' folders of a bundle."""
    if folder.is_file():
        raise AmbleError(f"{folder} is a file; give an agent's folder, or the bundle of several.")
    if not folder.is_dir():
        raise AmbleError(f"there is no folder {folder}; give an agent's folder, or the bundle of several.")
    inside = [folder] if (folder / FILE).is_file() else agents_in(folder)
    if not inside:
        raise AmbleError(f"neither {folder} nor a folder in it has {FILE}; give what amble up or amble init made.")
    return inside


def journal_bytes(folder: Path) -> int:
    """How large an agent's journals are, with their logs."""
    size = 0
    for file in folder.glob("*.db*"):
        with contextlib.suppress(OSError):  # a log may go at any time
            size += file.stat().st_size
    return size


def read_configs(folders: Mapping[str, Path]) -> dict[str, AgentConfig]:
    """The agents' settings, which must be of one run. In a run with a survey, an agent that left or died early may know
    of no agreement, or of an older one; all settings have the one that most agents know."""
    configs = {name: AgentConfig.read(folder, agreed=False) for name, folder in folders.items()}
    first = next(iter(configs))
    for name, config in configs.items():
        if config.digest != configs[first].digest:
            raise AmbleError(f"{folders[first]} and {folders[name]} are of two runs; give folders of one.")
    known = Counter(config.agreement for folder in folders.values() if (config := AgentConfig.read(folder)).agreement)
    ((agreement, _),) = known.most_common(1) or ((None, 0),)
    return configs if agreement is None else {name: config.agreed(agreement) for name, config in configs.items()}


def collect(folders: Mapping[str, Path]) -> Record:
    """The record, from agents that have ended."""
    configs = read_configs(folders)
    config = next(iter(configs.values()))
    visits, events, arithmetics = {}, {}, set()
    for name, folder in folders.items():
        path = folder / JOURNAL
        other = config.surveyed is not None and journal_file.run_of(path) != config.digest  # it took no part in this
        visits[name], events[name], arithmetic = NOTHING if other else _read_journal(path, config.digest, name)
        arithmetics.add(arithmetic)
    said = {name: status.as_record(status.read(folder)) for name, folder in folders.items()}
    names = {index: name for each in configs.values() for name, index in each.protocol_settings().indices.items()}
    agents = tuple(names.get(index, "") for index in range(max(names) + 1))
    tokens, arithmetic = config.method.tokens, min(arithmetics)
    return Record(config.digest, agents, len(config.agents), tokens, visits, events, said, arithmetic)


def _read_journal(path: Path, run: str, name: str) -> tuple[tuple[Visited, ...], tuple[Event, ...], int]:
    if not path.is_file():
        return NOTHING
    index, log = ending(path, "-shm"), ending(path, "-wal")
    had_index = index.exists()
    whole = not log.exists() or not log.stat().st_size
    try:
        with (
            journal_file.sentences(path),
            contextlib.closing(journal_file.connect(path, "ro&immutable=1" if whole else "ro")) as connection,
        ):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            journal_file.check_format(path, version, record_only=True)
            about = dict(connection.execute("SELECT key, value FROM about"))
            if (about.get("run"), about.get("agent")) != (run, name):
                raise AmbleError(
                    f"{path} is the journal of agent {about.get('agent')!r} in run {about.get('run')}, and {name!r} in "
                    f"run {run} was expected; bring back the right one."
                )
            visits = tuple(Visited(*line) for line in connection.execute("SELECT * FROM visits ORDER BY number"))
            return visits, read_events(connection), int(about.get("arithmetic", 1))
    finally:
        if not had_index:  # which SQLite makes to read a crashed agent's log
            index.unlink(missing_ok=True)
