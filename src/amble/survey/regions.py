"""Documents in a vector that tokens add up: one region per agent, so that sums of different agents' vectors are exact.

A region is the document's length in bytes and its bytes, six of them per number. Each number is whole and below 2**48,
and float64 adds and subtracts whole numbers below 2**53 exactly. A region of zeros has no document.
"""

import numpy as np

from amble.arrays import Array
from amble.errors import AmbleError

WORD = 6  # bytes per number
WORD_MAX = 2.0 ** (8 * WORD)


def size(places: int, bytes_max: int) -> int:
    """The length of the vector."""
    return places * _region(bytes_max)


def _region(bytes_max: int) -> int:
    return 1 + -(-bytes_max // WORD)


def vector(document: bytes, index: int, places: int, bytes_max: int) -> Array:
    """One agent's document in its region, and zeros elsewhere."""
    if not 0 <= index < places:
        raise AmbleError(f"agent {index} has no place in a survey of {places}; count from 0 to {places - 1}.")
    if len(document) > bytes_max:
        raise AmbleError(
            f"the description of this agent's table takes {len(document):,} bytes, and the survey has room for "
            f"{bytes_max:,} per agent; raise [survey] bytes_max, or name fewer columns."
        )
    regions = np.zeros((places, _region(bytes_max)))
    padded = np.zeros((regions.shape[1] - 1, 8), np.uint8)
    content = np.frombuffer(document.ljust(WORD * len(padded), b"\0"), np.uint8)
    padded[:, :WORD] = content.reshape(-1, WORD)
    regions[index, 0] = len(document)
    regions[index, 1:] = padded.view("<u8")[:, 0]
    return regions.ravel()


def documents(total: Array, places: int, bytes_max: int) -> dict[int, bytes]:
    """The documents in a sum of vectors, by the agents' places."""
    regions = np.asarray(total, np.float64)
    if regions.shape != (size(places, bytes_max),):
        raise AmbleError(
            f"a survey of {places} agents with [survey] bytes_max = {bytes_max} has {size(places, bytes_max):,} "
            f"numbers, and this has shape {regions.shape}; give all agents the same settings."
        )
    regions = regions.reshape(places, -1)
    with np.errstate(invalid="ignore"):
        whole = (regions >= 0) & (regions < WORD_MAX) & (regions == np.floor(regions))
    found = {}
    for index in np.flatnonzero(regions.any(axis=1)).tolist():
        length = regions[index, 0]
        if not whole[index].all() or not 0 < length <= bytes_max:
            raise AmbleError(f"the survey's region {index} holds no document; was it added up more than once?")
        words = regions[index, 1:].astype("<u8").view(np.uint8).reshape(-1, 8)
        content = words[:, :WORD].tobytes()
        found[index] = content[: int(length)]
        if any(content[int(length) :]):
            raise AmbleError(f"the survey's region {index} holds more than one document; was it added up twice?")
    return found
