"""The messages between agents, as frozen types; wire.py turns them into bytes and back.

Every message is a question that gets an answer. Only the answer proves that the question was heard.
"""

from typing import Any, Literal, NamedTuple

# a run ends there: a ledger's versions, of which each issue has its share (accounts.py), are exact up to 2**53
HOPS_MAX, EPOCHS_MAX = 2**36, 2**17 - 1

Cause = Literal["tolerance", "hops", "seconds", "asked", "diverged", "lost"]


def printable(text: str) -> str:
    """Text from others, for one line of a log or a screen: without characters that would move the cursor."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


class Epoch(NamedTuple):
    """Which issue of a token this is. Epochs are ordered, and the larger one wins."""

    number: int
    author: int  # the index of the agent that issued it


class Token(NamedTuple):
    """A token handed over: after its `hop`-th visit, at `sender`."""

    token: int
    epoch: Epoch
    hop: int
    sender: str
    payload: Any  # a tree of float64 arrays, as the method's rules have it


class Passed(NamedTuple):
    """I have passed on the token that you gave me at this hop, and it was taken: you may forget it."""

    token: int
    epoch: Epoch
    hop: int
    sender: str


class Seek(NamedTuple):
    """I have not seen this token for long: what is the newest that you know of it?"""

    token: int
    sender: str


class Probe(NamedTuple):
    """Do you work? An agent answers after a write to its disk, and refuses if it cannot pass a token on."""

    sender: str


class Leaving(NamedTuple):
    """I am leaving: send me nothing more. The receiver refuses this while a token is on its way to me."""

    sender: str


class Ending(NamedTuple):
    """Why a run ends: a word that decides, and a sentence for people, which is never empty.

    A stage that another one follows (agent/stages.py) ends with a result, which all agents must have alike: two of them
    may end it at the same time, and of their endings the one of the larger order counts, everywhere.
    """

    cause: Cause
    words: str
    order: tuple[int, ...] = ()
    result: bytes = b""  # float64 numbers, little-endian


class Stop(NamedTuple):
    """The run ends; pass it on."""

    ending: Ending
    sender: str


class Accepted(NamedTuple):
    """Heard; of a token: it is in my journal and in my custody."""


class Refused(NamedTuple):
    """Refused, and why; asking again will not help."""

    reason: str


class Ended(NamedTuple):
    """Refused, because the run has ended."""

    ending: Ending


class Found(NamedTuple):
    """The newest that I have seen of a token."""

    token: int
    epoch: Epoch
    hop: int


Question = Token | Passed | Seek | Probe | Leaving | Stop
Answer = Accepted | Refused | Ended | Found
