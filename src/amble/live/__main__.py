"""One agent as a process, without the libraries of the command line: `amble agent` and `amble up` start it.

python -m amble.live FOLDER [--data FILE] [--leash]
"""

import argparse
import os
import sys
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
    parser.add_argument("--again", action="store_true", help=argparse.SUPPRESS)
    arguments = sys.argv[1:] if arguments is None else arguments
    options = parser.parse_args(arguments)
    try:
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


if __name__ == "__main__":
    try:
        main()
    except SystemExit as ended:  # Zenoh's threads may call Python while it is taken down, which would abort the process
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 0)
