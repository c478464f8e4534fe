"""Where an agent listens, who its neighbours are, and the certificates by which they know each other."""

import re
from dataclasses import dataclass
from pathlib import Path

from amble.errors import AmbleError

NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Link:
    """A neighbour, and where it listens."""

    name: str
    host: str
    port: int


@dataclass(frozen=True)
class Address:
    """An agent's own address, those of its neighbours, and the certificates by which they know each other.

    Names are free of dots because Zenoh, when it dials, trusts the public web authorities besides the run's own: they
    certify no name without a dot.
    """

    name: str
    host: str  # to listen on
    port: int
    neighbours: tuple[Link, ...]
    run: str  # the digest of the run, in which the agents must agree
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False  # plain TCP, where everybody is believed: for tests and benchmarks on one machine
    lease_s: float = 2.0  # a neighbour that is not heard of for so long is taken for dead
    bytes_max: int = 2**28  # of one question
    waiting_max: int = 1024  # questions that were heard and are not yet answered

    def check_size(self, payload: bytes) -> None:
        """Refuse a question that is too long to be sent."""
        if len(payload) > self.bytes_max:
            raise AmbleError(
                f"a question of {len(payload)} bytes was given, and at most {self.bytes_max} may be sent; raise "
                "bytes_max at all agents."
            )

    def __post_init__(self) -> None:
        for name in (self.run, self.name, *(link.name for link in self.neighbours)):
            if not NAME.fullmatch(name):
                raise AmbleError(f"the name {name!r} was given; use only letters, digits, - and _.")
        names = [self.name, *(link.name for link in self.neighbours)]
        if len(set(names)) < len(names):
            raise AmbleError(
                f"the names {', '.join(names)} were given for an agent and its neighbours; make all different."
            )
        files = (self.authority, self.certificate, self.key)
        if self.insecure != (files == (None, None, None)):
            raise AmbleError(
                f"{self.name} needs an authority, a certificate and a key, or insecure=True and none of these; give "
                "all three."
            )
        for file in files:
            if not self.insecure and not (file and file.is_file()):
                raise AmbleError(f"there is no file {file}; copy the folder that amble init made for {self.name}.")
