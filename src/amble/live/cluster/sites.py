"""amble up with a folder of tables: one agent per site. They agree on the model by a survey, and pool no rows."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from amble import networks
from amble.data.files import TABLES, read_table
from amble.data.packed import inner_suffix
from amble.errors import AmbleError, few
from amble.live import toml
from amble.live.cluster import up
from amble.live.cluster.cluster import Cluster
from amble.live.cluster.folder import check_folder
from amble.live.cluster.ports import free_ports
from amble.live.cluster.up import NoModel
from amble.live.control import glance
from amble.live.records import collect, record
from amble.live.settings.config import Config
from amble.live.settings.surveyed import DESCRIPTION_MAX, Surveyed
from amble.results import model_file
from amble.results.choosing import model_at
from amble.results.model import Model
from amble.survey.document import to_bytes


class Site(NamedTuple):
    """The tables of one site."""

    data: Path
    test: Path | None = None

    @property
    def copies(self) -> dict[str, Path]:
        """By the names that they get in the agent's folder; a table has the name of its site, so these differ."""
        return {self.data.name: self.data} | ({f"test-{self.test.name}": self.test} if self.test else {})

    @property
    def settings(self) -> dict[str, str]:
        """As in [[agents]]."""
        return dict(zip(("data", "test"), self.copies, strict=False))


@dataclass(frozen=True, eq=False)
class Plan:
    """All that is needed before the first agent starts, checked."""

    folder: Path
    sites: dict[str, Site]
    config: Config
    again: bool = False


def tables_in(folder: Path) -> dict[str, Path]:
    """The tables of a folder, one per site: a site has the name of its file."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and inner_suffix(path) in TABLES)
    named = {path.name.split(".")[0]: path for path in files}
    if len(named) < len(files):
        raise AmbleError(f"two tables of {folder} have the same name; give each site one.")
    for name, path in named.items():
        if not toml.name.fits(name):
            raise AmbleError(f"{path} would be the site {name!r}; rename it: {toml.name.description}.")
    return named


def sites_in(folder: Path, test: Path | None) -> dict[str, Site]:
    """Each site's table and, where the folder `test` has one of its name, its test table."""
    named = tables_in(folder)
    if len(named) < 2:
        raise AmbleError(
            f"the folder {folder} has {len(named)} tables; give one with at least two, one per site ({few(TABLES)})."
        )
    tests = {} if test is None else tables_in(test)
    if strange := [name for name in tests if name not in named]:
        raise AmbleError(f"{tests[strange[0]]} is of no site; the tables in {folder} are of {few(list(named))}.")
    if test is not None and not tests:
        raise AmbleError(f"the folder {test} has no tables; give one with a test table per site ({few(TABLES)}).")
    return {name: Site(path, tests.get(name)) for name, path in named.items()}


def prepare(
    data: Path,
    out: Path,
    again: bool,
    *,
    method: Mapping[str, Any],
    model: Mapping[str, Any],
    survey: Mapping[str, Any],
    stop: Mapping[str, Any],
    network: str = "random",
    density: float = 0.7,
    seed: int = 0,
    pause_s: float = 0.0,
    test: Path | None = None,
) -> Plan:
    """All settings are checked; nothing is written."""
    sites = sites_in(data, test)
    names, ports = list(sites), free_ports(len(sites))
    links = networks.named(network, len(sites), density, seed).edges.tolist()
    patience_s = max(up.PATIENCE_S, up.START_S * len(sites))
    config = Config.from_settings(
        {
            "name": "up",
            "method": dict(method),
            "model": dict(model),
            "survey": dict(survey),
            "stop": dict(stop),
            "timing": {"patience_s": patience_s, "pause_s": pause_s},
            "walk": {"kind": "cycles", "seed": seed},
            "links": [[names[i], names[j]] for i, j in links],
            "agents": [
                {"name": name, "host": "127.0.0.1", "port": port, **sites[name].settings}
                for name, port in zip(names, ports, strict=True)
            ],
        }
    )
    check_folder(out, again)
    assert config.surveyed is not None
    surveyed = replace(config.surveyed, bytes_max=bytes_for(sites, config.surveyed))
    return Plan(out, sites, replace(config, surveyed=surveyed), again)


def bytes_for(sites: Mapping[str, Site], surveyed: Surveyed) -> int:
    """Room for each site's description: all tables are here, so nobody has to give `bytes_max`. A table that cannot be
    read or described is left to its agent, which says why."""
    sizes = [surveyed.bytes_max]
    for site in sites.values():
        with contextlib.suppress(AmbleError):
            described = surveyed.wanted.describe(read_table(site.data, surveyed.header, ()))
            sizes.append(2 * len(to_bytes(described)))  # without rows that are held out it may be a little longer
    return min(max(sizes), DESCRIPTION_MAX)


def start(plan: Plan) -> Cluster:
    """The bundle and a copy of each site's table are written; no agent is started yet."""
    about = {"format": 1, "problem": "sites", "method": plan.config.method.label}
    files = [site.copies for site in plan.sites.values()]
    return up.begin(plan.folder, plan.again, about, lambda: Cluster.of_files(plan.folder, plan.config, files))


def watch(agents: Cluster, title: str, halt: Callable[[], bool], looked: up.Looked = lambda *_: None) -> dict[str, str]:
    """Start all agents and show them until they have ended; those that failed, and their last words."""
    return up.follow(agents, title, lambda _: {}, halt, looked)


def reasons(agents: Cluster) -> str:
    """Why sites were refused: each reason once, with the sites that it is of."""
    named: dict[str, list[str]] = {}
    config = agents.config
    for name, data, test in zip(config.agents, config.data, config.test, strict=True):
        if reason := agents.status(name).reason:
            own = reason
            for file, words in ((data, "its table"), (test, "its test table")):
                own = own.replace(str(agents.folder / name / str(file)), words)
            named.setdefault(own.removesuffix("."), []).append(name)
    return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in named.items())


def finish(plan: Plan, agents: Cluster) -> Model | NoModel:
    """The model that all agents ended with, kept beside their folders with the record."""
    folders = collect.agent_folders([plan.folder])
    statuses = {name: status for name in folders if (status := agents.status(name)).state != "left"}
    usable = {name: status for name, status in statuses.items() if (folders[name] / model_file.FILE).is_file()}
    if not usable:
        diverged = (status.stopped for status in statuses.values() if status.cause == "diverged")
        why = reasons(agents) or next(diverged, "no agent has one: the run was ended before its training")
        return NoModel(why)
    best = glance.newest(usable) or next(iter(usable))
    record.save(collect.collect(folders), plan.folder / record.FILE)
    model = model_at(folders[best] / model_file.FILE)
    model.save(plan.folder / model_file.FILE)
    return model
