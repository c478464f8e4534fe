"""Checks whether an agent could start and reach its neighbours. Nothing is written."""

import contextlib
import shutil
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from amble.data.datasets import count
from amble.errors import AmbleError, few, need
from amble.files import ending
from amble.live import process, status
from amble.live.formats.shape import Shape
from amble.live.journal import file as journal_file
from amble.live.journal.rows import Rows
from amble.live.records.collect import JOURNAL
from amble.live.settings.agent_config import AgentConfig, Peer
from amble.live.transport.sockets import check_free
from amble.live.trust import certificates, identity
from amble.losses.objective import Objective
from amble.survey.document import to_bytes

DIAL_S = 3.0  # for a connection, and then for the handshake
# In TLS 1.3 one that does not take our certificate says so after our handshake is over: so long at least is waited for
# it, and so many times as long as the connection took, over a slow link.
REFUSAL_S, REFUSAL_CONNECTIONS = 2.0, 4

Outcome = Literal["ok", "note", "wrong"]


class Check(NamedTuple):
    """The result of one check. A note is not an error, but worth knowing."""

    what: str
    outcome: Outcome
    sentence: str


def check(folder: Path, data: Path | None = None) -> Iterator[Check]:
    """All checks; without valid settings, no other check is possible."""
    try:
        need("zenoh", "live")
        config = AgentConfig.read(folder)
    except AmbleError as error:
        yield Check("settings", "wrong", str(error))
        return
    yield Check("settings", "ok", f"{config.name} in run {config.run}, with {config.method.label}")
    said = status.read(folder)
    runs = said.state in status.RUNNING and process.condition(said.process) == "runs"
    yield from _tried("certificate", lambda: _certificate(folder, config))
    objective: list[Any] = []
    yield from _tried("data", lambda: _data(folder, config, data, objective))
    if objective:
        yield from _tried("journal", lambda: _journal(folder, config, objective[0], runs))
    yield from _tried("port", lambda: _port(config, runs))
    with ThreadPoolExecutor(max_workers=16) as pool:
        for peer, result in zip(
            config.neighbours, pool.map(lambda p: _dial(folder, p), config.neighbours), strict=True
        ):
            yield Check(f"neighbour {peer.name}", *result)


def _tried(what: str, look: Callable[[], Iterator[tuple[Outcome, str]]]) -> Iterator[Check]:
    try:
        for outcome, sentence in look():
            yield Check(what, outcome, sentence)
    except AmbleError as error:
        yield Check(what, "wrong", str(error))


def _certificate(folder: Path, config: AgentConfig) -> Iterator[tuple[Outcome, str]]:
    soon = identity.check(folder, config.name, datetime.now(UTC))
    certificate = certificates.read_certificate(folder / identity.CERTIFICATE)
    hosts = certificates.alternatives(certificate)
    if config.host not in hosts:
        raise AmbleError(
            f"{folder / identity.CERTIFICATE} is for {', '.join(hosts)}, and neighbours connect to {config.host}, so "
            "they would refuse it; make a new one with amble init --renew."
        )
    yield from (("note", warning) for warning in soon)
    until = f"{certificate.not_valid_after_utc:%Y-%m-%d}"
    yield "ok", f"signed by the run's authority, for {config.name} at {config.host}, until {until}; its key matches"


def _data(folder: Path, config: AgentConfig, data: Path | None, made: list[Any]) -> Iterator[tuple[Outcome, str]]:
    path = data if data is not None else config.data_path(folder)
    if config.surveyed is not None:
        table, held_out = config.tables(folder, path)
        size = len(to_bytes(config.surveyed.wanted.describe(table)))
        if size > config.surveyed.bytes_max:
            raise AmbleError(f"its description takes {size:,} bytes, and [survey] bytes_max is less; raise it there.")
        if config.agreement is not None:
            made.append(config.objective_in(folder) if data is None else config.objective_of(table))
        rows = f"{len(table.columns[0].cells):,} rows, {len(table.columns):,} columns with the target"
        held = "" if held_out is None else f", {len(held_out.columns[0].cells):,} rows to test on"
        yield "ok", f"{rows}{held}; its description for the survey has {size:,} bytes"
        return
    X, y, extra, ignored = config.model.read_all(path)
    made.append(config.objective(X, y, extra))
    if ignored:
        yield "note", f"the columns {few(ignored)} are not in the run's model and are ignored"
    yield "ok", f"{len(y):,} rows, {config.model.width:,} columns, all finite; {config.model.task}"


def _journal(folder: Path, config: AgentConfig, objective: Objective, runs: bool) -> Iterator[tuple[Outcome, str]]:
    """A copy of it: SQLite may write beside a file that it only reads."""
    path = folder / JOURNAL
    if not path.exists():
        yield "ok", "none yet: the agent begins as a new one"
        return
    if runs:
        yield "note", "in use: the agent runs"
        return
    visits = config.visits()
    shape = Shape(config.digest, config.agents, config.method.tokens, visits.parcel(0), config.room, short=visits.short)
    rows = Rows.of(shape, visits, objective)
    about = {"run": shape.digest, "layout": f"{shape.fingerprint.hex()} {rows.digest}", "agent": config.name}
    with tempfile.TemporaryDirectory() as aside:
        for file in (path, ending(path, "-wal")):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(file, Path(aside) / file.name)
        try:
            kept = journal_file.check(Path(aside) / JOURNAL, rows, about)
        except AmbleError as error:
            raise AmbleError(str(error).replace(aside, str(folder))) from error
    if "left" in kept:
        raise AmbleError(
            f"{config.name} has left this run ({kept['left'].words}); amble join makes a folder for a new one."
        )
    if "stopped" in kept:
        yield (
            "note",
            f"the run has ended ({kept['stopped'].words}); if it is started again, the agent only tells its neighbours",
        )
        return
    yield "ok", f"of this run and agent; it continues after {count(status.read(folder).visits, 'visit')}"


def _port(config: AgentConfig, runs: bool) -> Iterator[tuple[Outcome, str]]:
    if runs:
        yield "note", f"{config.host} port {config.port} is in use: the agent runs"
        return
    check_free(config.host, config.port)
    yield "ok", f"{config.host} port {config.port} is free"


def _dial(folder: Path, peer: Peer) -> tuple[Outcome, str]:
    """A handshake as Zenoh makes it, and nothing after it."""
    where = f"{peer.host} port {peer.port}"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(folder / identity.AUTHORITY)
        context.load_cert_chain(folder / identity.CERTIFICATE, folder / identity.KEY)
    except OSError as error:
        return "wrong", f"not contacted, because the certificate of this agent cannot be used ({error})"
    begun_s = time.monotonic()
    try:
        connection = socket.create_connection((peer.host, peer.port), DIAL_S)
    except OSError as error:
        return "note", f"not up yet, or {where} cannot be reached ({error.strerror or error})"
    connect_s = time.monotonic() - begun_s
    try:
        with connection, context.wrap_socket(connection, server_hostname=peer.host) as link:
            subject = dict(pair for part in (link.getpeercert() or {}).get("subject", ()) for pair in part)  # type: ignore[misc]
            link.settimeout(max(REFUSAL_S, REFUSAL_CONNECTIONS * connect_s))
            with contextlib.suppress(TimeoutError):  # it waits for us to begin: that is right
                if not link.recv(1):
                    return "wrong", f"{where} closed the connection; is its folder of the same amble init?"
    except ssl.SSLCertVerificationError as error:
        return "wrong", f"{where} shows a wrong certificate ({error.verify_message}); is it of the same amble init?"
    except ssl.SSLError as error:
        return "wrong", f"{where} refuses the handshake ({error.reason}); is it an agent of the same amble init?"
    except OSError as error:
        return "note", f"{where} accepts connections, but does not answer ({error.strerror or error})"
    if subject.get("commonName") != peer.name:
        return "wrong", f"{where} is {subject.get('commonName')!r}; do two agents have the same address?"
    return "ok", f"{where} answers, with its own certificate"
