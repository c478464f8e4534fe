"""A film of a run that goes on: what its agents write into their folders, looked at twice a second. Nothing is written,
and nothing is read but status.json and agent.toml."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from amble.errors import AmbleError
from amble.live import status
from amble.live.control import glance
from amble.live.core.visits import kind_for
from amble.live.page.film import About, Film, Step
from amble.live.page.scene import Look, Scene
from amble.live.records import collect
from amble.live.settings.agent_config import AgentConfig
from amble.live.status import Status
from amble.results.run import label_text

LOOK_S, OVER_S = 0.5, 2.0  # between two looks: at a run that goes on, and at one that has ended
SHARE = 0.05  # of one core: where a look takes more, there are fewer

Figures = Callable[[], Mapping[str, float]]  # how good the newest model is, by the names of measures


class Sampler:
    """It looks at the agents in these folders, and films them."""

    def __init__(self, paths: Sequence[Path], title: str, figures: Figures = dict) -> None:
        self.paths, self.figures = tuple(paths), figures
        self.folders = collect.agent_folders(paths, unreadable=True)
        self._files = _files(self.folders.values())
        about = about_of(title, self.folders, configs_of(self.folders), self._statuses(), time.time())
        self.scene, self.film = Scene(about), Film(about)

    def run(self, halt: Callable[[float], bool]) -> None:
        """Until `halt`, which waits for so many seconds, is true; and once more then."""
        over = halted = False
        while not halted:
            begun_s, cpu_s = time.monotonic(), time.thread_time()
            over = self.look(was_over=over)
            every_s = max(OVER_S if over else LOOK_S, (time.thread_time() - cpu_s) / SHARE)
            halted = halt(every_s - (time.monotonic() - begun_s))
        self.look(was_over=over)

    def look(self, was_over: bool = False) -> bool:
        """One look, and whether the run is over; if it `was_over` already, the film stays as it is."""
        about = self._changed()
        statuses = self._statuses()
        overview = glance.overview(statuses, self.folders, time.time())
        if not (was_over and overview.over):
            frame, events = self.scene.step(Look(overview, statuses), self.figures())
            self.film.add(Step(frame, events, about))
        return overview.over

    def _statuses(self) -> dict[str, Status]:
        return {name: status.read(folder) for name, folder in self.folders.items()}

    def _changed(self) -> About | None:
        """What the film is of, where an agent's folder has come, or an agent has let in a neighbour."""
        before = self.scene.about
        try:
            inside = [folder for path in self.paths for folder in collect.folders_in(path)]
            if self._files == (files := _files(inside)):
                return None
            self._files, self.folders = files, self.folders | collect.agent_folders(inside, unreadable=True)
        except AmbleError:  # somebody has moved or replaced the folder: the film stays as it is
            return None
        configs = configs_of(self.folders)
        self.scene.about = about_of(before.title, self.folders, configs, {}, before.began_s, before)
        return self.scene.about


def _files(folders: Collection[Path]) -> set[Path]:
    return {file for folder in folders for file in (folder, *folder.glob("guests/*"))}


def configs_of(folders: Mapping[str, Path]) -> dict[str, AgentConfig]:
    """The agents' settings, but for those that cannot be read: amble status says what is wrong with them."""
    configs = {}
    for name, folder in folders.items():
        try:
            configs[name] = AgentConfig.read(folder)
        except AmbleError:
            continue
    return configs


def about_of(
    title: str,
    folders: Mapping[str, Path],
    configs: Mapping[str, AgentConfig],
    statuses: Mapping[str, Status],
    now_s: float,
    before: About | None = None,
) -> About:
    """What a film is of, from the agents' settings; it began when the first of them started. What it was of `before`
    stays in its place."""
    near = {peer.name for config in configs.values() for peer in config.neighbours} | folders.keys()
    founders = dict.fromkeys(name for config in configs.values() for name in config.agents)
    order = [*(before.agents if before else ()), *(name for name in founders if name in near), *sorted(near)]
    names = tuple(dict.fromkeys(order))
    places = {name: place for place, name in enumerate(names)}
    ends = [(places[name], places[peer.name]) for name, config in configs.items() for peer in config.neighbours]
    links = [*(before.links if before else ()), *sorted({(min(pair), max(pair)) for pair in ends})]
    started = [event.time_s for said in statuses.values() for event in said.events if event.kind == "start"]
    first = next(iter(configs.values()), None)
    return About(
        title=title,
        method=label_text(first.method) if first else "",
        live=True,
        began_s=min([now_s, *started]),
        tokens=first.method.tokens if first else 0,
        agents=names,
        links=tuple(dict.fromkeys(links)),
        here=tuple(name in folders for name in names),
        seen_from=next(iter(folders)) if len(folders) == 1 and len(founders) > 1 else "",
        unseen=tuple(name for name in founders if name not in near),
        can_leave=first is not None and kind_for(first.method).removes,
    )
