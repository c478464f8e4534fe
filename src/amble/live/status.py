"""The status of an agent: status.json in its folder, written twice a second.

It has counts, names, times, and how far the model moves, but nothing of the agent's gradient or model. A sentence on
what is wrong may quote the agent's data; it stays in this file.
"""

from pathlib import Path
from typing import Any, Literal

from amble.files import write_whole
from amble.live.codec import msgspec
from amble.live.core.message import Cause
from amble.live.process import Process

FILE, FORMAT = "status.json", 2
BYTES_MAX = 1_000_000  # some hundred neighbours and tokens take far less
PRIVATE = ("reason", "likely_cause", "process")  # these quote the agent's rows, or describe its machine
LATELY = ("recent", "events", "counts")  # a record has all of them anyway
RECENT_MAX, EVENTS_MAX = 16, 20

# unstarted: there is no status yet. joining: no token of another agent has come yet. ending: the run has ended, and the
# agent tells its neighbours. ended: the agent has, with the run. stopped: it ended early. refused: it did not start.
State = Literal["unstarted", "joining", "up", "leaving", "left", "ending", "ended", "stopped", "refused"]
RUNNING = ("joining", "up", "leaving", "ending")

# down: `whom` is, and gets until `until_s` to come back. answer: to a hand-over. passing: of a token that it has taken.
# neighbour: nobody is up to take the token. meeting: a run does not end before everybody was met.
Why = Literal["down", "answer", "passing", "neighbour", "meeting"]


class Sight(msgspec.Struct, frozen=True):
    """The newest that an agent knows of a token."""

    epoch: tuple[int, int]
    hop: int
    here: bool = False
    to: str = ""  # whom it is for, while it is here
    moved: float | None = None  # |z - z_last| / |z| between this agent's last two visits of this token: over a lap


class Wait(msgspec.Struct, frozen=True):
    """What an agent waits for, and how long it will."""

    why: Why
    since_s: float
    until_s: float | None = None  # None: no limit
    whom: tuple[str, ...] = ()
    token: int | None = None


class Recent(msgspec.Struct, frozen=True, array_like=True):
    """One of the agent's last visits: who sent the token, and whom it is for now."""

    time_s: float
    token: int
    epoch: int
    hop: int
    giver: str
    to: str


class Told(msgspec.Struct, frozen=True):
    """One of the last events in the agent's journal."""

    kind: str
    time_s: float
    token: int = -1
    epoch: int | None = None
    hop: int = 0
    words: str = ""  # for people
    buried: tuple[str, ...] = ()  # of a recount or reissue: the agents that were counted out when it began


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The default is the status before the agent has written any."""

    format: int = FORMAT
    name: str = ""
    time_s: float = 0.0
    state: State = "unstarted"
    reason: str = ""  # why it refused to start
    process: Process | None = None
    visits: int = 0
    hops_per_s: float = 0.0  # over the last seconds
    visit_s: float | None = None  # the mean of these visits; None: there was none
    wait_s: float | None = None  # and how long their tokens had waited for the agent
    bytes: int = 0  # heard
    up: tuple[str, ...] = ()  # neighbours
    down: tuple[str, ...] = ()
    doubts: dict[str, str] = msgspec.field(default_factory=dict)  # neighbours that are up and do not work, and why
    doubled: dict[str, str] = msgspec.field(default_factory=dict)  # names that two agents have
    tokens: dict[int, Sight] = msgspec.field(default_factory=dict)
    waits: tuple[Wait, ...] = ()
    stopped: str = ""  # why the run has ended, in words
    cause: Cause | Literal[""] = ""
    likely_cause: str = ""  # of a divergence, from the agent's own rows
    left: str = ""  # how the agent has left
    all_out: bool = False  # whether all that it gave was out of the model by then
    missing: tuple[str, ...] = ()  # whose data the model does not have; in the opening survey: who has not given yet
    silent: tuple[str, ...] = ()  # in the closing survey: who is in the model, and has not given yet
    model: bool = False  # whether it has one
    stage: Literal["", "opening", "training", "closing"] = ""  # of a run with surveys
    recent: tuple[Recent, ...] = ()  # the last visits of this process
    events: tuple[Told, ...] = ()  # the last ones, also of earlier processes
    counts: dict[str, int] = msgspec.field(default_factory=dict)  # of all events, by their kind

    @property
    def hops_seen(self) -> int:
        """The hops seen, of all tokens: the agent that has seen most has the newest model."""
        return sum(sight.hop for sight in self.tokens.values())


def write(folder: Path, status: Status) -> None:
    write_whole({folder / FILE: msgspec.json.encode(status)})


def read(folder: Path) -> Status:
    """The agent's last status; if there is none, or the file is damaged, the default status."""
    try:
        with (folder / FILE).open("rb") as file:
            data = file.read(BYTES_MAX + 1)
        content = msgspec.json.decode(data if len(data) <= BYTES_MAX else b"", type=dict[str, Any])
        return msgspec.convert(content if "format" in content else _first(content), Status, str_keys=True)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        return Status()


def changed(status: Status, **fields: Any) -> Status:
    return msgspec.structs.replace(status, **fields)


def as_record(status: Status) -> dict[str, Any]:
    """For a run's record, which holds plain JSON and leaves the agent's machine."""
    fields = msgspec.json.decode(msgspec.json.encode(status), type=dict[str, Any])
    return {key: value for key, value in fields.items() if key not in PRIVATE + LATELY}


def _first(content: dict[str, Any]) -> dict[str, Any]:
    """From format 1, which had no number, and said the state by several fields."""
    states: list[tuple[str, State]] = [
        ("left", "left"),
        ("stopped", "ended"),
        ("ended", "stopped"),
        ("leaving", "leaving"),
    ]
    state = next((state for key, state in states if content.get(key)), "up")
    return {"model": True, **content, "format": 1, "state": state}
