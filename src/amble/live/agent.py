"""One agent as a process: checks everything first, then runs, and says how it ended."""

import contextlib
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
from amble.live.network import engine_log
from amble.live.network.door import knock_at_all
from amble.live.network.place import Link, Place
from amble.live.network.sockets import more_files
from amble.live.network.transport import Transport
from amble.live.node import Node, model_of
from amble.live.process import condition, this_process
from amble.live.settings.agent_config import FILE, AgentConfig
from amble.live.trust import identity, invitation

GRACE_S = 10.0  # for an agent on a leash to end by itself

log = logging.getLogger("amble.live")


class Ended(Enum):
    """How an agent has ended, as its exit code."""

    WELL = 0
    WITHOUT_A_MODEL = 3  # to start it again does not help, if the run has ended
    TO_BEGIN_ANEW = -1  # which is no end: see run_agent


def run_agent(folder: Path, data: Path | None = None, leash: bool = False, again: bool = False) -> Ended:
    """Everything that can be wrong is found before the agent joins the run.

    It is to begin anew from its journal, as after a crash, when its links must: in a new process, for a session of
    Zenoh's that is closed while a neighbour dials may keep that link, and the neighbour believes in it. `again`: it
    does so now. Why it did not start is in its status, too.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    try:
        return _run_agent(folder, data, leash, again)
    except AmbleError as error:
        _say_why(folder, str(error))
        raise


def _say_why(folder: Path, reason: str) -> None:
    """Into the status of an agent's folder, unless that belongs to another process that runs, or to one that left."""
    said, mine = status.read(folder), this_process()
    ran = said.process == mine and said.state == "stopped"  # and failed later
    taken = said.process != mine and said.state in status.RUNNING and condition(said.process) in ("runs", "frozen")
    if taken or said.state == "left" or not (folder / FILE).is_file():
        return
    state: status.State = "stopped" if ran else "refused"
    now = {"name": said.name or folder.name, "time_s": time.time(), "process": mine, "state": state, "reason": reason}
    none = {"up": (), "down": (), "waits": (), "hops_per_s": 0.0}
    with contextlib.suppress(OSError):  # who starts it is told in any case
        status.write(folder, status.changed(said, format=status.FORMAT, **now, **none))


def _run_agent(folder: Path, data: Path | None, leash: bool, again: bool) -> Ended:
    more_files()
    config = AgentConfig.read(folder)
    for words in identity.check(folder, config.name, datetime.now(UTC)):
        log.warning("%s", words)
    X, y = config.model.read(data) if data is not None else config.read_data(folder)
    objective = config.objective(X, y)
    engine_log.listen()  # so that whoever is refused at the handshake is in our log, too
    ending = End(leash)
    node = ending.node = Node(config, folder, objective, ending.asked)
    had_ended = node.core.ending is not None
    _run(node, _place(config, folder, node.shape.bytes_max), folder, again)
    end, left = node.core.ending, node.core.left
    if node.anew and not (end or left or ending.asked.is_set()):
        engine_log.end()
        return Ended.TO_BEGIN_ANEW
    if left:
        log.info("%s has left the run: %s", config.name, left.words)
        return Ended.WELL
    log.info("%s", f"the run has ended: {end.words}" if end else "ended early; start again to go on")
    if model_of(node.core) is None:
        why = "no token has come to it from another agent"
        todo = "take the model of another agent" if end else "start it again, and its neighbours"
        if node.core.likely_cause:
            why, todo = "the run has diverged", f"change what caused it, and train again: {node.core.likely_cause}"
        log.error("%s has no model, and wrote none, because %s; %s", config.name, why, todo)
        return Ended.WITHOUT_A_MODEL
    if node.core.missing:
        log.warning("the model does NOT have the data of %s", ", ".join(node.core.missing))
    if end and not node.made and not had_ended:
        log.warning("the others went on and ended without this agent: take the model of one of them, for this one's is "
                    "as old as its last visit")  # fmt: skip
    return Ended.WELL


def _place(config: AgentConfig, folder: Path, bytes_max: int) -> Place:
    return Place(
        config.name,
        config.host,
        config.port,
        tuple(Link(*peer) for peer in config.neighbours),
        config.digest,
        folder / identity.AUTHORITY,
        folder / identity.CERTIFICATE,
        folder / identity.KEY,
        lease_s=config.timing.lease_s,
        bytes_max=bytes_max,
    )


def _run(node: Node, place: Place, folder: Path, again: bool) -> None:
    """From the first link to the last; a newcomer shows its invitation meanwhile, until everybody has let it in."""
    try:
        if node.core.left:
            raise AmbleError(
                f"{place.name} has left this run ({node.core.left.words}); amble join makes a folder for a new one."
            )
        transport = _open(node, place, again)
    except AmbleError:
        node.journal.close()
        raise
    log.info("%s listens on %s port %d", place.name, place.host, place.port)
    shown, ended = folder / invitation.FILE, threading.Event()
    if shown.is_file():
        known = (place, shown.read_bytes(), transport.is_up, ended)
        threading.Thread(target=knock_at_all, args=known, daemon=True).start()
    try:
        node.run(transport)
    finally:
        ended.set()


def _open(node: Node, place: Place, again: bool) -> Transport:
    """The first time, whatever is wrong ends the agent at once; later, its port may be taken for a moment."""
    while True:
        try:
            return Transport.open(place, node.hear, node.peer, node.knocked, node.begin_anew)
        except AmbleError as error:
            if not again or node.ending.wait(1.0):
                raise
            log.warning("%s It tries again.", error)


class End:
    """SIGTERM, Ctrl-C and the end of the leash end an agent as if it were switched off: its journal holds all, so it
    can be started again."""

    def __init__(self, leash: bool) -> None:
        self.asked = threading.Event()
        self.node: Node | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self())
        if leash:
            threading.Thread(target=self._follow, daemon=True).start()

    def __call__(self) -> None:
        self.asked.set()
        if self.node is not None:
            self.node.inputs.put(self.node.core.tick)

    def _follow(self) -> None:
        """Whoever started this agent holds the other end of its standard input; when that goes, so does the agent."""
        while os.read(0, 1024):
            pass
        self()
        time.sleep(GRACE_S)  # a process that has ended by then is not here any more
        os._exit(1)
