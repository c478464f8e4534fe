"""One agent as a process, without the libraries of the command line: `amble agent` and `amble up` start it.

python -m amble.live FOLDER [--data FILE] [--leash] [--prometheus ADDRESS]
"""

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def main(arguments: list[str] | None = None) -> None:
    from amble.live.threads import one_thread

    one_thread()
    from amble.errors import AmbleError
    from amble.live.agent.agent import Ended, run_agent

    parser = argparse.ArgumentParser(prog="amble agent")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--leash", action="store_true", help="end when standard input does")
    parser.add_argument("--prometheus", default="", help="where Prometheus can ask for metrics")
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    try:
        with exported(options.folder, options.prometheus):
            ended = run_agent(options.folder, options.data, options.leash, options.again)
    except AmbleError as error:
        sys.stderr.write(f"amble: {error}\n")
        sys.exit(2)
    except KeyboardInterrupt:  # before it handles signals
        sys.exit(Ended.INTERRUPTED.value)
    if ended is Ended.RESTARTS:
        again = [] if options.again else ["--again"]
        os.execv(sys.executable, [sys.executable, "-m", "amble.live", *arguments, *again])
    sys.exit(ended.value)


@contextlib.contextmanager
def exported(folder: Path, address: str) -> Iterator[None]:
    """The agent's metrics, if somebody wants them: at an address that is printed."""
    if not address:
        yield
        return
    from amble.live.prometheus.server import Exporter

    with Exporter(address) as exporter:
        exporter.folders = lambda: [folder]
        sys.stderr.write(f"prometheus: {exporter.url}\n")
        yield


if __name__ == "__main__":
    try:
        main()
    except SystemExit as ended:  # Zenoh's threads may call Python while it is taken down, which would abort the process
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 0)
