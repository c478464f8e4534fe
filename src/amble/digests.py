"""SHA-256, without OpenSSL where there is little to digest: its library takes 3.5 MB of an agent's memory, and is
faster only where there is much."""

from typing import Any, Protocol

MUCH_BYTES = 2**16


class Digest(Protocol):
    """As those of hashlib."""

    def update(self, content: bytes | memoryview, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...


def _large(content: bytes | memoryview = b"") -> Digest:
    from hashlib import sha256

    return sha256(content)


def _small() -> Any:
    """Python's own, which has another name in each version, and which some builds leave out."""
    for name in ("_sha2", "_sha256"):
        try:
            return __import__(name).sha256
        except ImportError:
            continue
    return _large


_sha256 = _small()


def hasher(size: int) -> Digest:
    """An empty digest, for so many bytes, about."""
    empty: Digest = (_large if size > MUCH_BYTES else _sha256)()
    return empty


def sha256(content: bytes | memoryview) -> Digest:
    """The digest of these bytes."""
    size = len(content) if isinstance(content, bytes) else content.nbytes
    made: Digest = (_large if size > MUCH_BYTES else _sha256)(content)
    return made
