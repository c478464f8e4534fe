"""Messages as bytes, and back. Nothing that comes in is trusted: a message that is not valid is refused.

A message is a frame (packing.py): its prefix says amble, the version of this format, and a fingerprint of the run; its
header is one of the small types below; the numbers are a token's payload. The lengths of all parts follow from what
this end knows of the run, and are checked before anything is read into memory.
"""

from typing import Annotated, Any

import numpy as np

from amble.arrays import Array
from amble.live.codec import msgspec
from amble.live.core.message import (
    EPOCHS_MAX,
    HOPS_MAX,
    Accepted,
    Answer,
    Cause,
    Ended,
    Ending,
    Epoch,
    Found,
    Leaving,
    Passed,
    Probe,
    Question,
    Refused,
    Seek,
    Stop,
    Token,
    printable,
)
from amble.live.core.packing import NUMBER, flat, frame, unframe
from amble.live.core.packing import Refusal as Refusal  # these are offered from here as well
from amble.live.core.visits import GiftToken
from amble.live.formats.shape import MAGIC, NAME_MAX, PREFIX_SIZE, TEXT_MAX, VERSION
from amble.live.formats.shape import Shape as Shape
from amble.live.formats.shape import run_digest as run_digest

COUNT_MAX = 2**53  # float64 counts by one up to here

Count = Annotated[int, msgspec.Meta(ge=0, le=COUNT_MAX)]
Issue = Annotated[int, msgspec.Meta(ge=0, le=EPOCHS_MAX)]
Hop = Annotated[int, msgspec.Meta(ge=0, le=HOPS_MAX)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_MAX)]
Text = Annotated[str, msgspec.Meta(max_length=TEXT_MAX)]
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=TEXT_MAX)]
Order = Annotated[tuple[Count, ...], msgspec.Meta(max_length=8)]


class AnotherRun(Refusal):
    """A message of another run, or of another stage of this one."""


class _Header(msgspec.Struct, array_like=True, forbid_unknown_fields=True, gc=False):
    pass


class _Token(_Header, tag="token"):
    token: Count
    epoch: Issue
    author: Count
    hop: Annotated[int, msgspec.Meta(ge=0, lt=HOPS_MAX)]  # at the last one the run has ended
    sender: Name


class _Passed(_Header, tag="passed"):
    token: Count
    epoch: Issue
    author: Count
    hop: Hop
    sender: Name


class _Seek(_Header, tag="seek"):
    token: Count
    sender: Name


class _Probe(_Header, tag="probe"):
    sender: Name


class _Leaving(_Header, tag="leaving"):
    sender: Name


class _Stop(_Header, tag="stop"):
    cause: Cause
    reason: Reason
    sender: Name
    order: Order = ()


class _Accepted(_Header, tag="accepted"):
    pass


class _Refused(_Header, tag="refused"):
    reason: Text


class _Ended(_Header, tag="ended"):
    cause: Cause
    reason: Reason
    order: Order = ()


class _Found(_Header, tag="found"):
    token: Count
    epoch: Issue
    author: Count
    hop: Hop


_NUMBERED, _NAMED = (_Token, _Stop), (_Token, _Passed, _Seek, _Found)  # with numbers; about a token
_AUTHORED, _SAID = (_Token, _Passed, _Found), (_Stop, _Refused, _Ended)  # of an epoch; for people
_encoder = msgspec.msgpack.Encoder()
_questions = msgspec.msgpack.Decoder(_Token | _Passed | _Seek | _Probe | _Leaving | _Stop)
_answers = msgspec.msgpack.Decoder(_Accepted | _Refused | _Ended | _Found)


def encode(shape: Shape, message: Question | Answer) -> bytes:
    """The bytes of a message of this agent's own."""
    numbers: Array | bytes = b""
    if isinstance(message, Token):
        numbers = shape.message.pack(message.payload)
    elif isinstance(message, Stop):
        numbers = message.ending.result
    return frame(shape.prefix, _encoder.encode(_header(message)), numbers)


def _header(message: Question | Answer) -> _Header:
    match message:
        case Token(token, epoch, hop, sender):
            return _Token(token, *epoch, hop, sender)
        case Passed(token, epoch, hop, sender):
            return _Passed(token, *epoch, hop, sender)
        case Seek(token, sender):
            return _Seek(token, sender)
        case Probe(sender):
            return _Probe(sender)
        case Leaving(sender):
            return _Leaving(sender)
        case Stop(ending, sender):
            return _Stop(ending.cause, _clean(ending.words), sender, ending.order)
        case Accepted():
            return _Accepted()
        case Refused(reason):
            return _Refused(_clean(reason))
        case Ended(ending):
            return _Ended(ending.cause, _clean(ending.words), ending.order)
        case Found(token, epoch, hop):
            return _Found(token, *epoch, hop)


def _clean(text: str) -> str:
    """The text, so that it fits one log line and the other end accepts it."""
    return printable(text[:TEXT_MAX])


def decode_question(shape: Shape, data: bytes, sender: str | None) -> Question:
    """What a neighbour asks. `sender` is the name that its certificate proves; None where there is none to compare."""
    header, numbers = _opened(shape, data, _questions)
    if sender is None and header.sender not in shape.names:
        raise Refusal(f"there is no agent named {header.sender!r} in this run")
    if sender is not None and header.sender != sender:
        raise Refusal(f"it claims to be from {header.sender!r}, and the certificate is that of {sender!r}")
    if isinstance(header, _Token):
        payload = shape.message.unpack(numbers, finite=True)
        token = payload.token
        if isinstance(token, GiftToken) and token.m != header.token:  # it is an index into arrays at the visit
            raise Refusal(f"it is token {header.token}, and its payload is that of token {float(token.m):g}")
        if reason := shape.counts.wrong(flat(payload), header.hop):
            raise Refusal(reason)
        return Token(header.token, Epoch(header.epoch, header.author), header.hop, header.sender, payload)
    if isinstance(header, _Passed):
        return Passed(header.token, Epoch(header.epoch, header.author), header.hop, header.sender)
    if isinstance(header, _Seek):
        return Seek(header.token, header.sender)
    if isinstance(header, _Probe):
        return Probe(header.sender)
    if isinstance(header, _Leaving):
        return Leaving(header.sender)
    return Stop(Ending(header.cause, header.reason, header.order, _result(shape, header.order, numbers)), header.sender)


def _result(shape: Shape, order: tuple[int, ...], numbers: memoryview) -> bytes:
    """What a stage ended with: as many numbers as all agents expect, and finite ones; none where there is no order."""
    if order and not shape.result:
        raise Refusal("it orders results, and this run ends without one")
    expected = NUMBER.itemsize * shape.result if order else 0
    if len(numbers) != expected:
        raise Refusal(f"its result has {len(numbers)} bytes, and {expected} are expected here")
    if not np.isfinite(np.frombuffer(numbers, NUMBER)).all():
        raise Refusal("its result holds a number that is not finite")
    return bytes(numbers)


def decode_answer(shape: Shape, data: bytes) -> Answer:
    """What a neighbour answers."""
    header, _ = _opened(shape, data, _answers)
    if isinstance(header, _Found):
        return Found(header.token, Epoch(header.epoch, header.author), header.hop)
    if isinstance(header, _Ended):
        return Ended(Ending(header.cause, header.reason, header.order))
    return Refused(header.reason) if isinstance(header, _Refused) else Accepted()


def check_outside(shape: Shape, data: bytes) -> None:
    """What takes no time to check: that a message is one of this run, and not too long."""
    if not data.startswith(shape.prefix):
        raise _foreign(shape, data)
    if len(data) > shape.bytes_max:
        raise Refusal(f"it has {len(data)} bytes, and the longest message of this run has {shape.bytes_max}")


def _opened(shape: Shape, data: bytes, decoder: Any) -> tuple[Any, memoryview]:
    """The header, of right type and within bounds, and the bytes after it."""
    check_outside(shape, data)
    header_bytes, numbers = unframe(data, PREFIX_SIZE)
    try:
        header = decoder.decode(header_bytes)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # also of a wrong type, or out of bounds
        raise Refusal(_clean(f"its header is wrong: {error}")) from error
    if len(numbers) and not isinstance(header, _NUMBERED):
        raise Refusal(f"it has {len(numbers)} bytes too many")
    if isinstance(header, _NAMED) and header.token >= shape.tokens:
        raise Refusal(f"it is about token {header.token}, and this run has tokens 0 to {shape.tokens - 1}")
    if isinstance(header, _AUTHORED) and header.author >= shape.agents_max:
        raise Refusal(f"it is by agent {header.author}, and the agents of this run are 0 to {shape.agents_max - 1}")
    if isinstance(header, _SAID) and not header.reason.isprintable():
        raise Refusal("its reason holds characters that cannot be printed")
    return header, numbers


def _foreign(shape: Shape, data: bytes) -> Refusal:
    if not data.startswith(MAGIC):
        return Refusal("it is not a message of amble")
    if len(data) < PREFIX_SIZE:
        return Refusal(f"it has {len(data)} bytes, which is too short")
    version, fingerprint = data[len(MAGIC)], data[len(MAGIC) + 1 : PREFIX_SIZE]
    if version != VERSION:
        return Refusal(f"it has version {version} of the format, and this amble reads version {VERSION}")
    return AnotherRun(
        f"it is of another run: its fingerprint is {fingerprint.hex()}, and ours is {shape.fingerprint.hex()}"
    )
