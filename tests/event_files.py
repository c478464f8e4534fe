"""Reads TensorBoard's event files, independently of what wrote them: records of TFRecord with their checksums, and the
fields of the messages Event and Summary, by their numbers (tensorflow/core/util/event.proto)."""

import struct

SUMMARY, STEP, VALUE, TAG, SIMPLE = 5, 2, 1, 1, 2  # the numbers of the fields
TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)  # CRC-32C, reversed
    TABLE.append(byte)


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        body, rest = data[12 : 12 + length], data[12 + length :]
        assert struct.unpack("<I", data[8:12]) == (masked_crc(data[:8]),)
        assert struct.unpack("<I", rest[:4]) == (masked_crc(body),)
        yield body
        data = rest[4:]


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def fields(data):
    """(number, value) of each field of a message of Protocol Buffers."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            if kind == 2:
                size, at = varint(data, at)
            else:
                size = {1: 8, 5: 4}[kind]
            value, at = data[at : at + size], at + size
        yield number, value


def scalars(folder):
    """Of the one event file in a folder: the (step, value) of each tag."""
    (path,) = folder.glob("events.out.tfevents.*")
    curves = {}
    for event in records(path.read_bytes()):
        parts = dict(fields(event))
        for number, value in fields(parts.get(SUMMARY, b"")):
            inside = dict(fields(value)) if number == VALUE else {}
            if SIMPLE in inside:
                (scalar,) = struct.unpack("<f", inside[SIMPLE])
                curves.setdefault(inside[TAG].decode(), []).append((parts.get(STEP, 0), scalar))
    return curves
