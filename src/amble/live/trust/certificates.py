"""Certificates and keys: their content and their files. identity.py decides who gets which."""

import ipaddress
import os
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from amble.errors import AmbleError

BACK = timedelta(hours=1)  # certificates count from this long ago, for machines whose clocks are a little behind
USES = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only")  # fmt: skip

Key = ec.EllipticCurvePrivateKey


def new_key() -> Key:
    return ec.generate_private_key(ec.SECP256R1())


def of_authority(key: Key, run_name: str, days: int, now: datetime) -> x509.Certificate:
    """Signed by itself; it may sign agents' certificates, and no other authority's."""
    organisation = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "amble")
    name = x509.Name([organisation, x509.NameAttribute(NameOID.COMMON_NAME, run_name)])
    builder = _begin(name, name, key, days, now)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.add_extension(_only("key_cert_sign", "crl_sign"), critical=True).sign(key, hashes.SHA256())


def of_agent(
    key: Key, agent_name: str, hosts: Iterable[str], days: int, now: datetime, authority: x509.Certificate, signer: Key
) -> x509.Certificate:
    """For both ends of a link, at these host names and addresses."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, agent_name)])
    builder = _begin(name, authority.subject, key, days, now)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_only("digital_signature"), critical=True)
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    names = [_alternative(host) for host in dict.fromkeys([*hosts, agent_name])]
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    return builder.add_extension(issuer, critical=False).sign(signer, hashes.SHA256())


def _begin(subject: x509.Name, issuer: x509.Name, key: Key, days: int, now: datetime) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - BACK).not_valid_after(now + timedelta(days=days))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)


def _only(*uses: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{use: use in uses for use in USES})


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def common_name(certificate: x509.Certificate) -> str:
    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def alternatives(certificate: x509.Certificate) -> list[str]:
    """The host names and addresses that it is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in names]


def write_certificate(path: Path, certificate: x509.Certificate) -> None:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def write_key(path: Path, key: Key) -> None:
    """The file is created with this mode: nobody else can open it at any moment."""
    content = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(_content(path, "certificate"))
    except ValueError as error:
        if isinstance(error, AmbleError):
            raise
        raise AmbleError(f"{path} is not a whole certificate; copy it again from the bundle of amble init.") from error


def read_key(path: Path) -> Key:
    """The key, which nobody but its owner may be able to read."""
    content = _content(path, "key")
    mode = path.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        raise AmbleError(f"the key {path} can be read or changed by others (mode {mode:o}); run: chmod 600 {path}")
    try:
        key = serialization.load_pem_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise AmbleError(f"{path} is not a whole key; copy it again from the bundle of amble init.") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise AmbleError(f"{path} is a key of another kind than amble init makes; copy it again from its bundle.")
    return key


def _content(path: Path, what: str) -> bytes:
    if not path.is_file():
        raise AmbleError(f"there is no {what} {path}; copy the whole folder that amble init made.")
    try:
        return path.read_bytes()
    except OSError as error:
        sentence = f"the {what} {path} cannot be read ({error.strerror}); run as the user who owns it."
        raise AmbleError(sentence) from error
