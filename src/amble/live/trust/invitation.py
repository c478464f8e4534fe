"""An invitation: who may join a run in progress, and as whose neighbour. The run's authority signs it.

The newcomer shows it to its neighbours. They do not know the newcomer, but they trust the signature.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from amble.errors import AmbleError
from amble.live import toml
from amble.live.codec import msgspec
from amble.live.trust import files, identity
from amble.live.trust.certificates import read_certificate, read_key

FILE, GUESTS = files.INVITATION, "guests"  # and the folder of those that an agent has accepted
BYTES_MAX = 2**16


class Invitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"index": "place"}):
    run: str  # the digest of its settings
    name: str
    host: str
    port: int
    index: int
    near: tuple[str, ...]  # its neighbours
    after: tuple[str, ...]  # one per token: who sends it on to the newcomer; "" where it has no place on the way


class _Signed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    invitation: Invitation
    signature: str


def sign(invitation: Invitation, authority_folder: Path) -> bytes:
    signature = read_key(authority_folder / identity.KEY).sign(_content(invitation), ec.ECDSA(hashes.SHA256()))
    return msgspec.json.format(msgspec.json.encode(_Signed(invitation, signature.hex())), indent=1) + b"\n"


def read(data: bytes, authority: x509.Certificate) -> Invitation:
    """The invitation, if this authority signed it; otherwise an error that says why."""
    try:
        if len(data) > BYTES_MAX:
            raise AmbleError(f"an invitation of {len(data)} bytes was given; none has more than {BYTES_MAX}.")
        signed = msgspec.json.decode(data, type=_Signed)
        key = authority.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        key.verify(bytes.fromhex(signed.signature), _content(signed.invitation), ec.ECDSA(hashes.SHA256()))
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, InvalidSignature) as error:
        if isinstance(error, AmbleError):
            raise
        why = "its signature is wrong" if isinstance(error, InvalidSignature) else str(error)
        raise AmbleError(
            f"this is not an invitation by the run's authority ({why}); use the one that amble join made."
        ) from error
    invitation = signed.invitation
    if not (toml.name.fits(invitation.name) and toml.host.fits(invitation.host) and toml.port.fits(invitation.port)):
        raise AmbleError(f"the invitation of {invitation.name!r} names no agent at a host and port; make a new one.")
    return invitation


def kept(folder: Path, authority_file: str = identity.AUTHORITY) -> Iterator[Invitation]:
    """Those that an agent has let in, or the authority has invited, by their indices; each is checked again."""
    if not (folder / GUESTS).is_dir():
        return
    authority = read_certificate(folder / authority_file)
    invitations = []
    for path in sorted((folder / GUESTS).glob("*.json")):
        try:
            invitations.append(read(path.read_bytes(), authority))
        except (AmbleError, OSError) as error:
            raise AmbleError(f"{path} cannot be used: {error} Move it away if it is not of this run.") from error
    yield from sorted(invitations, key=lambda invitation: invitation.index)


def keep(folder: Path, name: str, data: bytes) -> None:
    """It is completely on the disk before anybody is told."""
    (folder / GUESTS).mkdir(mode=0o700, exist_ok=True)
    part = folder / GUESTS / f".{name}.part"
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(folder / GUESTS / f"{name}.json")
    handle = os.open(folder / GUESTS, os.O_RDONLY)
    try:
        os.fsync(handle)  # its name, too
    finally:
        os.close(handle)


def _content(invitation: Invitation) -> bytes:
    return msgspec.json.encode(invitation)
