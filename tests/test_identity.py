"""Certificates, judged by others: the openssl command, and Python's ssl module in real handshakes."""

import os
import shutil
import socket
import ssl
import stat
import subprocess
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from amble.errors import AmbleError
from amble.live.trust import identity

NOW = datetime.now(UTC)
OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="the openssl command is not here")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run with two agents, and another run with an agent of the same name; not to be changed."""
    base = tmp_path_factory.mktemp("identity")
    long_ago = NOW - timedelta(days=100)
    for run in ("plant", "other"):
        identity.make_authority(base / run / "authority", run, 1000, now=long_ago)
    for name in ("north", "south"):
        identity.issue(base / "plant/authority", name, ["localhost", "127.0.0.1"], base / "plant" / name, 365)
    identity.issue(base / "other/authority", "north", ["localhost"], base / "other/north", 365)
    identity.issue(base / "plant/authority", "north", ["localhost"], base / "plant/old", 30, now=long_ago)
    identity.issue(base / "plant/authority", "north", ["localhost"], base / "plant/early", 30, now=NOW + timedelta(9))
    return base


@pytest.fixture
def north(made, tmp_path):
    """The first agent's folder, to be spoilt."""
    return Path(shutil.copytree(made / "plant/north", tmp_path / "north"))


def refused(sentence):
    return pytest.raises(AmbleError, match=sentence)


def openssl(*words):
    return subprocess.run([OPENSSL, *map(str, words)], capture_output=True, text=True, timeout=60, check=False)


# --- openssl ---------------------------------------------------------------------------------------------------------


@needs_openssl
def test_openssl_verifies_the_chain_for_both_ends_of_a_link_and_no_foreign_one(made):
    folder = made / "plant/north"
    for purpose in ("sslserver", "sslclient"):
        words = ("verify", "-x509_strict", "-purpose", purpose, "-CAfile")
        done = openssl(*words, folder / "authority.pem", folder / "certificate.pem")
        assert done.returncode == 0, done.stderr
        assert openssl(*words, made / "other/north/authority.pem", folder / "certificate.pem").returncode != 0
    for host, right in (("localhost", 0), ("north", 0), ("south", 2)):
        words = ("verify", "-verify_hostname", host, "-CAfile")
        assert openssl(*words, folder / "authority.pem", folder / "certificate.pem").returncode == right
    done = openssl("verify", "-verify_ip", "127.0.0.1", "-CAfile", folder / "authority.pem", folder / "certificate.pem")
    assert done.returncode == 0


@needs_openssl
def test_openssl_reads_in_it_what_was_asked_for(made):
    shown = openssl("x509", "-in", made / "plant/north/certificate.pem", "-noout", "-text").stdout
    for words in (
        "Issuer: O = amble, CN = plant",
        "Subject: CN = north",
        "NIST CURVE: P-256",
        "CA:FALSE",
        "Digital Signature\n",
        "TLS Web Client Authentication, TLS Web Server Authentication",
        "DNS:localhost, IP Address:127.0.0.1, DNS:north",
    ):
        assert words.replace(" ", "") in shown.replace(" ", "")
    shown = openssl("x509", "-in", made / "plant/authority/certificate.pem", "-noout", "-text").stdout
    assert "CA:TRUE, pathlen:0" in shown
    assert "Certificate Sign, CRL Sign" in shown


@needs_openssl
def test_an_agents_certificate_signs_no_other(made, tmp_path):
    """Somebody with an agent's folder cannot make more agents."""
    identity.make_authority(tmp_path / "stranger", "plant", 10)
    shutil.copy(made / "plant/north/key.pem", tmp_path / "stranger/key.pem")
    shutil.copy(made / "plant/north/certificate.pem", tmp_path / "stranger/certificate.pem")
    identity.issue(tmp_path / "stranger", "south", ["localhost"], tmp_path / "forged", 5)
    words = (
        "verify",
        "-CAfile",
        made / "plant/north/authority.pem",
        "-untrusted",
        made / "plant/north/certificate.pem",
    )
    assert openssl(*words, tmp_path / "forged/certificate.pem").returncode != 0


def test_it_is_valid_from_one_hour_back(made):
    held = ssl._ssl._test_decode_cert(str(made / "plant/north/certificate.pem"))
    begin, end = (ssl.cert_time_to_seconds(held[key]) for key in ("notBefore", "notAfter"))
    written_s = (made / "plant/north/certificate.pem").stat().st_mtime
    assert abs(begin - (written_s - 3600)) < 60
    assert end - begin == 365 * 86400 + 3600


# --- handshakes ------------------------------------------------------------------------------------------------------


def shake_hands(server, client, authority, host="localhost"):
    """Mutual TLS between two folders (client None: without a certificate); the words of who refused, or ""."""
    ours, theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ours.verify_mode = ssl.CERT_REQUIRED
    for context, folder in ((ours, server), (theirs, client)):
        context.load_verify_locations(authority / "authority.pem")
        if folder is not None:
            context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    one, other = socket.socketpair()
    said = []

    def listen():
        try:
            with ours.wrap_socket(one, server_side=True) as link:
                said.append(dict(pair[0] for pair in link.getpeercert()["subject"])["commonName"])
                link.sendall(b"hello")
        except OSError as error:
            said.append(str(error))
            one.close()

    one.settimeout(20)
    other.settimeout(20)
    thread = threading.Thread(target=listen)
    thread.start()
    try:
        with theirs.wrap_socket(other, server_hostname=host) as link:
            heard = link.recv(5)
    except OSError as error:
        heard = str(error)
        other.close()
    thread.join()
    return "" if heard == b"hello" else f"{heard} / {said[0]}", said[0]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "south"])
def test_agents_of_a_run_shake_hands_and_know_each_others_names(made, host):
    run = made / "plant"
    assert shake_hands(run / "south", run / "north", run / "south", host) == ("", "north")


@pytest.mark.parametrize(
    ("server", "client", "host", "sentence"),
    [
        ("plant/south", "other/north", "localhost", "certificate verify failed"),
        ("plant/south", None, "localhost", "peer did not return a certificate"),
        ("plant/south", "plant/old", "localhost", "certificate has expired"),
        ("plant/south", "plant/early", "localhost", "not yet valid"),
        ("plant/old", "plant/south", "localhost", "certificate has expired"),
        ("other/north", "plant/south", "localhost", "certificate verify failed"),
        ("plant/south", "plant/north", "elsewhere", "Hostname mismatch"),
        ("plant/south", "plant/north", "127.0.0.2", "IP address mismatch"),
    ],
)
def test_others_are_refused_at_the_handshake(made, server, client, host, sentence):
    words, _ = shake_hands(made / server, None if client is None else made / client, made / "plant/south", host)
    assert sentence in words


# --- check -----------------------------------------------------------------------------------------------------------


def test_a_good_folder_has_nothing_to_say(north):
    assert identity.check(north, "north", NOW) == []


@pytest.mark.parametrize("file", ["certificate.pem", "key.pem", "authority.pem"])
def test_a_file_that_is_missing_or_broken_is_named(north, file):
    whole = (north / file).read_bytes()
    (north / file).write_bytes(whole[: len(whole) // 2])
    with refused(rf"{file} is not a whole (certificate|key); copy it again"):
        identity.check(north, "north", NOW)
    (north / file).unlink()
    with refused(rf"there is no (certificate|key) .*{file}; copy the whole folder"):
        identity.check(north, "north", NOW)


def test_a_key_of_another_kind_is_refused(north):
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    key = ed25519.Ed25519PrivateKey.generate()
    form = serialization.PrivateFormat.PKCS8
    content = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (north / "key.pem").write_bytes(content)
    with refused("a key of another kind"):
        identity.check(north, "north", NOW)


def test_a_key_and_a_certificate_that_do_not_belong_together(made, north):
    shutil.copy(made / "plant/south/key.pem", north / "key.pem")
    with refused("key.pem does not belong to .*certificate.pem; copy both from the same bundle"):
        identity.check(north, "north", NOW)


def test_a_certificate_of_another_authority(made, north):
    shutil.copy(made / "other/north/authority.pem", north / "authority.pem")
    with refused("is not signed by the authority of .*authority.pem; copy both"):
        identity.check(north, "north", NOW)


def test_a_certificate_for_another_agent(north):
    with refused("is for the agent 'north', and this is 'south'; copy the folder south"):
        identity.check(north, "south", NOW)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_read_or_change_is_refused(north, mode):
    (north / "key.pem").chmod(mode)
    with refused(rf"can be read or changed by others \(mode {mode:o}\); run: chmod 600 .*key.pem"):
        identity.check(north, "north", NOW)


def test_time_before_after_and_near_the_end(north):
    with refused(
        r"is valid from 20\d\d-.* UTC on, and this machine's clock says 2001-02-03 04:05 UTC; correct the clock"
    ):
        identity.check(north, "north", datetime(2001, 2, 3, 4, 5, tzinfo=UTC))
    late = NOW + timedelta(days=366)
    with refused(rf"ended on {NOW + timedelta(days=365):%Y-%m-%d} .*clock says {late:%Y-%m-%d} .*amble init --renew"):
        identity.check(north, "north", late)
    assert identity.check(north, "north", NOW + timedelta(days=334)) == []
    words = f"ends on {NOW + timedelta(days=365):%Y-%m-%d}; make a new one with amble init --renew before then."
    (said,) = identity.check(north, "north", NOW + timedelta(days=336))
    assert said.endswith(words)


def test_an_authority_that_ends_soon_or_has_ended(tmp_path):
    identity.make_authority(tmp_path / "authority", "plant", 20)
    identity.issue(tmp_path / "authority", "north", ["localhost"], tmp_path / "north", 5)
    own, authority = identity.check(tmp_path / "north", "north", NOW)
    assert "certificate.pem" in own
    assert "authority.pem" in authority
    assert "make a new bundle with amble init before" in authority
    with refused(r"days=30 was given, and the authority in .* ends on .*; give at most (19|20)\."):
        identity.issue(tmp_path / "authority", "north", ["localhost"], tmp_path / "more", 30)
    with refused("make a new bundle with amble init"):
        identity.issue(tmp_path / "authority", "north", [], tmp_path / "more", 1, now=NOW + timedelta(days=50))
    assert not (tmp_path / "more").exists()


# --- files -----------------------------------------------------------------------------------------------------------


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_keys_are_never_readable_by_others_not_even_while_they_are_made(tmp_path, monkeypatch):
    opened, write = [], os.fdopen

    def look(number, *rest):
        opened.append(stat.S_IMODE(os.fstat(number).st_mode))  # as it is before a byte is in it
        return write(number, *rest)

    monkeypatch.setattr(os, "fdopen", look)
    before = os.umask(0)
    try:
        identity.make_authority(tmp_path / "authority", "plant", 100)
        identity.issue(tmp_path / "authority", "north", ["localhost"], tmp_path / "north", 5)
    finally:
        os.umask(before)
    assert opened == [0o600, 0o600]
    for name in ("authority", "north"):
        assert mode_of(tmp_path / name / "key.pem") == 0o600
        assert mode_of(tmp_path / name) == 0o700
    with refused("can be read or changed by others"):
        (tmp_path / "authority/key.pem").chmod(0o644)
        identity.issue(tmp_path / "authority", "south", ["localhost"], tmp_path / "south", 5)
    assert not (tmp_path / "south").exists()


def test_the_authoritys_key_is_in_no_agents_folder(made):
    key = (made / "plant/authority/key.pem").read_bytes()
    assert all(path.read_bytes() != key for path in (made / "plant/north").iterdir())
    assert sorted(path.name for path in (made / "plant/north").iterdir()) == [
        "authority.pem", "certificate.pem", "key.pem",
    ]  # fmt: skip


def test_nothing_is_written_over(made):
    with refused("there is a key.pem in .*authority already; give another folder"):
        identity.make_authority(made / "plant/authority", "plant", 10)
    with refused("there is a key.pem in .*north already; amble init --renew"):
        identity.issue(made / "plant/authority", "north", ["localhost"], made / "plant/north", 10)


@pytest.mark.parametrize("days", [0, -1, 3651, 1.5, True, "9"])
def test_days_must_be_a_whole_number_within_bounds(made, tmp_path, days):
    with refused(r"days=.* was given; certificates are valid for 1 to 3650 whole days"):
        identity.issue(made / "plant/authority", "north", ["localhost"], tmp_path / "north", days)


def test_renewed_agents_trust_those_that_are_not_renewed_yet(made, tmp_path):
    run = Path(shutil.copytree(made / "plant", tmp_path / "plant"))
    old = {file: (run / "north" / file).read_bytes() for file in ("key.pem", "certificate.pem", "authority.pem")}
    identity.renew(run / "authority", {"north": ["localhost"], "west": ["localhost"]}, run, 200)
    fresh = {file: (run / "north" / file).read_bytes() for file in old}
    assert fresh["authority.pem"] == old["authority.pem"]
    assert fresh["key.pem"] != old["key.pem"]
    assert mode_of(run / "north/key.pem") == 0o600
    assert identity.check(run / "north", "north", NOW + timedelta(days=100)) == []
    assert shake_hands(run / "north", run / "south", run / "south") == ("", "south")
    assert shake_hands(run / "south", run / "west", run / "north") == ("", "west")
    assert not list(run.glob(".renew*"))


def test_a_renewal_that_fails_leaves_everything_as_it_was(made, tmp_path):
    run = Path(shutil.copytree(made / "plant", tmp_path / "plant"))
    before = {path: path.read_bytes() for path in run.rglob("*.pem")}
    with refused("the authority in .* ends on"):
        identity.renew(run / "authority", {"north": ["localhost"], "south": ["localhost"]}, run, 3650)
    assert {path: path.read_bytes() for path in run.rglob("*.pem")} == before
    assert not list(run.glob(".renew*"))
