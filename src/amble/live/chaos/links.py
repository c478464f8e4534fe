"""The links of the simulated world, and which of them are cut."""

from collections.abc import Iterable
from dataclasses import dataclass, field

Link = tuple[str, str]  # in the order of their names


@dataclass
class Links:
    pairs: list[Link]
    refused: set[str] = field(default_factory=set)  # names that two agents have, once that was noticed
    cuts: set[Link] = field(default_factory=set)  # those that are cut now
    lost: set[Link] = field(default_factory=set)  # those that stay so
    dead_ends: set[Link] = field(
        default_factory=set
    )  # directions that are cut although the way back is not: (from, to)

    def near(self, name: str) -> tuple[str, ...]:
        """The neighbours of an agent, whether they can be reached or not."""
        return tuple(_other(link, name) for link in self.pairs if name in link)

    def whole(self, one: str, other: str) -> bool:
        """Whether what one says reaches the other."""
        if one in self.refused or other in self.refused or (one, other) in self.dead_ends:
            return False
        return ((one, other) if one < other else (other, one)) not in self.cuts

    def connected(self, names: Iterable[str]) -> bool:
        """Whether these reach each other, without the others, over links that are not lost for good."""
        waiting = set(names)
        edge = [waiting.pop()] if waiting else []
        while edge:
            reached = waiting.intersection(
                _other(link, one) for one in edge for link in self.pairs if one in link and link not in self.lost
            )
            waiting -= reached
            edge = list(reached)
        return not waiting


def listed(links: list[Link]) -> str:
    return ", ".join("-".join(link) for link in links)


def _other(link: Link, name: str) -> str:
    return link[1] if link[0] == name else link[0]
