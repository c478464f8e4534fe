"""Identities: one authority per run, which signs a certificate with each agent's name.

The authority's key stays in its own folder and is never copied. An agent's folder holds its own key, its certificate
and the authority's certificate, by which it knows the others.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from amble.errors import AmbleError, is_number
from amble.live.trust import certificates
from amble.live.trust.certificates import common_name, read_certificate, read_key
from amble.live.trust.files import AUTHORITY as AUTHORITY
from amble.live.trust.files import CERTIFICATE as CERTIFICATE
from amble.live.trust.files import KEY as KEY

SOON = timedelta(days=30)
DAYS_MAX, AUTHORITY_DAYS_MAX = 3650, 36_500


def make_authority(folder: Path, run_name: str, days: int, now: datetime | None = None) -> None:
    """A new authority: its key and its certificate, signed by itself."""
    check_days(days, AUTHORITY_DAYS_MAX)
    _refuse_taken(folder, "give another folder")
    key = certificates.new_key()
    certificate = certificates.of_authority(key, run_name, days, _time(now))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificates.write_key(folder / KEY, key)
    certificates.write_certificate(folder / CERTIFICATE, certificate)


def issue(
    authority_folder: Path,
    agent_name: str,
    hosts: Iterable[str],
    folder: Path,
    days: int,
    now: datetime | None = None,
) -> None:
    """A new key and certificate for an agent that others reach at these host names and addresses."""
    check_days(days)
    _refuse_taken(folder, "amble init --renew makes new ones")
    authority, signer = read_certificate(authority_folder / CERTIFICATE), read_key(authority_folder / KEY)
    _check_pair(authority, signer, authority_folder)
    left = (authority.not_valid_after_utc - _time(now)).days
    if days > left:
        advice = f"give at most {left}" if left > 0 else "make a new bundle with amble init"
        raise AmbleError(
            f"days={days} was given, and the authority in {authority_folder} ends on "
            f"{authority.not_valid_after_utc:%Y-%m-%d}; {advice}."
        )
    key = certificates.new_key()
    certificate = certificates.of_agent(key, agent_name, hosts, days, _time(now), authority, signer)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    certificates.write_key(folder / KEY, key)
    certificates.write_certificate(folder / CERTIFICATE, certificate)
    certificates.write_certificate(folder / AUTHORITY, authority)


def valid_until_s(folder: Path) -> float | None:
    """When an agent's certificate ends, in seconds since 1970; None where it cannot be read."""
    try:
        return read_certificate(folder / CERTIFICATE).not_valid_after_utc.timestamp()
    except (AmbleError, OSError):
        return None


def renew(
    authority_folder: Path, hosts: Mapping[str, Iterable[str]], bundle: Path, days: int, now: datetime | None = None
) -> None:
    """New keys and certificates of the same authority for these agents, in their folders of the bundle.

    All are first made elsewhere, so that an error happens before any agent's files are replaced.
    """
    for folder in (bundle, *(bundle / name for name in hosts)):
        if folder.exists() and not os.access(folder, os.W_OK):
            raise AmbleError(f"nothing can be written to the folder {folder}; run as the user who owns it.")
    aside = Path(tempfile.mkdtemp(prefix=".renew-", dir=bundle))
    try:
        for name, reached_at in hosts.items():
            issue(authority_folder, name, reached_at, aside / name, days, now)
        for name in hosts:
            (bundle / name).mkdir(mode=0o700, exist_ok=True)
            for file in (KEY, CERTIFICATE, AUTHORITY):
                os.replace(aside / name / file, bundle / name / file)
    finally:
        shutil.rmtree(aside)


def check(folder: Path, agent_name: str, now: datetime) -> list[str]:
    """What will soon be wrong with an agent's certificate, in sentences; what is wrong now is an error."""
    certificate, authority = read_certificate(folder / CERTIFICATE), read_certificate(folder / AUTHORITY)
    _check_pair(certificate, read_key(folder / KEY), folder)
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature) as error:
        raise AmbleError(
            f"{folder / CERTIFICATE} is not signed by the authority of {folder / AUTHORITY}; copy both from the same "
            "bundle of amble init."
        ) from error
    name = common_name(certificate)
    if name != agent_name:
        raise AmbleError(
            f"{folder / CERTIFICATE} is for the agent {name!r}, and this is {agent_name!r}; copy the folder "
            f"{agent_name} of the bundle to this machine."
        )
    now = now.astimezone(UTC)
    own = _check_time(certificate, folder / CERTIFICATE, now, "make a new one with amble init --renew")
    return own + _check_time(authority, folder / AUTHORITY, now, "make a new bundle with amble init")


def _check_time(certificate: x509.Certificate, path: Path, now: datetime, advice: str) -> list[str]:
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    clock = f"and this machine's clock says {_moment(now)}"
    if now < begin:
        raise AmbleError(f"{path} is valid from {_moment(begin)} on, {clock}; correct the clock, or {advice}.")
    if now > end:
        raise AmbleError(f"{path} ended on {_moment(end)}, {clock}; {advice}, or correct the clock.")
    return [f"{path} ends on {end:%Y-%m-%d}; {advice} before then."] if end - now <= SOON else []


def check_days(days: int, most: int = DAYS_MAX) -> None:
    if not (is_number(days) and isinstance(days, int) and 1 <= days <= most):
        raise AmbleError(f"days={days!r} was given; certificates are valid for 1 to {most} whole days.")


def _refuse_taken(folder: Path, advice: str) -> None:
    for file in (KEY, CERTIFICATE):
        if (folder / file).exists():
            raise AmbleError(f"there is a {file} in {folder} already; {advice}.")


def _check_pair(certificate: x509.Certificate, key: certificates.Key, folder: Path) -> None:
    if certificate.public_key() != key.public_key():
        raise AmbleError(
            f"the key {folder / KEY} does not belong to {folder / CERTIFICATE}; copy both from the same bundle, or "
            "make new ones with amble init --renew."
        )


def _time(now: datetime | None) -> datetime:
    """In whole seconds, as certificates have it."""
    return (now or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0)


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
