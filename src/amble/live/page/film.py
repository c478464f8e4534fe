"""What the page shows, as data: a film of a run, whether it goes on or has ended.

A film has agents, links, tokens, frames and events. A frame is how everything was at one moment, and an event is what
happened between two. Agents and links are numbers in frames: their places in the lists of `About`. Times are seconds
since the run began. Nothing of an agent's rows, gifts or gradients is in a film.
"""

import threading
from collections import deque
from collections.abc import Mapping

from amble.live.codec import msgspec

FORMAT = 1
FRAMES_MAX = 1500  # then every other one goes
TAIL = 60  # the last frames, which are sent one by one; whoever is further behind asks for the film again
HOPS_MAX = 8  # of a token in one frame: the last ones
EVENTS_MAX = 1000
NOTES_MAX = 6

# the states of glance.State; `waiting`: an agent that is up, and has waited for another for a second or longer; and
# `unknown`: a neighbour, in the record of one agent
STATES = ("unstarted", "joining", "up", "waiting", "leaving", "left", "ending", "ended", "refused", "down", "unknown")
NOBODY = -1  # in place of an agent or a token


class Agent(msgspec.Struct, frozen=True, array_like=True):
    """One agent in one frame. None: not known here."""

    state: int  # of STATES
    visits: int | None = None
    hops_per_s: float | None = None
    bytes: int | None = None  # heard
    visit_s: float | None = None  # mean of the last seconds
    wait_s: float | None = None


class Token(msgspec.Struct, frozen=True, array_like=True):
    """One token in one frame."""

    agent: int = NOBODY  # who had it last
    to: int = NOBODY  # whom it is for then
    here: bool = False  # whether it is still there
    epoch: int = 0
    hop: int = 0
    moved: float | None = None  # how far the model moved over the last lap, relative
    hops: tuple[tuple[float, int], ...] = ()  # the last visits since the frame before: when it ended, and where
    whole: bool = True  # whether these are all of them


class Frame(msgspec.Struct, frozen=True):
    """How everything was at one moment."""

    n: int
    t: float
    state: str  # of the run: unstarted, running, down or ended
    agents: tuple[Agent, ...]
    tokens: tuple[Token, ...]
    stages: tuple[str, ...] = ()  # of a run with surveys
    cut: tuple[int, ...] = ()  # links that are down
    bytes: int | None = None  # heard by all agents
    figures: Mapping[str, float] = {}  # how good the model is, where that is known
    notes: tuple[str, ...] = ()  # who waits for whom, and what is wrong


class Event(msgspec.Struct, frozen=True):
    """`kind`: start, join, down, back, leave, left, reissue, recount, doubt, absorbed, refused or end."""

    t: float
    kind: str
    agent: int
    text: str
    token: int = NOBODY


class About(msgspec.Struct, frozen=True):
    """What a film is of. An agent or a link that comes later is added at the end of its list."""

    title: str
    method: str
    live: bool  # whether more frames may come
    began_s: float  # seconds since 1970
    tokens: int
    agents: tuple[str, ...]
    links: tuple[tuple[int, int], ...]
    here: tuple[bool, ...] = ()  # whether an agent's folder can be read here
    seen_from: str = ""  # of a page of one agent of several: its name
    unseen: tuple[str, ...] = ()  # agents of the run that are neither here nor a neighbour of one that is
    can_leave: bool = False  # whether an agent may leave the run
    format: int = FORMAT
    states: tuple[str, ...] = STATES

    @property
    def places(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.agents)}


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a frame adds to a film."""

    frame: Frame
    events: tuple[Event, ...] = ()
    about: About | None = None  # where it has changed


class Film:
    """A film that grows, as JSON. Frames come from one thread and are read by others."""

    def __init__(self, about: About) -> None:
        self.about, self.frames, self.events = about, list[tuple[int, bytes]](), deque[bytes](maxlen=EVENTS_MAX)
        self.last: Frame | None = None
        self._tail: deque[tuple[int, bytes]] = deque(maxlen=TAIL)
        self._every = 1  # frames whose number this divides are kept
        self._lock = threading.Lock()

    def add(self, step: Step) -> None:
        line = msgspec.json.encode(step)
        with self._lock:
            self.about = step.about or self.about
            self.last = step.frame
            self.events.extend(map(msgspec.json.encode, step.events))
            self._tail.append((step.frame.n, line))
            if step.frame.n % self._every:
                return
            self.frames.append((step.frame.n, msgspec.json.encode(step.frame)))
            while len(self.frames) > FRAMES_MAX:
                self._every *= 2
                self.frames = [frame for frame in self.frames if frame[0] % self._every == 0]

    def whole(self) -> bytes:
        """All of it, with the newest frame."""
        with self._lock:
            frames = [line for _, line in self.frames]
            if self.last is not None and (not self.frames or self.frames[-1][0] != self.last.n):
                frames.append(msgspec.json.encode(self.last))
            about = msgspec.json.encode(self.about)
            return b'{"about":%b,"frames":[%b],"events":[%b]}' % (about, b",".join(frames), b",".join(self.events))

    def after(self, n: int) -> list[tuple[int, bytes]] | None:
        """The steps after frame `n`; None where some of them are no longer known."""
        with self._lock:
            if self._tail and n + 1 < self._tail[0][0]:
                return None
            return [each for each in self._tail if each[0] > n]
