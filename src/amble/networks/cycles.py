"""Closed walks through all agents: a Hamiltonian cycle where one is found, else a short closed walk."""

from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Indices
from amble.networks.network import Network, parts

ROTATION_WORK = 20_000_000  # path entries reversed before giving up: a second or two
ROTATIONS_A_PATH = 20  # times N: a path that has not closed by then seldom does
CANDIDATES_MAX = 8  # fresh neighbours looked at before a step


def closed_walk(network: Network, rng: "np.random.Generator") -> Indices:
    """Agents in the order of a closed walk that visits all; each agent once if a Hamiltonian cycle was found."""
    if network.agents <= 2:
        return np.arange(network.agents)
    cycle = hamiltonian(network, rng)
    return tour(network, rng) if cycle is None else cycle


def hamiltonian(network: Network, rng: "np.random.Generator") -> Indices | None:
    """A Hamiltonian cycle, or None if none was found: path by path, each from another start."""
    if network.degrees.min() < 2 or lopsided(network):
        return None
    work = 0
    while work < ROTATION_WORK:
        path, spent = posa(network, rng)
        if path is not None:
            return path
        work += spent
    return None


def lopsided(network: Network) -> bool:
    """Whether the agents are two unequal halves with links only across, as an odd grid's: then there is no cycle.

    Each agent counts twice, as reached by an even and by an odd number of links. With links only across, the two lie in
    different parts, and the half of agent 0 is what an even number reaches.
    """
    N, links = network.agents, len(network.neighbours)
    starts = np.concatenate([network.starts, network.starts[1:] + links])
    part = parts(starts, np.concatenate([network.neighbours + N, network.neighbours]))
    return bool(part[N] != part[0]) and 2 * np.count_nonzero(part[:N] == part[0]) != N


def posa(network: Network, rng: "np.random.Generator") -> tuple[Indices | None, int]:
    """Pósa's rotations: grow a path from its end; where the end has no fresh neighbour, reverse a tail and continue."""
    N = network.agents
    path, length, work = np.empty(N, np.int64), 1, N
    position = np.full(N, -1)  # where on the path an agent is
    path[0] = rng.integers(N)
    position[path[0]] = 0
    # the same memory, for one number at a time: several times faster than through the arrays
    starts, neighbours, on, place = (a.data for a in (network.starts, network.neighbours, path, position))
    for _ in range(ROTATIONS_A_PATH * N):
        end = on[length - 1]
        near = neighbours[starts[end] : starts[end + 1]]
        fresh = [j for j in near if place[j] < 0]
        if fresh:
            following = fresh[0] if len(fresh) == 1 else hardest(network, position, fresh, rng)
            on[length], place[following] = following, length
            length += 1
            continue
        if length == N and on[0] in near:
            return path, work
        before = on[length - 2]
        cut = place[int(rng.choice([j for j in near if j != before]))] + 1
        path[cut:length] = path[cut:length][::-1].copy()
        position[path[cut:length]] = np.arange(cut, length)
        work += length - cut + 200
        if work > ROTATION_WORK:
            break
    return None, work


def hardest(network: Network, position: Indices, fresh: ArrayLike, rng: "np.random.Generator") -> int:
    """Of some fresh neighbours, the one with the fewest fresh neighbours: it is the hardest to reach later."""
    some = rng.permutation(np.asarray(fresh))[:CANDIDATES_MAX]
    ways = [np.count_nonzero(position[network.neighbours_of(j)] < 0) for j in some]
    return int(some[int(np.argmin(ways))])


def tour(network: Network, rng: "np.random.Generator") -> Indices:
    """Depth first, with steps back along the tree, then the shortest way to the start: at most 2(N-1) steps."""
    position = np.full(network.agents, -1)
    walk = [int(rng.integers(network.agents))]
    position[walk[0]] = 0
    back, seen = [walk[0]], 1
    while seen < network.agents:
        near = network.neighbours_of(back[-1])
        fresh = near[position[near] < 0]
        if len(fresh):
            following = int(fresh[0]) if len(fresh) == 1 else hardest(network, position, fresh, rng)
            position[following] = seen
            seen += 1
            back.append(following)
            walk.append(following)
        else:
            back.pop()
            walk.append(back[-1])
    return np.array(walk + shortest(network, walk[-1], walk[0])[:-1])


def shortest(network: Network, start: int, goal: int) -> list[int]:
    """The agents after `start` on a shortest path to `goal`."""
    before = {start: start}
    queue = deque([start])
    while goal not in before:
        i = queue.popleft()
        for j in network.neighbours_of(i).tolist():
            if j not in before:
                before[j] = i
                queue.append(j)
    path = [goal]
    while path[-1] != start:
        path.append(before[path[-1]])
    return path[-2::-1]
