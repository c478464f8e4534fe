"""Walk: where a token goes next. `begin` gives each token's start and memory; `step` is array arithmetic for one hop.

cycle           one closed walk for all tokens, which start spread along it (the paper's choice)
cycles          a closed walk of its own for each token
stretches       one closed walk cut into M stretches, one per token; after its stretch a token goes to agents that
                others have just left, so that after log2(M) steps it knows all ledgers (for tokens that share an
                account)
meeting         one closed walk cut into M stretches, one per token; after its stretch each token goes to one meeting
                place and waits there for the others (for tokens that share an account: methods/meetings.py)
metropolis      P_ij = 1/max(d_i+1, d_j+1), P_ii the rest: uniform in the long run
uniform         every neighbour with the same probability
least-visited   the neighbour (or self) that this token has visited least, ties at random
a matrix P      any row-stochastic P that respects the links (dense or scipy sparse)

MHLJ has a walk of its own (`Weighted`): agents are visited in proportion to their weights, but for jumps.
"""

from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from amble.arrays import Array, Bits, Indices, while_loop
from amble.errors import AmbleError, unknown
from amble.networks import meetings
from amble.networks.cycles import closed_walk, shortest
from amble.networks.network import Network
from amble.randomness import TIE, draw

NAMES = ("cycle", "cycles", "stretches", "meeting", "metropolis", "uniform", "least-visited")


class Matrix(NamedTuple):
    """A row-stochastic P as triples; what a run keeps of a matrix that was given."""

    source: Indices
    target: Indices
    chance: Array


class Weighted(NamedTuple):
    """What MHLJ's walk follows from besides the network: Metropolis-Hastings with Levy jumps.

        P_ij = 1/d_i min(1, d_i L_j / (d_j L_i)), P_ii the rest: in the long run agents are visited in proportion to L

    and with the chance `jump`, instead, so many steps to random neighbours as a truncated geometric law says, of which
    only the last one ends in a visit:  chance of k steps = stop (1 - stop)^(k - 1) / (1 - (1 - stop)^longest)
    """

    weight: Array  # L_i: above zero, one per agent
    jump: Array
    stop: Array
    longest: Indices


Step = tuple[Indices, Indices]  # the agent a token goes to, and what the walk remembers then


@runtime_checkable
class SparseMatrix(Protocol):
    """A sparse matrix of SciPy, which need not be there."""

    shape: tuple[int, ...]

    def tocoo(self) -> Any: ...


class Cycles(NamedTuple):
    """Closed walks: token m follows row `row[m]` of `order`, whose length is lengths[row[m]]."""

    order: Indices  # (walks, longest), padded
    lengths: Indices
    row: Indices  # (M,)
    first: Indices  # (M,) where on its walk each token starts

    def begin(self, xp: Any) -> tuple[Indices, Indices]:
        return self.order[self.row, self.first], xp.asarray(self.first)

    def step(self, xp: Any, at: Indices, token: Indices, agent: Indices, u: Array, key: Bits) -> Step:  # noqa: ARG002
        row = take(self.row, token)
        on = take(at, token) + 1
        on = xp.where(on == take(self.lengths, row), 0, on)
        return take(self.order, (row, on)), put(at, token, on)


class Meetings(NamedTuple):
    """Closed walks that meet: token m follows row m of `order`, and does what `role` says (networks/meetings.py)."""

    order: Indices  # (M, longest), padded
    role: Indices
    lengths: Indices

    def begin(self, xp: Any) -> tuple[Indices, Indices]:
        return self.order[:, 0], xp.zeros(len(self.order), xp.int32)

    def role_of(self, at: Indices, token: Indices) -> Indices:
        """What a token does where it is."""
        return take(self.role, (token, take(at, token)))

    def step(self, xp: Any, at: Indices, token: Indices, agent: Indices, u: Array, key: Bits) -> Step:  # noqa: ARG002
        on = take(at, token) + 1
        on = xp.where(on == take(self.lengths, token), 0, on)
        return take(self.order, (token, on)), put(at, token, on)


class Chain(NamedTuple):
    """A Markov chain: row i's targets and cumulated probabilities are at starts[i] .. starts[i+1]."""

    starts: Indices
    targets: Indices
    cumulated: Array
    first: Indices

    def begin(self, xp: Any) -> tuple[Indices, Indices]:
        return xp.asarray(self.first), xp.zeros(0)

    def step(self, xp: Any, memory: Indices, token: Indices, agent: Indices, u: Array, key: Bits) -> Step:  # noqa: ARG002
        """The first target whose cumulated probability is above u, by halving the row."""
        low, high = take(self.starts, agent), take(self.starts, agent + 1) - 1

        def halve(span: tuple[Indices, Indices]) -> tuple[Indices, Indices]:
            low, high = span
            middle = (low + high) // 2
            right = take(self.cumulated, middle) <= u
            return xp.where(right, middle + 1, low), xp.where(right, high, middle)

        at, _ = while_loop(xp, lambda span: span[0] < span[1], halve, (low, high))
        return take(self.targets, at), memory


class LeastVisited(NamedTuple):
    """The neighbour or self that this token has visited least; ties go to the smallest draw."""

    starts: Indices
    targets: Indices  # neighbours and self
    first: Indices

    def begin(self, xp: Any) -> tuple[Indices, Indices]:
        counts = np.zeros((len(self.first), len(self.starts) - 1), np.int32)
        counts[np.arange(len(self.first)), self.first] = 1
        return xp.asarray(self.first), xp.asarray(counts)

    def step(self, xp: Any, counts: Indices, token: Indices, agent: Indices, u: Array, key: Bits) -> Step:
        end = take(self.starts, agent + 1)
        bits = (u * 2.0**53).astype(xp.uint64)

        def look(state: tuple[Array, ...]) -> tuple[Array, ...]:
            at, best, least = state
            j = take(self.targets, at)
            cost = take(counts, (token, j)) + draw(xp, key, bits, j.astype(xp.uint64), TIE)
            return at + 1, xp.where(cost < least, j, best), xp.minimum(cost, least)

        begin = (take(self.starts, agent), agent, xp.asarray(np.inf))
        _, best, _ = while_loop(xp, lambda state: state[0] < end, look, begin)
        return best, put(counts, (token, best), take(counts, (token, best)) + 1)


class Jumps(NamedTuple):
    """Weighted's tables: its chain, the neighbours, and the law of jumps. A token remembers how far it has to go on."""

    starts: Indices  # of the chain's rows, as in Chain
    targets: Indices
    cumulated: Array
    first: Indices
    near: Indices  # where each agent's neighbours start
    neighbours: Indices
    law: Array  # cumulated chances of a jump with 1, 2, ... steps; the last one is that of any jump

    def begin(self, xp: Any) -> tuple[Indices, Indices]:
        return xp.asarray(self.first), xp.zeros(len(self.first), xp.int32)

    def role_of(self, left: Indices, token: Indices) -> Indices:
        """What a token does where it is: it passes agents on a jump."""
        on_jump = take(left, token) > 0
        return on_jump * meetings.PASS + (~on_jump) * meetings.VISIT

    def step(self, xp: Any, left: Indices, token: Indices, agent: Indices, u: Array, key: Bits) -> Step:
        on = take(left, token)
        chances = xp.concatenate([xp.zeros(1), self.law])
        drawn = (u >= self.law).sum()  # which law of jumps; beyond the last, none
        none = (on == 0) & (drawn == len(self.law))
        low = xp.where(none, chances[-1], take(chances, xp.minimum(drawn, len(self.law) - 1)))
        high = xp.where(none, 1.0, take(chances, xp.minimum(drawn + 1, len(self.law))))
        rest = xp.where(on > 0, u, (u - low) / (high - low))  # uniform again, given what it has decided
        links = take(self.near, agent + 1) - take(self.near, agent)
        k = xp.minimum((rest * links).astype(links.dtype), links - 1)
        beside = take(self.neighbours, take(self.near, agent) + k)
        chain = Chain(self.starts, self.targets, self.cumulated, self.first)
        stays, _ = chain.step(xp, left, token, agent, rest, key)
        after = xp.where(none, 0, xp.where(on > 0, on - 1, drawn)).astype(left.dtype)
        return xp.where(none, stays, beside), put(left, token, after)


Walk = Cycles | Meetings | Chain | LeastVisited | Jumps
Entries = TypeVar("Entries", bound=NDArray[Any])


def take(array: Entries, index: Any) -> Entries:
    """array[index]; under JAX without the checks that would stop the loop from compiling to one kernel."""
    return array[index] if isinstance(array, np.ndarray) else array.at[index].get(mode="promise_in_bounds")


def put(array: Entries, index: Any, value: Any) -> Entries:
    """The array with one entry replaced (a copy on NumPy; in place inside a compiled loop)."""
    if isinstance(array, np.ndarray):
        array = array.copy()
        array[index] = value
        return array
    return array.at[index].set(value, mode="promise_in_bounds")


def meets(walk: object, tokens: int) -> bool:
    """Whether tokens meet on this walk; a single one has nobody to meet."""
    return isinstance(walk, str) and walk == "meeting" and tokens > 1


def has_roles(walk: object, tokens: int) -> bool:
    """Whether a hop may be something else than a visit."""
    return isinstance(walk, Weighted) or meets(walk, tokens)


def walk_for(
    walk: str | Matrix | Weighted | SparseMatrix | ArrayLike, network: Network, tokens: int, seed: int
) -> Walk:
    """The walk's tables for this network: a name from the list above, or a matrix P."""
    rng = np.random.default_rng([seed, 2])
    N = network.agents
    if isinstance(walk, Weighted):
        return jumps(walk, network, spread_starts(N, tokens, rng))
    if not isinstance(walk, str):
        return chain_of(N, *matrix(walk, network), spread_starts(N, tokens, rng))
    if walk not in NAMES:
        raise unknown("walk", walk, NAMES)
    if meets(walk, tokens):
        return meeting_walk(meetings.laps(network, closed_walk(network, rng), tokens))
    if walk in ("cycle", "cycles", "stretches", "meeting"):
        rows = [closed_walk(network, rng) for _ in range(tokens if walk == "cycles" else 1)]
        if walk == "stretches":
            rows = [np.array(row) for row in stretches(network, rows[0], tokens)]
        lengths = np.array([len(row) for row in rows], np.int32)
        order = np.zeros((len(rows), lengths.max()), np.int32)
        for k, row in enumerate(rows):
            order[k, : len(row)] = row
        which = np.arange(tokens) % len(rows)
        first = np.zeros(tokens, int) if walk == "stretches" else np.arange(tokens) * lengths[which] // tokens
        return Cycles(order, lengths, which.astype(np.int32), first.astype(np.int32))
    first = spread_starts(N, tokens, rng)
    i = np.repeat(np.arange(N), network.degrees)
    d = network.degrees
    if walk == "uniform" and N > 1:
        return chain_of(N, i, network.neighbours, 1 / d[i], first)
    if walk == "least-visited":
        source, target = np.concatenate([i, np.arange(N)]), np.concatenate([network.neighbours, np.arange(N)])
        order = np.lexsort((target, source))
        starts = np.concatenate([[0], np.cumsum(d + 1)])
        return LeastVisited(starts.astype(np.int32), target[order].astype(np.int32), first)
    move, stay = network.metropolis()
    source, target = np.concatenate([i, np.arange(N)]), np.concatenate([network.neighbours, np.arange(N)])
    return chain_of(N, source, target, np.concatenate([move, stay]), first)


def meeting_walk(laps: list[meetings.Lap]) -> Meetings:
    """The tables of these laps."""
    lengths = np.array([len(lap.agent) for lap in laps], np.int32)
    order, role = np.zeros((2, len(laps), lengths.max()), np.int32)
    for m, lap in enumerate(laps):
        order[m, : lengths[m]], role[m, : lengths[m]] = lap.agent, lap.role
    return Meetings(order, role, lengths)


def stretches(network: Network, order: Indices, tokens: int) -> list[list[int]]:
    """Token m's closed walk: its stretch, then the last agents of the stretches of tokens m+1, m+3, m+7, ..., and home.

    Token m+1 has just left the end of its stretch with all that it gathered there, so after one step token m knows
    both. The end of stretch m+3 is where token m+2 was at that step, with its own news and that of m+3: what is known
    doubles at each step.
    Tokens do not move at the same pace, so there are as many steps as the hops by which tokens drift apart, about the
    root of the stretch's length.
    """
    parts = [part.tolist() for part in np.array_split(order, min(tokens, len(order)))]
    rows = []
    for m in range(tokens):
        walk = list(parts[m % len(parts)])
        steps, at = 0, m
        doublings = (len(parts) - 1).bit_length()
        while doublings and (steps < doublings or steps < np.sqrt(len(parts[0]))):
            at = (at + 2 ** (steps % doublings)) % len(parts)
            walk += path(network, walk[-1], parts[at][-1])
            steps += 1
        if len(walk) == 1 and network.agents > 1:  # all stretches end at this agent: step to a neighbour and back
            walk.append(int(network.neighbours_of(walk[0])[0]))
        home = path(network, walk[-1], walk[0])
        rows.append(walk + home[:-1] if home else walk[: max(1, len(walk) - 1)])
    return rows


def path(network: Network, start: int, goal: int) -> list[int]:
    """The agents after `start` on a shortest path to `goal`; none if they are the same."""
    return shortest(network, start, goal) if start != goal else []


def spread_starts(agents: int, tokens: int, rng: "np.random.Generator") -> Indices:
    """Different agents at random, as far as there are enough."""
    return np.resize(rng.permutation(agents), tokens).astype(np.int32)


def chain_of(agents: int, source: Indices, target: Indices, chance: Array, first: Indices) -> Chain:
    """The chain's tables from triples (source, target, probability)."""
    order = np.lexsort((target, source))
    source, target, chance = source[order], target[order], chance[order]
    starts = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=agents))])
    running = np.cumsum(chance)
    cumulated = running - np.concatenate([[0.0], running])[starts[:-1]][source]
    cumulated[starts[1:] - 1] = 1.0
    return Chain(starts.astype(np.int32), target.astype(np.int32), cumulated, first)


def jumps(walk: Weighted, network: Network, first: Indices) -> Jumps:
    """The tables of Metropolis-Hastings with jumps."""
    N, d, weight = network.agents, network.degrees, np.asarray(walk.weight, np.float64)
    source, target = np.repeat(np.arange(N), d), network.neighbours
    move = np.minimum(1, d[source] * weight[target] / (d[target] * weight[source])) / d[source]
    stay = 1 - np.bincount(source, move, minlength=N)
    both = np.concatenate([source, np.arange(N)]), np.concatenate([target, np.arange(N)])
    chain = chain_of(N, *both, np.concatenate([move, np.maximum(0, stay)]), first)
    chance = float(walk.stop) * (1 - float(walk.stop)) ** np.arange(int(walk.longest))
    law = float(walk.jump) * np.cumsum(chance) / chance.sum() if N > 1 else np.zeros(1)
    neighbours = target if N > 1 else np.zeros(1, np.int32)
    return Jumps(*chain, network.starts.astype(np.int32), neighbours, law)


def matrix(P: Matrix | SparseMatrix | ArrayLike, network: Network) -> Matrix:
    """A matrix as triples, checked: N x N, rows sum to one, and only links (or staying) have a probability."""
    if isinstance(P, Matrix):
        return P
    N = network.agents
    given = P if isinstance(P, SparseMatrix) else np.asarray(P, np.float64)
    if given.shape != (N, N):
        raise AmbleError(f"the walk's matrix has shape {given.shape}; {N} agents need ({N}, {N}).")
    if isinstance(given, SparseMatrix):
        triples = given.tocoo()
        source, target, chance = np.asarray(triples.row), np.asarray(triples.col), np.asarray(triples.data, np.float64)
    else:
        source, target = np.nonzero(given)
        chance = given[source, target]
    used = chance != 0
    source, target, chance = source[used], target[used], chance[used]
    sums = np.bincount(source, chance, minlength=N)
    if (chance < 0).any() or not np.allclose(sums, 1, atol=1e-9):
        worst = int(source[np.argmin(chance)] if (chance < 0).any() else np.argmax(np.abs(sums - 1)))
        raise AmbleError(
            f"the walk's matrix is not row-stochastic (row {worst} sums to {sums[worst]:.6g}); "
            "give probabilities, zero or more, each row summing to 1."
        )
    links = set((np.repeat(np.arange(N), network.degrees) * N + network.neighbours.astype(np.int64)).tolist())
    for i, j in zip(source.tolist(), target.tolist(), strict=True):
        if i != j and i * N + j not in links:
            raise AmbleError(f"the walk's matrix moves from agent {i} to agent {j}, and there is no link between them.")
    return Matrix(source, target, chance)
