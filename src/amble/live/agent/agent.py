"""One agent from start to end: it checks everything, runs, and returns an exit code."""

import contextlib
import gc
import logging
import os
import signal
import sys
import threading
import time
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from amble.errors import AmbleError
from amble.live import status
from amble.live.agent.ended import file_digest
from amble.live.agent.node import Node
from amble.live.agent.private import PRIVATE
from amble.live.agent.stages import LiveCourse, Surveyed, Training
from amble.live.journal.file import InUse, in_use
from amble.live.model.own import deterministic
from amble.live.process import apart, condition, this_process
from amble.live.records.collect import JOURNAL
from amble.live.settings.agent_config import FILE, AgentConfig
from amble.live.transport import Open
from amble.live.transport.address import Address, Link
from amble.live.transport.sockets import more_files
from amble.live.transport.zenoh import engine_log
from amble.live.transport.zenoh.transport import ZenohTransport
from amble.live.trust import files
from amble.progress import Flag

OPEN: Open = ZenohTransport.open  # the transport of all agents
GRACE_S = 10.0  # how long an agent whose leash has ended may take to end by itself

log = logging.getLogger("amble.live")


class Ended(Enum):
    """How an agent has ended, as its exit code. After a signal it is 128 plus the signal's number, as in a shell."""

    WELL = 0  # with its model, or it has left
    WITHOUT_A_MODEL = 3  # the run has ended, so starting the agent again does not help
    INTERRUPTED = 130
    TERMINATED = 143
    RESTARTS = -1  # not an end: see run_agent


def run_agent(folder: Path, data: Path | None = None, leash: bool = False, again: bool = False) -> Ended:
    """Everything is checked before the agent joins the run.

    When its links must be made again, it restarts from its journal, as after a crash. It does so in a new process: a
    Zenoh session that is closed while a neighbour connects may keep that link, and the neighbour then trusts a dead
    link. `again`: this is such a restart. Why an agent did not start is in its status, too.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    try:
        return _run_agent(folder, data, leash, again)
    except AmbleError as error:
        _say_why(folder, str(error))
        raise


def _say_why(folder: Path, reason: str) -> None:
    """Write this into the status of an agent's folder, unless it belongs to another running process, or the agent has
    left."""
    said, mine = status.read(folder), this_process()
    ran = said.process == mine and said.state == "stopped"  # and failed later
    taken = said.process != mine and said.state in status.RUNNING and condition(said.process) in ("runs", "frozen")
    if taken or said.state == "left" or not (folder / FILE).is_file():
        return
    state: status.State = "stopped" if ran else "refused"
    now = {"name": said.name or folder.name, "time_s": time.time(), "process": mine, "state": state, "reason": reason}
    none = {"up": (), "down": (), "waits": (), "hops_per_s": 0.0}
    with contextlib.suppress(OSError):  # the caller is told in any case
        status.write(folder, status.changed(said, format=status.FORMAT, **now, **none))


def _run_agent(folder: Path, data: Path | None, leash: bool, again: bool) -> Ended:
    more_files()
    config = AgentConfig.read(folder, agreed=False)
    _check_not_running(folder, config.name)
    for warning in apart(_certificate_warnings, folder, config.name):
        log.warning("%s", warning)
    course = course_of(config, folder, data)
    with deterministic():
        return _take_part(config, folder, course, leash, again)


def _take_part(config: AgentConfig, folder: Path, course: LiveCourse, leash: bool, again: bool) -> Ended:
    engine_log.listen()  # so that whoever is refused at the handshake is in our log, too
    ending = End(leash)
    try:
        node = ending.node = Node(config, folder, course, ending.asked)
    except InUse as error:  # by a process that was started at the same time
        raise _already_running(folder, config.name) from error
    gc.freeze()  # what is loaded by now stays: no collection, of which a busy agent makes many, looks through it again
    had_ended = node.core.ending is not None
    _run(node, address_of(config, folder, course.bytes_max), folder, again)
    if node.sequence.refused:
        raise AmbleError(node.sequence.refused)
    end, left = node.core.ending, node.core.left
    if node.restarts and not (end or left or ending.asked.is_set()):
        engine_log.end()
        return Ended.RESTARTS
    if left:
        log.info("%s has left the run: %s", config.name, left.words)
        return Ended.WELL
    if end is None:
        log.info("%s was told to stop before the run ended; start it again, and it continues", config.name)
        if node.model() is None:
            log.info("%s has no model yet and wrote none: no token has come to it from another agent", config.name)
        return ending.how
    if not had_ended:
        log.info("the run has ended: %s", end.words)
    if config.surveyed is not None and not config.surveyed.train:
        return Ended.WELL
    if node.model() is None:
        why, todo = "no token has come to it from another agent", "use the model of another agent"
        if node.trained is None:
            why, todo = "the run was ended in its opening survey", "start a new run"
        if node.core.likely_cause:
            why, todo = "the run has diverged", f"change what caused it, and train again: {node.core.likely_cause}"
        level = PRIVATE if node.core.likely_cause else logging.ERROR
        log.log(level, "%s has no model and wrote none, because %s; %s", config.name, why, todo)
        return Ended.WITHOUT_A_MODEL
    if node.trained is not None and node.trained.missing:  # not of the closing survey, which may lack others
        log.warning("the model does NOT have the data of %s", ", ".join(node.trained.missing))
    if not node.made and not had_ended:
        log.warning("the others continued and ended without this agent: use the model of one of them, because this one "
                    "is as old as the last visit")  # fmt: skip
    return Ended.WELL


def _certificate_warnings(folder: Path, name: str) -> list[str]:
    from amble.live.trust import identity  # needs the cryptography package, which takes 10 MB

    return identity.check(folder, name, datetime.now(UTC))


def course_of(config: AgentConfig, folder: Path, data: Path | None = None) -> LiveCourse:
    """The stages of the agent's run, from the file in its folder that the run names, or another one."""
    path = config.data_path(folder) if data is None else data
    if config.surveyed is None:
        return Training(config, config.objective(*config.model.read(path)), file_digest(path))
    return Surveyed(config, folder, *config.tables(folder, path), digest=file_digest(path))


def _check_not_running(folder: Path, name: str) -> None:
    """Checked before the data are read, which may take long. The journal's lock decides: process numbers are reused."""
    said, path = status.read(folder), folder / JOURNAL
    alive = said.process != this_process() and condition(said.process) in ("runs", "frozen")
    if alive and path.is_file() and in_use(path):
        raise _already_running(folder, name)


def _already_running(folder: Path, name: str) -> AmbleError:
    process = status.read(folder).process
    if process is None or condition(process) not in ("runs", "frozen"):
        return AmbleError(f"{name} is already running, or another process uses {folder / JOURNAL}; end that one first.")
    return AmbleError(
        f"{name} is already running, as process {process.pid}; see amble status {folder}, or end that process (kill "
        f"{process.pid}) before you start it again."
    )


def address_of(config: AgentConfig, folder: Path, bytes_max: int) -> Address:
    return Address(
        config.name,
        config.host,
        config.port,
        tuple(Link(*peer) for peer in config.neighbours),
        config.digest,
        folder / files.AUTHORITY,
        folder / files.CERTIFICATE,
        folder / files.KEY,
        lease_s=config.timing.lease_s,
        bytes_max=bytes_max,
    )


def _run(node: Node, address: Address, folder: Path, again: bool) -> None:
    """Runs the links from start to end; a newcomer shows its invitation until every neighbour has accepted it."""
    if node.sequence.unfit:  # its neighbours know nothing of that, and would send it tokens
        node.close_journals()
        return
    if node.core.left:
        node.close_journals()
        raise AmbleError(
            f"{address.name} has left this run ({node.core.left.words}); amble join makes a folder for a new one."
        )
    if node.core.ending:
        log.info("the run has ended: %s; %s only tells the neighbours that do not know this, and ends",
                 node.core.ending.words, address.name)  # fmt: skip
    shown = folder / files.INVITATION
    node.run(OPEN, address, shown.read_bytes() if shown.is_file() else None, patient=again)


class End:
    """SIGTERM, Ctrl-C and the end of the leash stop an agent like a power failure: its journal has everything that it
    needs to start again."""

    def __init__(self, leash: bool) -> None:
        self.asked = Flag()
        self.how = Ended.TERMINATED  # also at the end of the leash
        self.node: Node | None = None
        signal.signal(signal.SIGTERM, lambda *_: self())
        signal.signal(signal.SIGINT, lambda *_: self._interrupt())
        if leash:
            threading.Thread(target=self._follow, daemon=True).start()

    def _interrupt(self) -> None:
        self.how = Ended.INTERRUPTED
        self()

    def __call__(self) -> None:
        self.asked.set()
        if self.node is not None:
            self.node.wake()

    def _follow(self) -> None:
        """The process that started this agent has the other end of its standard input; when that closes, the agent
        ends."""
        while os.read(0, 1024):
            pass
        self()
        time.sleep(GRACE_S)  # a process that has ended by then no longer exists
        os._exit(1)
