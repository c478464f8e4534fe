"""Many jobs on all cores, with one bar: each worker is a process that computes on one thread."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from typing import Any

from amble.errors import AmbleError
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
        self.asked = self.resources.enter_context(interruptible(patient=True))
        self.resources.enter_context(one_thread())
        context = multiprocessing.get_context("spawn")
        self.others = set(multiprocessing.active_children())
        self.pool = ProcessPoolExecutor(self.count, context, initializer=begin, initargs=(context.Value("i", 0),))
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        for child in set(multiprocessing.active_children()) - self.others:
            child.terminate()
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
                except BrokenProcessPool as error:
                    raise AmbleError(
                        "a worker process was killed, perhaps by lack of memory; finished runs are kept, so run the "
                        "same command again, with fewer --workers."
                    ) from error
        return not waiting


def begin(started: Any) -> None:
    """Before a worker's first job. Ctrl-C reaches every process of the terminal, but the parent decides when its
    workers end; and they end with it, whatever ends it. Each is bound to its own core: JAX makes a thread for every
    core that it sees, and the threads of several workers would wait for each other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "sched_setaffinity"):
        with started.get_lock():
            number, started.value = started.value, started.value + 1
        allowed = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {allowed[number % len(allowed)]})
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def one_thread() -> Iterator[None]:
    """Environment of the workers: their libraries read at the start that they may use one thread."""
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
