"""Where the jobs of a sweep run: here, on all cores, on a Dask cluster, under MPI, or on any Executor."""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from typing import Any

from amble.errors import AmbleError, need, shown
from amble.workers import Workers

DASK = "dask://"
CONNECT_S = 10
AT_ONCE = 16  # jobs that an executor gets at once which does not say how many workers it has


class Here(Executor):
    """Jobs in this process, one after another: what a GPU wants, and what few runs want."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def check_executor(executor: Any) -> None:
    """Refuses what is no executor, before any work."""
    if executor is None or isinstance(executor, Executor):
        return
    if isinstance(executor, str) and executor.startswith(DASK) and len(executor) > len(DASK):
        need("distributed", "dask")
        return
    raise AmbleError(
        f"{shown(executor)} was given as the executor; give dask://host:port, a concurrent.futures.Executor, or "
        "nothing for the cores of this machine."
    )


@contextmanager
def opened(executor: Any, workers: int | None, jobs: int) -> Iterator[tuple[Executor, int]]:
    """The executor, and how many jobs it works on at once (0: in this process)."""
    if isinstance(executor, Executor):
        yield executor, workers or getattr(executor, "num_workers", 0) or AT_ONCE
    elif isinstance(executor, str) and executor.startswith(DASK):
        with dask(executor) as client:
            yield client.get_executor(pure=False), max(1, sum(client.nthreads().values()))
    elif jobs == 1 or workers == 1 or need("jax", "sim").default_backend() != "cpu":
        yield Here(), 0
    else:
        with Workers(workers) as crew:
            yield crew.pool, crew.count


@contextmanager
def dask(address: str) -> Iterator[Any]:
    distributed = need("distributed", "dask")
    host = address.removeprefix(DASK)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions that differ a little
            client = distributed.Client(f"tcp://{host}", timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise AmbleError(f"no Dask scheduler answers at {host}; start one with: dask scheduler.") from error
    try:
        yield client
    finally:
        client.close()


@contextmanager
def mpi() -> Iterator[Any]:
    """The pool of all other processes of this MPI run; None in those, once there is no more work."""
    need("mpi4py", "mpi")
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPICommExecutor
    except (ImportError, RuntimeError) as error:
        raise AmbleError(f"mpi4py cannot load an MPI library ({str(error).splitlines()[0]}); install MPI.") from error
    if MPI.COMM_WORLD.size < 2:
        raise AmbleError("there is one MPI process, and no other to work for it; start it with mpiexec -n 3, or more.")
    with MPICommExecutor(MPI.COMM_WORLD, root=0) as pool:
        yield pool
