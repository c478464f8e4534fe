"""What an agent refuses, whom it misses and lets in, and what it logs; what others can bring about, it says seldom."""

import logging
import time
from collections.abc import Callable
from pathlib import Path

from amble.errors import AmbleError
from amble.live.core.effects import Report
from amble.live.core.protocol import Core
from amble.live.seldom import Seldom, more
from amble.live.settings.agent_config import AgentConfig

TOLD = {
    "doubt": logging.WARNING, "recount": logging.WARNING, "reissue": logging.WARNING, "absorbed": logging.INFO,
    "refused": logging.ERROR, "stopped": logging.INFO, "leaves": logging.INFO, "left": logging.INFO,
}  # fmt: skip
OFTEN = ("refused", "absorbed")  # what a neighbour can bring about at will, and no replay needs

log = logging.getLogger("amble.live")


def say(what: str, sender: str, refusal: Exception, seldom: Seldom) -> None:
    left_out = seldom((what, sender, _check_of(refusal)), time.monotonic())
    if left_out is not None:
        log.warning("refused %s from %s: %s%s", what, sender, refusal, more(left_out))


def say_missing(config: AgentConfig, core: Core) -> None:
    """The neighbours that are not up."""
    for peer in config.neighbours:
        if peer.name in core.neighbours.down_s:
            log.warning("%s, at %s port %d, is not up; the agent waits for it. Has it been started, can it be "
                        "reached, has the run ended?", *peer)  # fmt: skip


def _check_of(error: BaseException) -> tuple[str, int]:
    """Which check has failed, as its line in the code, because the sentence differs with every number in it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return ("", 0) if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)


def logged(report: Report, core: Core, seldom: Seldom) -> Report | None:
    """The event as it was logged; None if it was left out."""
    if report.kind in OFTEN:
        custody = core.rows.get(f"custody/{report.token}")
        left_out = seldom((report.kind, report.token, custody.to if custody else ""), time.monotonic())
        if left_out is None:
            return None
        report = report._replace(words=report.words + more(left_out))
    which = f" token={report.token}" if report.token >= 0 else ""
    which += f" epoch={report.epoch.number} hop={report.hop}" if report.epoch else ""
    log.log(TOLD[report.kind], "%s%s%s", report.kind, which, f": {report.words}" if report.words else "")
    return report


def let_in(
    config: AgentConfig, folder: Path, shown: bytes, answer: Callable[[str | None], None], seldom: Seldom
) -> bool:  # fmt: skip
    """Whether an agent that showed this invitation is a new neighbour; it is answered."""
    from amble.live.settings import joining  # needs the cryptography package

    try:
        guest = joining.admit(config, folder, shown)
        AgentConfig.read(folder, agreed=False)  # which must be right when the agent restarts
    except (AmbleError, OSError) as error:
        left_out = seldom(("door", _check_of(error)), time.monotonic())  # because it may ask again and again
        if left_out is not None:
            log.warning("refused an agent that asked to join: %s%s", error, more(left_out))
        answer(str(error))
        return False
    if guest:
        log.info("%s is invited and is a neighbour from now on; all links are set up again", guest)
    answer(None)
    return bool(guest)
