"""Certificates, free ports and processes for tests of live agents."""

import contextlib
import datetime
import ipaddress
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from amble.live.cluster.ports import reserve

HOST = "127.0.0.1"
WITHIN_S = 60.0  # for what an agent is to say: it takes a moment, and longer on a machine that is busy
# Below the ports that the kernel hands out to those who dial; a range for each process that runs tests.
PORTS = itertools.cycle(range(20_000 + os.getpid() % 120 * 100, 20_100 + os.getpid() % 120 * 100))


class Authority(NamedTuple):
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, name="run"):
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, name, key, days=1).add_extension(x509.BasicConstraints(True, 0), critical=True)
        return cls(key, builder.sign(key, hashes.SHA256()))

    def issue(self, folder, name, days=1, host=HOST):
        """Write an agent's authority.pem, certificate.pem and key.pem; with days below 0 it has expired."""
        folder.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(host))]
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        authority = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        certificate = (
            _builder(name, authority, key, days)
            .add_extension(x509.BasicConstraints(False, None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        (folder / "authority.pem").write_bytes(self.certificate.public_bytes(pem))
        (folder / "certificate.pem").write_bytes(certificate.public_bytes(pem))
        plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        (folder / "key.pem").write_bytes(key.private_bytes(pem, *plain))
        return folder


def _builder(name, issuer, key, days):
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - (2 * day if days < 0 else day / 24))
        .not_valid_after(now + days * day)
    )


def free_port():
    for port in itertools.islice(PORTS, 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        if reserve(port):
            return port
    raise AssertionError("no free port")


class Agent:
    """A process of live_agent.py, with all that it has said; in a network namespace, where one is named."""

    def __init__(self, address, namespace=""):
        self.address = address
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        command = [*inside, sys.executable, str(Path(__file__).with_name("live_agent.py")), json.dumps(address)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.said = []
        self.more = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.more:
                self.said.append(json.loads(line) | {"at_s": time.monotonic()})
                self.more.notify_all()

    def tell(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()

    def wait(self, since=0, within_s=WITHIN_S, **wanted):
        """The first event after the `since`-th that has all that is wanted."""

        def found():
            return next((event for event in self.said[since:] if wanted.items() <= event.items()), None)

        with self.more:
            last = self.said[since:][-20:]
            assert self.more.wait_for(found, within_s), f"{self.address['name']}: no {wanted}; before it waited: {last}"
            return found()

    def ask(self, to, words="hello", since=None, within_s=WITHIN_S, **command):
        since = len(self.said) if since is None else since
        self.tell(to=to, words=words, **command)
        return self.wait(since, within_s, asked=words)

    def leave(self, within_s=WITHIN_S):
        self.tell(leave=True)
        self.process.stdin.close()
        code = self.process.wait(within_s)
        self.reader.join(within_s)
        return code

    def end(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()


class Ring:
    """The places of agents that stand in a ring, with their certificates."""

    def __init__(self, folder, names, authority=None, **options):
        self.folder, self.names, self.options = folder, names, options
        self.authority = authority or Authority.make()
        self.ports = {name: free_port() for name in names}
        for name in names:
            self.authority.issue(folder / name, name)

    def address(self, name, **changes):
        i, count = self.names.index(name), len(self.names)
        beside = dict.fromkeys([self.names[(i + 1) % count], self.names[i - 1]])
        links = [(other, HOST, self.ports[other]) for other in beside if other != name]
        address = {"name": name, "host": HOST, "port": self.ports[name], "neighbours": links, "run": "run1"}
        return address | files(self.folder / name) | self.options | changes


def files(folder):
    return {kind: str(folder / f"{kind}.pem") for kind in ("authority", "certificate", "key")}
