"""Many jobs on all cores, with one bar: each worker is a process that computes on one thread."""

import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, wait
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from amble.errors import AmbleError, need
from amble.progress import Meter, interruptible

LOOK_S = 0.5  # between two looks at what is done, and at Ctrl-C
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """Worker processes, kept from one batch of jobs to the next; leaving the `with` block ends them."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or cores()
        self.resources = ExitStack()

    def __enter__(self) -> "Workers":
        # loky's pool, which comes with scikit-learn: unlike Python's own, it does not run the user's script again in
        # every worker, and takes functions and classes that are defined there
        loky = need("joblib.externals.loky", "sim")
        self.asked = self.resources.enter_context(interruptible(patient=True))
        numbers = self.resources.enter_context(TemporaryDirectory(prefix="amble-workers-"))
        self.pool: Executor = loky.ProcessPoolExecutor(
            self.count, initializer=begin, initargs=(numbers, os.getpid()), env=ONE_THREAD
        )
        self.resources.callback(self.pool.shutdown, kill_workers=True)
        return self

    def __exit__(self, *_: object) -> None:
        self.resources.close()

    def run(
        self,
        work: Callable[..., None],
        jobs: Sequence[tuple[Any, ...]],
        done: Callable[[], int],
        total: int,
        label: str,
    ) -> bool:
        """work(*job) for every job; True when all are done, False when Ctrl-C came first.

        Jobs save their own results, each completely as soon as it is done; `done` counts them for the bar. So nothing
        is lost when workers are stopped half-way.
        """
        with Meter(label, total, done(), unit="runs", lines=True) as meter:
            meter.update(done())
            waiting = {self.pool.submit(work, *job) for job in jobs}
            while waiting and not self.asked.is_set():
                ended, waiting = wait(waiting, LOOK_S, FIRST_COMPLETED)
                meter.update(done())
                try:
                    for each in ended:
                        each.result()
                except BrokenExecutor as error:
                    raise AmbleError(
                        "a worker process was killed, perhaps by lack of memory; finished runs are kept, so run the "
                        "same command again, with fewer --workers."
                    ) from error
        return not waiting


def begin(numbers: str, parent: int) -> None:
    """Before a worker's first job. Ctrl-C reaches every process of the terminal, but the parent decides when its
    workers end; and they end with it, whatever ends it. Each is bound to its own core: JAX makes a thread for every
    core that it sees, and the threads of several workers would wait for each other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[next_number(Path(numbers)) % len(allowed)]})

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def next_number(folder: Path) -> int:
    """0 for the first process that asks, 1 for the next, and so on."""
    for number in itertools.count():
        with suppress(FileExistsError):
            (folder / str(number)).touch(exist_ok=False)
            return number
    raise AssertionError
