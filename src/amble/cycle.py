"""Closed walks through all agents: a Hamiltonian cycle where one is found, else a short closed walk."""

import numpy as np

from amble.network import Network

ROTATIONS_WORK = 20_000_000  # agents moved in all rotations before giving up; about a second


def closed_walk(network: Network, rng: np.random.Generator) -> list[int]:
    """Agents in the order of a closed walk that visits all; each agent once if a Hamiltonian cycle was found."""
    if network.agents <= 2:
        return list(range(network.agents))
    return hamiltonian(network, rng) or tour(network, rng)


def hamiltonian(network: Network, rng: np.random.Generator) -> list[int] | None:
    """Pósa's rotations: grow a path from its end; where the end has no fresh neighbour, turn a tail round and go on."""
    N = network.agents
    if network.degrees.min() < 2:
        return None
    path = [int(rng.integers(N))]
    place = np.full(N, -1)  # where on the path an agent is
    place[path[0]] = 0
    work = 0
    while work < ROTATIONS_WORK:
        end = path[-1]
        near = network.neighbours_of(end)
        fresh = near[place[near] < 0]
        if len(fresh):
            # the neighbour with the fewest ways on is the one hardest to come back for
            ways = [int((place[network.neighbours_of(int(j))] < 0).sum()) for j in fresh]
            few = fresh[np.array(ways) == min(ways)]
            place[step := int(rng.choice(few))] = len(path)
            path.append(step)
            continue
        if len(path) == N and place[path[0]] == 0 and path[0] in near:
            return path
        turns = near[near != path[-2]]
        if not len(turns):
            return None
        cut = int(place[int(rng.choice(turns))]) + 1
        path[cut:] = path[cut:][::-1]
        place[path[cut:]] = np.arange(cut, len(path))
        work += len(path) - cut + 20
    return None


def tour(network: Network, rng: np.random.Generator) -> list[int]:
    """Go to the nearest agent not yet seen, along a shortest path, until all are seen; then home."""
    N = network.agents
    seen = np.zeros(N, bool)
    walk = [int(rng.integers(N))]
    seen[walk[0]] = True
    for _ in range(N - 1):
        leg = shortest(network, walk[-1], seen)
        walk += leg
        seen[leg] = True
        if seen.all():
            break
    home = np.ones(N, bool)
    home[walk[0]] = False
    return walk + (shortest(network, walk[-1], home)[:-1] if walk[-1] != walk[0] else [])


def shortest(network: Network, start: int, seen: np.ndarray) -> list[int]:
    """The agents after `start` on a shortest path to the nearest agent that is not in `seen`."""
    before = {start: -1}
    layer = [start]
    while layer:
        following = []
        for i in layer:
            for j in network.neighbours_of(i).tolist():
                if j in before:
                    continue
                before[j] = i
                if not seen[j]:
                    path = [j]
                    while before[path[-1]] != start:
                        path.append(before[path[-1]])
                    return path[::-1]
                following.append(j)
        layer = following
    return []
