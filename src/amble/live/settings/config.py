"""A run's settings, from its TOML file: who takes part, how they are linked, what they train and when they stop."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np

from amble import methods
from amble.errors import AmbleError, unknown
from amble.files import read_toml
from amble.live import toml
from amble.live.core import visits
from amble.live.core.accounts import PLACES_MAX
from amble.live.model import model as models
from amble.live.model import own
from amble.live.model import start as starts
from amble.live.model.model import Model
from amble.live.model.own import Code
from amble.live.model.start import Start
from amble.live.settings import agent_config, links
from amble.live.settings import surveyed as surveys
from amble.live.settings.agent_config import AgentConfig, Peer
from amble.live.settings.parts import LiveTiming, Retention, Stop, make_method, make_retention, make_stop, make_timing
from amble.live.settings.surveyed import Surveyed
from amble.methods.protocol import TokenMethod, is_copy
from amble.networks.cycles import closed_walk
from amble.networks.network import Network

__all__ = ["AgentConfig", "Config", "LiveTiming", "Model", "Peer", "Retention", "Stop"]

WALKS = ("cycle", "cycles", "random")
ROOM = 8  # for agents that come later, where the run's file does not say
TAKEN = "authority"  # the folder beside the agents' in a bundle

RUN = {
    "name": toml.name,
    "room": toml.whole(0, PLACES_MAX),
    "links": links.LINKS,
    "method": toml.table_with('name = "Relay", for example'),
    "model": toml.table_with("task and columns"),
    "stop": toml.table_with("tolerance, hops or seconds"),
    "walk": toml.table,
    "timing": toml.table,
    "record": toml.table,
    "survey": toml.table,
    "network": toml.table,
    "agents": toml.list_of(toml.table, "tables, [[agents]], one per agent"),
}
START = {"start": starts.KIND}
AGENT = {**agent_config.PEER, "data": toml.file_name, "test": toml.file_name}


@dataclass(frozen=True)
class Walk:
    """cycle: one for all tokens; cycles: one per token; random: any neighbour. Where there is no cycle, at random."""

    kind: Annotated[str, toml.text] = "cycles"  # cycle, cycles or random
    seed: Annotated[int, toml.seed] = 0  # of the cycles and of random walks


@dataclass(frozen=True)
class Config:
    """The settings of the whole run."""

    name: str
    method: TokenMethod
    model: Model
    stop: Stop
    walk: Walk
    timing: LiveTiming
    peers: tuple[Peer, ...]
    data: tuple[str | None, ...]  # each agent's file
    test: tuple[str | None, ...]  # each agent's file of test rows
    network: Network
    room: int = 0
    record: Retention = field(default_factory=Retention)
    start: Start | None = None  # the initial model; None: zeros
    surveyed: Surveyed | None = None  # what agents agree on by a survey; None: the model is complete
    code: Code | None = None  # the file of a model of the user's own; None: one of amble's

    @classmethod
    def read(cls, path: Path) -> "Config":
        return cls.from_settings(read_toml(path, "run file"), path.parent)

    @classmethod
    def from_settings(cls, settings: Any, beside: Path = Path()) -> "Config":
        """From the settings of a run file in the folder `beside`, everything checked."""
        settings = toml.check(settings, "the run", RUN, ("name", "method", "model", "stop", "agents"))
        agents = _agents(settings["agents"])
        peers = tuple(Peer(each["name"], each["host"], each["port"]) for each in agents)
        surveyed = surveys.surveyed_of(settings["model"], settings["survey"]) if "survey" in settings else None
        table = settings["model"]
        first = toml.check({key: table[key] for key in ("start",) if key in table}, "[model]", START)
        if surveyed is None:
            if tested := [each["name"] for each in agents if "test" in each]:
                raise AmbleError(
                    f"agent {tested[0]!r} has a test file, and the run has no survey, which would report on its rows; "
                    "leave test out, or add a table [survey]."
                )
            ours = own.first_of(table, beside) if "file" in table else None
            table = ours.table if ours else table
            model = models.make_model({key: value for key, value in table.items() if key not in first})
        else:
            ours, model = None, surveys.OPEN
        method = make_method(settings["method"], len(peers))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # more tokens than agents: said by notes()
            penalty = surveyed.penalised or None if surveyed else model.penalty
            about = SimpleNamespace(dimension=model.dimension, own=None, loss=None, agents=len(peers), penalty=penalty)
            if ours is not None:
                about.own, about.trains = [ours.objective], ours.loss
            checked = methods.check(method, about)
        method = method if surveyed else checked  # what follows from the number of unknowns is not known before
        exact = visits.kind_for(method).exact
        room = settings.get("room", min(ROOM, PLACES_MAX - len(peers)) if exact else 0)
        if room and not exact:
            raise AmbleError(
                f"room = {room} was given, and no agent can join a run of {method.label} later; leave it out."
            )
        if len(peers) + room > PLACES_MAX:
            raise AmbleError(
                f"{len(peers)} agents and room = {room} were given; a run has at most {PLACES_MAX} places."
            )
        start = starts.make_start(first["start"], model, beside) if first else None
        if ours is not None and start is None:
            start = starts.of(ours.loss.start, model, f"the initial model of {ours.code.name}")
        return cls(
            name=settings["name"],
            method=method,
            model=model,
            stop=make_stop(settings["stop"]),
            walk=_walk(settings.get("walk", {})),
            timing=make_timing(settings.get("timing", {})),
            peers=peers,
            data=tuple(each.get("data") for each in agents),
            test=tuple(each.get("test") for each in agents),
            network=links.make_network(settings, [peer.name for peer in peers]),
            room=room,
            record=make_retention(settings.get("record", {})),
            start=start,
            surveyed=surveyed,
            code=ours.code if ours else None,
        )

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(peer.name for peer in self.peers)

    @cached_property
    def next(self) -> tuple[Mapping[str, str], ...]:
        """One per token: from each agent to its next on the token's cycle; all empty where there is no cycle."""
        rng = np.random.default_rng([self.walk.seed, 2])  # the simulator's, so that its walks are these
        tables: list[dict[str, str]] = []
        wanted = {"cycle": 1, "cycles": self.method.tokens, "random": 0}[self.walk.kind]
        while len(tables) < wanted:
            order = closed_walk(self.network, rng).tolist()
            if len(order) > len(self.peers):  # some agent is passed twice, so where it sends on is not one agent
                break
            following = order[1:] + order[:1]
            tables.append({self.agents[i]: self.agents[j] for i, j in zip(order, following, strict=True)})
        return tuple((tables or [{}])[m % max(1, len(tables))] for m in range(self.method.tokens))

    def agent(self, name: str) -> AgentConfig:
        """One agent's part."""
        if name not in self.agents:
            raise unknown("agent", name, self.agents)
        i = self.agents.index(name)
        return AgentConfig(
            run=self.name,
            name=name,
            host=self.peers[i].host,
            port=self.peers[i].port,
            agents=self.agents,
            neighbours=tuple(self.peers[j] for j in self.network.neighbours_of(i)),
            method=self.method,
            model=self.model,
            stop=self.stop,
            timing=self.timing,
            seed=self.walk.seed,
            next=tuple({name: table[name]} if table else {} for table in self.next),
            data=self.data[i],
            test=self.test[i],
            room=self.room,
            record=self.record,
            start=self.start,
            surveyed=self.surveyed,
            code=self.code,
        )

    def notes(self) -> list[str]:
        """Warnings about settings that are allowed but may surprise."""
        said = []
        if self.method.tokens > len(self.peers):
            said.append(f"{self.method.tokens} tokens for {len(self.peers)} agents: some will always wait.")
        if self.walk.kind != "random" and not self.next[0]:
            said.append("no cycle through all agents was found; tokens go to neighbours at random.")
        if not visits.kind_for(self.method).exact:
            rule = '; with token_rule = "tracked" it could' if is_copy(self.method) else ""
            said.append(
                f"{self.method.label} cannot continue without a dead agent: the run waits until it is back{rule}."
            )
        return said


def _agents(settings: Sequence[Any]) -> list[dict[str, Any]]:
    """Each agent's table; names, and addresses to listen at, that are used once."""
    if not 2 <= len(settings) <= PLACES_MAX:
        raise AmbleError(f"the run has {len(settings)} agents; a run needs 2 to {PLACES_MAX}: add tables [[agents]].")
    names: dict[str, str] = {}
    addresses: dict[tuple[str, int], str] = {}
    for k, each in enumerate(settings):
        where = f"agent {each.get('name', k + 1)!r}"
        if "links" in each:
            raise AmbleError(
                f"links is below [[agents]], so TOML takes it for a setting of {where}; move it above all tables."
            )
        toml.check(each, where, AGENT, tuple(agent_config.PEER))
        name, address = each["name"], (each["host"].lower(), each["port"])
        if name.lower() in names:
            raise AmbleError(
                f"two agents are named {names[name.lower()]!r} and {name!r}; give each a name of its own (small and "
                "capital letters count as the same)."
            )
        if name.lower() == TAKEN:
            raise AmbleError(f"an agent is named {name!r}, which is the folder of the run's authority; rename it.")
        if address in addresses:
            raise AmbleError(
                f"agents {addresses[address]!r} and {name!r} both have host {each['host']} and port {each['port']}; "
                "give one of them another port."
            )
        names[name.lower()], addresses[address] = name, name
    return list(settings)


def _walk(table: Any) -> Walk:
    walk = toml.fill(Walk, table, "[walk]")
    if walk.kind not in WALKS:
        raise unknown("walk for live runs", walk.kind, WALKS)
    return walk
