"""The protocol, whatever it hears: nothing raises, rows stay consistent, and memory is bounded."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from amble.arrays import tree_map
from amble.live.chaos.tally import Mean
from amble.live.core.effects import Persist, Reply, Settings, Wake
from amble.live.core.message import Accepted, Ending, Epoch, Found, Passed, Refused, Seek, Stop, Token
from amble.live.core.protocol import Core
from amble.live.core.visits import GiftVisits

NAMES, WAY, PATIENCE_S = ("a", "b", "c"), {"a": "b", "b": "c", "c": "a"}, 2.0
TOKENS = 2
epochs = st.builds(Epoch, st.integers(0, 4), st.integers(0, len(NAMES) - 1))
hops = st.integers(0, 9)
senders = st.sampled_from(("b", "c"))
which = st.integers(0, TOKENS - 1)
numbers = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([-1.0, 0.0, 1.0, 2.0, 1e300]))


@st.composite
def parcels(draw, m):
    """A parcel such as the decoder lets through: the right shape, and any finite numbers."""

    def numbers_like(leaf):
        return np.array(draw(st.lists(numbers, min_size=leaf.size, max_size=leaf.size))).reshape(leaf.shape)

    parcel = GiftVisits(Mean(TOKENS), 1, 3).parcel(m)
    wild = tree_map(numbers_like, parcel) if draw(st.booleans()) else parcel
    return wild._replace(token=wild.token._replace(m=parcel.token.m))  # the decoder compares it


tokens = which.flatmap(lambda m: st.builds(Token, st.just(m), epochs, hops, senders, parcels(m)))
questions = st.one_of(
    tokens,
    st.builds(Passed, which, epochs, hops, senders),
    st.builds(Seek, which, senders),
    st.builds(Stop, st.just(Ending("hops", "over")), senders),
)
answers = st.one_of(
    st.none(), st.just(Accepted()), st.builds(Refused, st.just("no")), st.builds(Found, which, epochs, hops)
)
inputs = st.one_of(
    st.tuples(st.just("heard"), questions),
    st.tuples(st.just("answered"), st.tuples(st.integers(1, 40), answers)),
    st.tuples(st.just("peer"), st.tuples(senders, st.booleans())),
    st.tuples(st.just("tick"), st.floats(0, 200)),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(inputs, max_size=40))
def test_any_message_in_any_order_does_no_harm(happens):
    """Every one is refused with a reason, the agent works on, and its memory is bounded."""
    plan = Settings(NAMES, TOKENS, 1, (WAY,) * TOKENS, PATIENCE_S, silence_s=15.0)
    core = Core("a", ("b", "c"), plan, GiftVisits(Mean(TOKENS), 1, 3), 1.0)
    disk, now, asked = {}, 0.0, 0
    effects = core.start(now)
    for number, (kind, what) in enumerate(happens):
        check(core, disk, effects, now)
        seen = {m: disk.get(f"sight/{m}") for m in range(TOKENS)}
        if kind == "heard":
            effects = core.heard(now, number, what)
            assert [effect.question for effect in effects if isinstance(effect, Reply)] == [number]
        elif kind == "answered":
            effects = core.answered(now, *what)
        elif kind == "peer":
            effects = core.peer(now, *what)
        else:
            now += what
            effects = core.tick(now)
        check(core, disk, effects, now)
        for m, sight in seen.items():
            assert sight is None or disk[f"sight/{m}"] >= sight, "what is known of a token never gets older"
        asked = max(asked, len(core.state.asked))
    assert asked <= 60


def check(core, disk, effects, now):
    """What a single agent can tell: its rows are as the disk has them and fit each other, and it remembers little."""
    for effect in effects:
        if isinstance(effect, Persist):
            disk.update(effect.rows)
        elif isinstance(effect, Wake):
            assert effect.at_s > now
    assert disk.keys() == core.rows.keys()
    assert all(disk[name] is row for name, row in core.rows.items())
    for m in range(TOKENS):
        custody = disk.get(f"custody/{m}")
        if custody:
            assert (custody.message.epoch, custody.message.hop) == disk[f"sight/{m}"]
            assert not custody.tried or custody.to in core.neighbours.names
    assert len(core.custodian.errands) == TOKENS
    assert len(core.neighbours.watch) <= TOKENS * len(core.neighbours.names)
