"""Links between agents: what a transport does (Transport), and two of them, over Eclipse Zenoh and in memory.

A transport carries questions, each of which gets one answer or none, and tells which neighbours are up. It calls an
agent from threads of its own, which also receive. So what it calls must return at once, and must not call `ask` or
`close`: an agent puts what it hears on a queue, and another thread takes it from there.
"""

from collections.abc import Callable
from typing import Protocol

from amble.live.transport.address import Address

ANSWER_BYTES = 2**12  # the longest answer

Answered = Callable[[bytes | None], None]  # the answer; None: there is none
SendAnswer = Callable[[bytes], None]
Hear = Callable[[str, bytes, SendAnswer], None]
Peer = Callable[[str, bool], None]
Judge = Callable[[str | None], None]
Knocked = Callable[[bytes, Judge], None]
Restart = Callable[[], None]


class Transport(Protocol):
    """One agent's links, as long as they are open."""

    def is_up(self, name: str) -> bool:
        """Whether a neighbour is linked, answers, and exists only once."""

    def ask(self, to: str, payload: bytes, timeout_s: float, answered: Answered) -> None:
        """Ask a neighbour, without waiting for the answer.

        `answered` is called exactly once: with the answer, or with None if there is none (it is down, refused, went
        away, or was silent for timeout_s).
        """

    def announce(self, shown: bytes) -> None:
        """Show this to each neighbour until it is up: it may not know this agent yet."""

    def doubled(self) -> dict[str, str]:
        """Names that two agents have, this one's too, each with a sentence about it."""

    def close(self) -> None:
        """Leave: the neighbours see it at once, the address is free, and questions under way are answered with None."""


class Open(Protocol):
    """How an agent begins to listen, and keeps connecting to its neighbours; a missing neighbour is not an error."""

    def __call__(
        self, address: Address, hear: Hear, peer: Peer, knocked: Knocked | None = None, restart: Restart | None = None
    ) -> Transport:
        """hear(sender, payload, reply): a question; reply(answer) may be called once, from any thread, and a reply that
        is dropped without a call tells the asker at once that there is none. peer(name, up): a neighbour came or went.
        knocked(shown, judge): somebody is at the door; judge(None) lets it in, judge(reason) does not. restart(): the
        links must be made again, best in a new process; without it that is done here.
        """
