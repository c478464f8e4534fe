"""One agent as `amble agent` runs it, without the command line's libraries: for many agents on one machine.

python -m amble.live FOLDER
"""

import sys
from pathlib import Path


def main() -> None:
    from amble.live.threads import one_thread

    one_thread()
    from amble.errors import AmbleError
    from amble.live.agent import run_agent

    try:
        run_agent(Path(sys.argv[1]), leash=True)
    except AmbleError as error:
        sys.stderr.write(f"amble: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
