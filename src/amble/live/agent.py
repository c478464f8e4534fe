"""One agent as a process: checks everything first, then runs, and says how it ended."""

import logging
import os
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from amble.errors import AmbleError
from amble.live.network import engine_log
from amble.live.network.place import Link, Place
from amble.live.network.transport import Transport
from amble.live.node import Node, end_on_signals
from amble.live.settings.agent_config import AgentConfig
from amble.live.trust import identity

GRACE_S = 10.0  # for an agent on a leash to end by itself

log = logging.getLogger("amble.live")


def run_agent(folder: Path, data: Path | None = None, leash: bool = False) -> None:
    """Everything that can be wrong is found before the agent joins the run."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    config = AgentConfig.read(folder)
    for words in identity.check(folder, config.name, datetime.now(UTC)):
        log.warning("%s", words)
    X, y = config.model.read(data) if data is not None else config.read_data(folder)
    node = Node(config, folder, config.objective(X, y))
    end_on_signals(node)
    if leash:
        threading.Thread(target=_follow, args=(node,), daemon=True).start()
    place = Place(
        config.name,
        config.host,
        config.port,
        tuple(Link(*peer) for peer in config.neighbours),
        config.digest,
        folder / identity.AUTHORITY,
        folder / identity.CERTIFICATE,
        folder / identity.KEY,
        lease_s=config.timing.lease_s,
        bytes_max=node.shape.bytes_max,
    )
    engine_log.listen()  # so that whoever is refused at the handshake is in our log, too
    try:
        transport = Transport.open(place, node.hear, node.peer)
    except AmbleError:
        node.journal.close()
        raise
    log.info("%s listens on %s port %d", config.name, config.host, config.port)
    reason = node.run(transport)
    log.info("%s", f"the run has ended: {reason}" if reason else "ended early; start again to go on")


def _follow(node: Node) -> None:
    """Whoever started this agent holds the other end of its standard input; when that goes, so does the agent."""
    while os.read(0, 1024):
        pass
    node.ending.set()
    node.inputs.put(node.core.tick)
    time.sleep(GRACE_S)  # a process that has ended by then is not here any more
    os._exit(1)
