"""How a package answers benchmarks/peers.py: a number of rounds comes in, the seconds that they took go out.

These scripts run in the environment of the other package, so they import neither amble nor its benchmarks.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np


def job() -> tuple[dict[str, np.ndarray], str, Path]:
    """The arrays of the problem, the method's name, and where the models go: the arguments of the command."""
    with np.load(sys.argv[1]) as arrays:
        return dict(arrays), sys.argv[2], Path(sys.argv[3])


def serve(
    advance: Callable[[int], None],
    models: Callable[[], np.ndarray],
    path: Path,
    clock: Callable[[], float] = time.process_time,
) -> None:
    """Each line that comes in is a number of rounds. After them the models are in the file, and the seconds go out."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the package itself prints is not an answer
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        begin = clock()
        advance(int(line))
        seconds = clock() - begin
        np.save(path, models())
        print(seconds, file=answers, flush=True)
