"""An overview of a run, combined from the status files of its agents.

An agent that was killed cannot say so. So its status is compared with its process, if that is on this machine, with the
status of its neighbours, and with the age of the file.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from amble.live import process
from amble.live.codec import msgspec
from amble.live.core.message import Cause
from amble.live.status import RUNNING, Status, Why, read

FORMAT = 1  # of the overview, which scripts read
FROZEN_S = 5.0  # an agent writes its status twice a second
LATE_S = 1.5  # an older status counts less than what neighbours say

State = Literal["unstarted", "joining", "up", "leaving", "left", "ending", "ended", "refused", "down"]
Down = Literal["", "stopped", "killed", "frozen", "silent", "unlinked"]
DOWN = {
    "stopped": "was ended early",
    "killed": "its process is gone: it was killed, or it crashed",
    "frozen": "its process is frozen (SIGSTOP)",
    "silent": f"has written no status for {FROZEN_S:g} s or longer: it hangs, or is dead",
    "unlinked": "its neighbours have no link to it",
}


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent; if its folder is elsewhere, only what its neighbours know."""

    state: State
    why: Down = ""  # it is down
    words: str = ""  # why it is down, has left, has ended or did not start
    folder: str | None = None
    status_s: float | None = None  # when it last wrote its status
    visits: int = 0
    hops_per_s: float = 0.0
    bytes: int = 0
    up: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    doubts: dict[str, str] = msgspec.field(default_factory=dict)
    doubled: dict[str, str] = msgspec.field(default_factory=dict)
    stage: str = ""  # of a run with surveys
    missing: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    likely_cause: str = ""  # of a divergence, as far as its rows show it

    @property
    def runs(self) -> bool:
        return self.state in RUNNING


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """The newest information about a token."""

    epoch: int
    hop: int
    agent: str  # who says so
    here: bool  # whether it is still there
    to: str = ""  # whom it is for, then
    moved: float | None = None  # how far the model moved over the last lap, relative


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Who waits for whom, since when and until when."""

    agent: str
    why: Why
    whom: tuple[str, ...]
    token: int | None
    since_s: float
    until_s: float | None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What `amble status --json` prints; docs/live.md describes it."""

    format: int = FORMAT
    time_s: float
    state: Literal["unstarted", "running", "down", "ended"]
    cause: Cause | Literal[""] = ""
    words: str = ""  # why the run has ended
    stages: tuple[str, ...] = ()  # of a run with surveys: opening, training or closing; two, while some are ahead
    visits: int
    hops_per_s: float
    bytes: int
    agents: dict[str, Agent]
    tokens: dict[int, Token]
    waits: tuple[Waiting, ...]

    @property
    def over(self) -> bool:
        """The run has ended, and no agent that is known runs on."""
        return self.state == "ended" and not any(agent.runs for agent in self.agents.values())


def look(folders: Mapping[str, Path]) -> Overview:
    """At agents' folders, now."""
    statuses = {name: read(folder) for name, folder in folders.items()}
    return overview(statuses, folders, time.time())


def as_line(overview: Overview) -> str:
    """As JSON."""
    return msgspec.json.encode(overview).decode()


def overview(statuses: Mapping[str, Status], folders: Mapping[str, Path], now_s: float) -> Overview:
    ended = next((status for status in statuses.values() if status.cause), None)
    agents = {name: of_agent(status, folders[name], now_s) for name, status in statuses.items()}
    votes = _votes(agents)
    agents = {
        name: of_agent(status, folders[name], now_s, votes.get(name), ended is not None)
        for name, status in statuses.items()
    }
    agents |= {
        name: Agent(state="up" if linked else "down", why="" if linked else "unlinked",
                    words="" if linked else DOWN["unlinked"])
        for name, linked in sorted(_votes(agents).items()) if name not in agents
    }  # fmt: skip
    running = {name: statuses[name] for name, agent in agents.items() if agent.runs and name in statuses}
    silent = all(status.state == "unstarted" for status in statuses.values())
    return Overview(
        time_s=now_s,
        state="ended" if ended else "running" if running else "unstarted" if silent else "down",
        cause=ended.cause if ended else "",
        words=ended.stopped if ended else "",
        stages=tuple(sorted({status.stage for status in running.values() if status.stage})),
        visits=sum(status.visits for status in statuses.values()),
        hops_per_s=sum(agent.hops_per_s for agent in agents.values()),
        bytes=sum(status.bytes for status in statuses.values()),
        agents=agents,
        tokens=tokens(statuses),
        waits=tuple(
            Waiting(agent=name, **msgspec.structs.asdict(wait))
            for name, status in running.items() for wait in status.waits
        ),
    )  # fmt: skip


def of_agent(
    status: Status, folder: Path, now_s: float | None = None, linked: bool | None = None, over: bool = False
) -> Agent:
    """How an agent is; `linked`: whether a neighbour that runs has a link to it, if one says; `over`: whether an agent
    says that the run has ended."""
    now_s = time.time() if now_s is None else now_s
    state, why, sentence = _judged(status, now_s, linked, over)
    return Agent(
        state=state, why=why, words=sentence, folder=str(folder), status_s=status.time_s or None, visits=status.visits,
        hops_per_s=status.hops_per_s if state in RUNNING else 0.0, bytes=status.bytes,
        up=status.up if state in RUNNING else (), down=status.down if state in RUNNING else (),
        doubts=status.doubts if state in RUNNING else {}, doubled=status.doubled if state in RUNNING else {},
        stage=status.stage, missing=status.missing if status.visits else (), silent=status.silent,
        likely_cause=status.likely_cause,
    )  # fmt: skip


def _judged(status: Status, now_s: float, linked: bool | None, over: bool) -> tuple[State, Down, str]:
    advice = "the run has ended without it" if over else "start it again, and it goes on from its journal"
    if status.state == "stopped":
        return "down", "stopped", status.reason or f"{DOWN['stopped']}; {advice}"
    if status.state not in RUNNING:
        sentences = {
            "unstarted": "it has not been started in this folder",
            "refused": status.reason,
            "left": status.left,
        }
        return status.state, "", sentences.get(status.state, status.stopped)
    seen, age_s = process.condition(status.process), now_s - status.time_s
    why: Down = ""
    if seen == "gone":
        why = "killed"
    elif seen == "frozen":
        why = "frozen"
    elif linked is False and age_s > LATE_S:
        why = "unlinked" if age_s <= FROZEN_S else "silent"
    elif seen is None and age_s > FROZEN_S:
        why = "silent"
    if why:
        return "down", why, f"{DOWN[why]}; {advice}" if why in ("killed", "silent") else DOWN[why]
    late = f"has written no status for {age_s:.0f} s: a long visit, a full disk, or it hangs"
    return status.state, "", late if age_s > FROZEN_S else ""


def _votes(agents: Mapping[str, Agent]) -> dict[str, bool]:
    """What the agents that run say of their neighbours: one link is enough to be up."""
    votes: dict[str, bool] = {}
    for agent in agents.values():
        votes |= dict.fromkeys(agent.up, True) | {name: votes.get(name, False) for name in agent.down}
    return votes


def tokens(statuses: Mapping[str, Status]) -> dict[int, Token]:
    """Where each token was last seen: the newest information of all agents, by epoch and hop."""
    newest: dict[int, tuple[tuple[int, int], int, str]] = {}
    moved: dict[int, tuple[tuple[int, int], int, float]] = {}
    for name, status in statuses.items():
        for m, sight in status.tokens.items():
            newest[m] = max(newest.get(m, ((-1, 0), 0, "")), (sight.epoch, sight.hop, name))
            if sight.moved is not None:
                moved[m] = max(moved.get(m, ((-1, 0), 0, 0.0)), (sight.epoch, sight.hop, sight.moved))
    result = {}
    for m, (epoch, hop, name) in sorted(newest.items()):
        sight = statuses[name].tokens[m]
        result[m] = Token(epoch=epoch[0], hop=hop, agent=name, here=sight.here, to=sight.to,
                          moved=moved[m][2] if m in moved else None)  # fmt: skip
    return result


def newest(statuses: Mapping[str, Status]) -> str | None:
    """The agent with the newest model: of those that have one, the one that has seen most hops of all tokens."""
    seen = {
        name: (status.hops_seen, status.visits) for name, status in statuses.items() if status.tokens and status.model
    }
    return max(seen, key=lambda name: seen[name]) if seen else None


def size(count: float) -> str:
    """Bytes in a readable unit."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
