"""Messages made wrong in every way that comes to mind, for wire.py to refuse: `python tests/fuzz_wire.py`."""

import argparse
import collections
import random
import resource
import struct
import time
import zlib

import numpy as np

from amble.arrays import named_leaves, tree_map
from amble.live.core import message as messages
from amble.live.core import visits
from amble.live.core.message import Epoch
from amble.live.formats import wire
from amble.live.formats.shape import PREFIX_SIZE
from amble.methods.relay import Relay

HUGE = (
    b"\xdd",
    b"\xdf",
    b"\xdb",
    b"\xc6",
    b"\xc9",
    b"\x96\xa5token\xdb",
    b"\x92\xa7leaving\xdd",
)  # and a 32-bit length
AGENTS = ("anna", "bert", "cléo", "dora")
TOKENS = 3


def make_shape(p=4, form="full", **settings):
    parcel = visits.visits_for(Relay(TOKENS, form), p, len(AGENTS)).parcel(0)
    return wire.Shape(wire.run_digest(settings), AGENTS, TOKENS, parcel, result=2)


def payload(shape, token, seed=0):
    rng = np.random.default_rng(seed)
    parcel = tree_map(lambda leaf: rng.normal(size=np.shape(leaf)), shape.template)
    board = parcel.token.account.board._replace(version=rng.integers(0, 99, TOKENS) * 1.0)
    count = np.asarray(float(rng.integers(0, len(AGENTS))))
    met, buried, awaited = rng.integers(0, 2, (3, len(AGENTS))) * 1.0
    account = parcel.token.account._replace(
        generation=rng.integers(0, 9, 2) * 1.0, awaited=awaited, buried=buried, board=board,
        gifts=rng.integers(0, 5, (TOKENS, len(AGENTS))) * 1.0,
    )  # fmt: skip
    return parcel._replace(
        token=parcel.token._replace(m=np.asarray(float(token)), account=account),
        members=count, since=count - 1, calm=count, met=met, buried=buried,
    )  # fmt: skip


def questions(shape):
    epoch = Epoch(7, 1)
    return [
        messages.Token(2, epoch, 12345, "anna", payload(shape, 2)),
        messages.Passed(1, epoch, messages.HOPS_MAX, "cléo"),
        messages.Seek(0, "dora"),
        messages.Leaving("bert"),
        messages.Stop(messages.Ending("tolerance", "the model has converged – enough"), "anna"),
        messages.Stop(messages.Ending("tolerance", "complete", (3, 0, 9), np.ones(2).tobytes()), "anna"),
    ]


def answers():
    ended = messages.Ended(messages.Ending("hops", "token 1 has made its 9 hops"))
    return [messages.Accepted(), messages.Refused("not seen"), ended, messages.Found(1, Epoch(0, 0), 0)]


def repaired(data):
    """With the checksum of what it has become, so that it is read further."""
    return data[:-4] + struct.pack("<I", zlib.crc32(data[:-4]))


def with_header(shape, header, numbers=b""):
    return repaired(shape.prefix + struct.pack("<H", len(header)) + header + numbers + bytes(4))


def flipped(chance, data, first=0):
    for _ in range(chance.choice((1, 1, 2, 8))):
        place = chance.randrange(first, len(data))
        data = data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
    return data


def mutated(chance, shape, data):
    """One message made wrong (or, rarely, left right), most of them with a checksum that fits."""
    kind = chance.randrange(9)
    if kind == 0:
        return chance.randbytes(chance.randrange(2 * len(data)))
    if kind == 1:
        return data[: chance.randrange(len(data))]
    if kind == 2:
        return repaired(data + chance.randbytes(chance.randrange(64)))
    if kind == 3:
        return flipped(chance, data)
    if kind == 4:  # in the header, or in the numbers
        return repaired(flipped(chance, data, PREFIX_SIZE))
    if kind == 5:
        return repaired(flipped(chance, data[: PREFIX_SIZE + 48], PREFIX_SIZE) + data[PREFIX_SIZE + 48 :])
    if kind == 6:  # a header that claims to be huge
        length = chance.choice((b"\xff" * 4, b"\x7f\xff\xff\xff"))
        return with_header(shape, chance.choice(HUGE) + length + chance.randbytes(8))
    if kind == 7:
        return with_header(shape, chance.randbytes(chance.randrange(40)), chance.randbytes(chance.randrange(64)))
    place = PREFIX_SIZE + chance.randrange(len(data) - PREFIX_SIZE)
    bad = struct.pack("<d", chance.choice((float("nan"), float("inf"), -1.0, 1e300)))
    return repaired((data[:place] + bad + data[place + 8 :])[: len(data)])


def check(shape, found):
    """Whatever is taken is within all bounds."""
    assert getattr(found, "sender", AGENTS[0]) in AGENTS
    assert 0 <= getattr(found, "epoch", Epoch(0, 0)).author < len(AGENTS)
    assert 0 <= getattr(found, "token", 0) < TOKENS
    assert 0 <= getattr(found, "hop", 0) <= messages.HOPS_MAX
    assert 0 <= getattr(found, "epoch", Epoch(0, 0)).number <= messages.EPOCHS_MAX
    assert len(getattr(found, "reason", "")) <= 500
    if isinstance(found, messages.Token):
        like = named_leaves(shape.template, "")
        for name, leaf in named_leaves(found.payload, "").items():
            assert leaf.shape == like[name].shape
            assert leaf.dtype == np.float64
            assert np.isfinite(leaf).all()
            assert leaf.flags.writeable


def decoded(shape, data, as_question):
    try:
        return wire.decode_question(shape, data, None) if as_question else wire.decode_answer(shape, data)
    except wire.Refusal as refusal:
        return refusal


def fuzz(count, seed):
    """How many were taken, and how many were refused by the first words of the reason; all else is an error."""
    chance, shape, counts = random.Random(seed), make_shape(), collections.Counter()
    asked = [wire.encode(shape, question) for question in questions(shape)]
    answered = [wire.encode(shape, answer) for answer in answers()]
    for _ in range(count):
        as_question = chance.random() < 0.7
        data = mutated(chance, shape, chance.choice(asked + answered))
        found = decoded(shape, data, as_question)
        if isinstance(found, wire.Refusal):
            assert 0 < len(found.reason) <= 500
            assert found.reason.isprintable()
            counts["refused: " + " ".join(word for word in found.reason.split()[:4] if word.isalpha())] += 1
        else:
            check(shape, found)
            counts["taken"] += 1
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    fuzz(10_000, given.seed + 1)  # what Python and NumPy allocate once
    before, start_s = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    counts = fuzz(given.messages, given.seed)
    seconds = time.perf_counter() - start_s
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    for words, number in counts.most_common():
        print(f"{number:>9,}  {words}")  # noqa: T201
    print(f"{given.messages:,} messages in {seconds:.1f} s; memory {before / 1024:.1f} MiB, + {grown} KiB")  # noqa: T201


if __name__ == "__main__":
    main()
