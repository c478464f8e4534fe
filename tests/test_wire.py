"""Messages as bytes: what goes in comes out, and what is wrong in any way is refused with a reason."""

import math
import struct
import subprocess
import sys
import tracemalloc
import typing

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amble import AmbleError
from amble.arrays import named_leaves, tree_map
from amble.live.core import accounts, visits
from amble.live.core import message as messages
from amble.live.core.message import Epoch
from amble.live.core.packing import digest
from amble.live.formats import wire
from amble.live.formats.shape import MAGIC, PREFIX_SIZE
from amble.methods import apibcd, pwadmm, relay
from fuzz_wire import AGENTS, HUGE, TOKENS, answers, fuzz, make_shape, payload, questions, repaired, with_header

SHAPE = make_shape()
TOKEN = questions(SHAPE)[0]
NUMBERS_AT = -4 - SHAPE.parcel.size  # where a token's numbers begin, from the end


def assert_same(one, other):
    assert type(one) is type(other)
    if isinstance(one, messages.Token):
        pairs = zip(named_leaves(one.payload, "").items(), named_leaves(other.payload, "").items(), strict=True)
        for (name, leaf), (name_too, leaf_too) in pairs:
            assert name == name_too
            assert np.asarray(leaf).tobytes() == np.asarray(leaf_too).tobytes()
        one, other = one._replace(payload=None), other._replace(payload=None)
    assert one == other


def ask(data, sender=None, shape=SHAPE):
    return wire.decode_question(shape, data, sender)


def refused(words, data, sender=None):
    with pytest.raises(wire.Refusal, match=words) as caught:
        ask(data, sender)
    assert len(caught.value.reason) <= 500
    assert str(caught.value) == caught.value.reason


def header_of(kind, *fields):
    return with_header(SHAPE, msgspec.msgpack.encode([kind, *fields]))


@pytest.mark.parametrize("question", questions(SHAPE), ids=lambda question: type(question).__name__)
def test_questions_come_out_as_they_went_in(question):
    assert_same(ask(wire.encode(SHAPE, question), question.sender), question)


@pytest.mark.parametrize("answer", answers(), ids=lambda answer: type(answer).__name__)
def test_answers_come_out_as_they_went_in(answer):
    assert_same(wire.decode_answer(SHAPE, wire.encode(SHAPE, answer)), answer)


NAMES, HOPS = st.sampled_from(AGENTS), st.integers(len(AGENTS), messages.HOPS_MAX - 1)
EPOCHS, ABOUT = (
    st.builds(Epoch, st.integers(0, messages.EPOCHS_MAX), st.integers(0, len(AGENTS) - 1)),
    st.integers(0, TOKENS - 1),
)
TEXTS = st.text(min_size=1, max_size=500).filter(str.isprintable)
ORDERS = st.lists(st.integers(0, 2**53), max_size=8).map(tuple)
ENDINGS = st.builds(messages.Ending, st.sampled_from(typing.get_args(messages.Cause)), TEXTS, ORDERS, st.just(b""))
RESULTS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2)
TOKENS_SEEN = st.builds(
    lambda m, epoch, hop, sender, seed: messages.Token(m, epoch, hop, sender, payload(SHAPE, m, seed)),
    ABOUT, EPOCHS, HOPS, NAMES, st.integers(0, 99),
)  # fmt: skip
QUESTIONS = st.one_of(
    TOKENS_SEEN,
    st.builds(messages.Passed, ABOUT, EPOCHS, HOPS, NAMES),
    st.builds(messages.Seek, ABOUT, NAMES),
    st.builds(messages.Leaving, NAMES),
    st.builds(messages.Stop, ENDINGS.map(lambda ending: ending._replace(order=())), NAMES),
    st.builds(
        lambda ending, numbers, name: messages.Stop(
            ending._replace(order=(1, *ending.order[:7]), result=np.array(numbers).tobytes()), name
        ),
        ENDINGS,
        RESULTS,
        NAMES,
    ),
)
ANSWERS = st.one_of(
    st.just(messages.Accepted()),
    st.builds(messages.Refused, TEXTS),
    st.builds(messages.Ended, ENDINGS),
    st.builds(messages.Found, ABOUT, EPOCHS, HOPS),
)


@settings(deadline=None)
@given(question=QUESTIONS, answer=ANSWERS)
def test_whatever_is_said_comes_out_as_it_went_in(question, answer):
    data = wire.encode(SHAPE, question)
    assert len(data) <= SHAPE.bytes_max
    assert_same(ask(data, question.sender), question)
    assert_same(wire.decode_answer(SHAPE, wire.encode(SHAPE, answer)), answer)


@pytest.mark.parametrize(
    "method",
    [
        relay.Relay(3, "full"),
        relay.Relay(1, "scalar"),
        relay.Relay(2, "gradient"),
        apibcd.APIBCD(tokens=2),
        pwadmm.PWADMM(tokens=2),
    ],
    ids=lambda method: f"{method.label} {method.tokens}",
)
def test_parcels_of_every_kind_travel(method):
    parcel = visits.visits_for(method, 6, len(AGENTS)).parcel(1 % method.tokens)
    shape = wire.Shape(SHAPE.digest, AGENTS, method.tokens, parcel)
    token = TOKEN._replace(token=1 % method.tokens, payload=parcel)
    assert_same(ask(wire.encode(shape, token), shape=shape), token)


def test_what_was_decoded_is_the_receivers_own_memory():
    data = bytearray(wire.encode(SHAPE, TOKEN))
    found = ask(bytes(data)).payload
    for leaf in named_leaves(found, "").values():
        assert leaf.flags.writeable
        leaf[...] = 7.0
    assert all((leaf == 7.0).all() for leaf in named_leaves(found, "").values())
    assert_same(ask(bytes(data)), TOKEN)


def test_zeros_keep_their_sign_and_the_smallest_numbers_are_kept():
    tiny = tree_map(lambda leaf: np.full(np.shape(leaf), -0.0), SHAPE.template)
    account = tiny.token.account._replace(z=np.full(4, 5e-324))
    token = TOKEN._replace(token=0, payload=tiny._replace(token=tiny.token._replace(account=account)))
    assert_same(ask(wire.encode(SHAPE, token)), token)


def test_messages_that_are_not_for_this_run_are_refused():
    data = wire.encode(SHAPE, TOKEN)
    refused("not a message of amble", b"GET / HTTP/1.1\r\n")
    refused("not a message of amble", b"")
    refused("12 bytes, which is too short", data[:12])
    refused("version 9 of the format, and this amble reads version 1", MAGIC + b"\x09" + data[6:])
    refused("of another run: its fingerprint is", wire.encode(make_shape(seed=1), TOKEN))
    other_layout = make_shape(p=3)
    refused("of another run", wire.encode(other_layout, TOKEN._replace(payload=payload(other_layout, 2))))
    refused(f"the longest message of this run has {SHAPE.bytes_max}", data + bytes(SHAPE.bytes_max))


def test_messages_cut_short_at_any_byte_are_refused():
    for message in questions(SHAPE):
        data = wire.encode(SHAPE, message)
        for length in range(len(data)):
            refused(".", data[:length])
            if length > PREFIX_SIZE + 4:
                refused(".", repaired(data[:length]))


def test_one_wrong_bit_anywhere_is_noticed():
    for message in questions(SHAPE):
        data = wire.encode(SHAPE, message)
        for place in range(len(data)):
            wrong = bytearray(data)
            wrong[place] ^= 1 << place % 8
            refused(".", bytes(wrong))


def test_names_are_of_the_run_and_the_senders_own():
    data = wire.encode(SHAPE, TOKEN)
    refused("it claims to be from 'anna', and the certificate is that of 'bert'", data, "bert")
    refused("no agent named 'eve' in this run", header_of("seek", 0, "eve"))
    refused("by agent 4, and the agents of this run are 0 to 3", header_of("passed", 0, 1, 4, 0, "anna"))
    refused("length >= 1", header_of("seek", 0, ""))
    refused("length <= 64", header_of("seek", 0, "a" * 65))


@pytest.mark.parametrize("place", ["epoch", "hop"])
@pytest.mark.parametrize("number", [-1, 2**53 + 1, 2**64 - 1, 1.5, "1", None, True, [1], math.nan])
def test_counts_are_whole_and_within_bounds(place, number):
    epoch, hop = (number, 0) if place == "epoch" else (0, number)
    refused("its header is wrong", header_of("passed", 0, epoch, 0, hop, "anna"))


def test_headers_have_the_right_fields_and_no_more():
    refused("about token 3, and this run has tokens 0 to 2", header_of("seek", 3, "anna"))
    refused("its header is wrong", header_of("seek", -1, "anna"))
    refused("its header is wrong", header_of("seek", 0))
    refused("its header is wrong", header_of("seek", 0, "anna", "more"))
    refused("its header is wrong", header_of("dance", 0, "anna"))
    refused("its header is wrong", header_of("accepted"))  # an answer where a question is expected
    refused("its header is wrong", with_header(SHAPE, b""))
    refused("its header is wrong", with_header(SHAPE, b"\x91" * 300))
    refused("its header is wrong", with_header(SHAPE, b"\x93\xa4seek\x00\xa2\xff\xfe"))  # no UTF-8
    refused("length <= 500", header_of("stop", "hops", "a" * 501, "anna"))
    refused("length >= 1", header_of("stop", "hops", "", "anna"))
    refused("Invalid enum value 'boredom'", header_of("stop", "boredom", "enough", "anna"))
    refused("cannot be printed", header_of("stop", "hops", "line\nline", "anna"))
    for answer in (header_of("refused", "\x1b[2Jgone"), header_of("ended", "hops", "\x1b[2Jgone")):
        with pytest.raises(wire.Refusal, match="cannot be printed"):
            wire.decode_answer(SHAPE, answer)
    refused("bytes too many", repaired(wire.encode(SHAPE, messages.Seek(0, "anna")) + bytes(8)))
    with pytest.raises(wire.Refusal, match="its header is wrong"):
        wire.decode_answer(SHAPE, wire.encode(SHAPE, TOKEN))


def test_reasons_are_cut_and_cleaned_before_they_are_sent():
    long = "no\n" + "\ud800" + "ü" * 1000
    found = wire.decode_answer(SHAPE, wire.encode(SHAPE, messages.Refused(long)))
    assert found == messages.Refused("no  " + "ü" * 496)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_are_refused(number):
    data = wire.encode(SHAPE, TOKEN)
    for leaf in range(SHAPE.parcel.size // 8):
        wrong = bytearray(data)
        struct.pack_into("<d", wrong, len(data) + NUMBERS_AT + 8 * leaf, number)
        refused("a number that is not finite", repaired(bytes(wrong)))


def test_payloads_have_the_shape_and_the_ledger_of_their_token():
    data = wire.encode(SHAPE, TOKEN)
    refused(f"{SHAPE.parcel.size - 8} bytes of numbers, and {SHAPE.parcel.size} are", repaired(data[:-8]))
    refused(f"{SHAPE.parcel.size + 8} bytes of numbers, and {SHAPE.parcel.size} are", repaired(data + bytes(8)))
    wrong = wire.encode(SHAPE, TOKEN._replace(payload=payload(SHAPE, 1)))
    refused("it is token 2, and its payload is that of token 1", wrong)
    with pytest.raises(AmbleError, match="a tree has shapes"):
        wire.encode(SHAPE, TOKEN._replace(payload=TOKEN.payload._replace(calm=np.zeros(3))))


@pytest.mark.parametrize(
    ("count", "value"),
    [
        ("members", -1.0), ("members", 1e300), ("members", 1.5), ("since", -2.0),
        ("since", 12346.0), ("calm", -1.0), ("calm", 5e-324), ("buried", 2.0), ("buried", 0.5), ("met", 12346.0),
        ("met", -1.0),
    ],
)  # fmt: skip
def test_counts_of_a_parcel_are_such_as_visits_lead_to(count, value):
    """A recount that never ends, or somebody buried a thousandfold: that is for the decoder to refuse."""
    leaf = np.full(np.shape(getattr(TOKEN.payload, count)), value)
    wrong = TOKEN._replace(payload=TOKEN.payload._replace(**{count: leaf}))
    refused(f"its {count} must be whole and from", wire.encode(SHAPE, wrong))


def with_account(**changes):
    account = TOKEN.payload.token.account._replace(**changes)
    return TOKEN._replace(payload=TOKEN.payload._replace(token=TOKEN.payload.token._replace(account=account)))


@pytest.mark.parametrize("version", [-1.0, 0.5, 2.0**54, 1e300])
def test_versions_are_such_as_float64_counts(version):
    board = TOKEN.payload.token.account.board
    board = board._replace(version=np.full(np.shape(board.version), version))
    refused("its version must be whole and from 0 to", wire.encode(SHAPE, with_account(board=board)))


@pytest.mark.parametrize(
    ("count", "value"),
    [
        ("generation", -1.0),
        ("generation", 2.0**41),
        ("awaited", 2.0),
        ("buried", 0.5),
        ("gifts", -1.0),
        ("gifts", 1e300),
    ],
)
def test_counts_of_an_account_are_such_as_visits_lead_to(count, value):
    leaf = np.full(np.shape(getattr(TOKEN.payload.token.account, count)), value)
    refused("must be whole and from 0 to", wire.encode(SHAPE, with_account(**{count: leaf})))


def test_the_last_epoch_and_hop_leave_versions_exact():
    """accounts.py: "all are whole numbers below 2**53", up to the last one."""
    assert messages.HOPS_MAX <= accounts.EPOCH_VERSIONS
    assert (messages.EPOCHS_MAX + 1) * accounts.EPOCH_VERSIONS <= 2**53
    refused("its header is wrong: Expected `int` <=", header_of("passed", 0, messages.EPOCHS_MAX + 1, 0, 0, "anna"))
    refused("its header is wrong: Expected `int` <=", header_of("passed", 0, 0, 0, messages.HOPS_MAX + 1, "anna"))


def test_random_and_mutated_messages_are_taken_right_or_refused():
    counts = fuzz(30_000, seed=5)
    assert sum(counts.values()) == 30_000
    assert len(counts) > 10  # every kind of refusal is met


def test_nothing_larger_than_the_message_is_allocated():
    """Also when its header says that gigabytes follow."""
    shape = make_shape(p=60)
    assert len(shape.counts.names) < shape.parcel.numbers  # made once per run, not per message
    token = TOKEN._replace(payload=payload(shape, 2))
    hostile = [with_header(shape, claim + b"\xff\xff\xff\xff") for claim in HUGE]
    for data in [wire.encode(shape, token), *hostile]:
        tracemalloc.start()
        try:
            wire.decode_question(shape, data, None)
        except wire.Refusal:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak <= 1.2 * len(data) + 16_384  # the numbers once, a byte each for whether they are finite, and change


def test_run_digests_follow_the_settings_and_not_their_order():
    one = wire.run_digest({"method": "Relay", "tokens": 3, "ridge": 0.1, "agents": ["a", "b"]})
    assert one == wire.run_digest({"agents": ["a", "b"], "ridge": 0.1, "tokens": 3, "method": "Relay"})
    assert len(one) == 32
    assert one != wire.run_digest({"method": "Relay", "tokens": 2, "ridge": 0.1, "agents": ["a", "b"]})
    for wrong in ({"ridge": math.nan}, {"method": object()}):
        with pytest.raises(AmbleError, match="the run's settings must be plain"):
            wire.run_digest(wrong)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"digest": "xyz"}, "16 hex digits or more, and this is 'xyz'"),
        ({"agents": ()}, "one agent or more"),
        ({"agents": ("a", "a")}, "each with its own name"),
        ({"agents": ("a" * 65,)}, "1 to 64 printable characters"),
        ({"agents": ("a\nb",)}, "1 to 64 printable characters"),
        ({"tokens": 0}, "one token or more"),
    ],
)
def test_a_run_that_cannot_be_is_refused(change, words):
    given = {"digest": SHAPE.digest, "agents": AGENTS, "tokens": TOKENS, "template": SHAPE.template}
    with pytest.raises(AmbleError, match=words):
        wire.Shape(**{**given, **change})


def test_digests_of_trees_see_every_bit():
    one = payload(SHAPE, 0)
    assert digest(one) == digest(ask(wire.encode(SHAPE, TOKEN._replace(token=0, payload=one))).payload)
    assert len(digest(one)) == 16
    assert digest(one) != digest(one._replace(calm=np.nextafter(one.calm, 9)))
    assert digest(one._replace(calm=np.asarray(0.0))) != digest(one._replace(calm=np.asarray(-0.0)))


LIVE_MODULES = ["formats.wire", "journal.rows", "control.glance", "process", "status", "trust.invitation"]


@pytest.mark.parametrize("module", LIVE_MODULES)
def test_one_who_lacks_msgspec_is_told_what_to_install(module):
    code = f"import sys; sys.modules['msgspec'] = None; import amble.live.{module}"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "this needs amble[live], which is not installed: pip install 'amble[live]'" in other.stderr


@pytest.mark.parametrize(("numbers", "words"), [([1.0], "8 bytes, and 16"), ([1.0, np.inf], "not finite")])
def test_a_result_has_as_many_finite_numbers_as_the_stage_ends_with(numbers, words):
    stop = messages.Stop(messages.Ending("tolerance", "complete", (1,), np.array(numbers).tobytes()), "anna")
    with pytest.raises(wire.Refusal, match=words):
        wire.decode_question(SHAPE, wire.encode(SHAPE, stop), "anna")
