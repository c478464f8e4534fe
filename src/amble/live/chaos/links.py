"""The links of the simulated world, and which of them are cut."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from amble.networks.network import Disconnected, from_edges

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
        number = {name: k for k, name in enumerate(names)}
        kept = [link for link in self.pairs if link not in self.lost and number.keys() >= set(link)]
        try:
            from_edges(len(number) or 1, [(number[one], number[other]) for one, other in kept])
        except Disconnected:
            return False
        return True


def listed(links: list[Link]) -> str:
    return ", ".join("-".join(link) for link in links)


def _other(link: Link, name: str) -> str:
    return link[1] if link[0] == name else link[0]
