"""sweep: settings x seeds x networks x splits, as lanes of compiled programs, wherever there are workers."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from amble.errors import AmbleError, as_path, check_flags, is_whole
from amble.problem.problem import Problem
from amble.sweeps.executors import check_executor
from amble.sweeps.plan import make_plan
from amble.sweeps.results import Sweep, collected
from amble.sweeps.working import Kept, work


def sweep(
    method: Any,
    problem: Problem | Sequence[Problem] | Callable[[int], Problem],
    network: Any = None,
    *,
    seeds: Sequence[int] = range(1),
    grid: Mapping[str, Sequence[Any]] | None = None,
    random: Mapping[str, Sequence[Any]] | None = None,
    tries: int | None = None,
    hops: int | None = None,
    rounds: int | None = None,
    time_s: float | None = None,
    comm_units: int | None = None,
    tolerance: float | None = None,
    walk: Any = "auto",
    timing: Any = "paper",
    within: float | Sequence[float] = 0.01,
    every: int | None = None,
    start: ArrayLike | None = None,
    optimum: bool = True,
    executor: Executor | str | None = None,
    workers: int | None = None,
    folder: str | Path | None = None,
    part: tuple[int, int] | None = None,
    progress: bool = True,
) -> Sweep:
    """Make many runs: every setting with every seed, network and split.

    Each run is the one that `simulate` makes with the same settings and seed. Runs of one shape are lanes of one
    compiled program, which makes them several times faster than one after another (docs/sweeps.md).

    Parameters
    ----------
    method : a method with its settings, or a list of them
    problem : a problem, a list of them (splits of the data), or a function that makes one for a seed
    network : as of `simulate`, or a list of these, or a mapping from labels to these or to functions of (agents, seed);
        by default random, and another for each seed
    seeds : of the walks, the link times and the networks that are names
    grid : values to try, such as {"tau": [0.01, 0.1, 1.0], "tokens": [1, 5]}: every combination. A method without such
        a setting is left as it is
    random : instead or beside it, (low, high, scale) of settings to draw at random, the scale linear, log or whole
    tries : how many combinations are drawn
    hops, rounds, time_s, comm_units, tolerance, walk, timing, every, start, optimum : as of `simulate`
    within : how near a run's metric must come to the optimum's, as a share: the table has what it cost until then.
        Without test rows, the relative distance to the optimum
    executor : where the runs are made: the cores of this machine (None), dask://host:port, or any
        concurrent.futures.Executor. A GPU that JAX sees is used by itself
    workers : processes on this machine, by default as many as cores
    folder : keeps what is made, so that the same sweep makes only what is missing
    part : (k, n) makes the k-th of n parts only, for several jobs that share a folder
    progress : show a bar where it takes long

    Returns
    -------
    Sweep : one row per run, the best settings, a heat map, tests between methods. Ctrl-C keeps what is done

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=20)
    >>> sweep = amble.sweep(amble.APIBCD(tokens=5), problem, grid={"tau": [0.01, 0.1]}, seeds=range(4), hops=1000)
    >>> sweep
    Sweep(8 runs of 2 settings)
    """
    check_flags(optimum=optimum, progress=progress)
    check_executor(executor)
    if workers is not None and not (is_whole(workers) and workers >= 1):
        raise AmbleError(f"workers={workers!r} was given; it must be a whole number, one or more.")
    stop = {"hops": hops, "rounds": rounds, "time_s": time_s, "comm_units": comm_units, "tolerance": tolerance}
    about: dict[str, Any] = {"walk": walk, "timing": timing, "within": within, "every": every, "start": start}
    plan = make_plan(method, problem, network, seeds, grid, random, tries, stop=stop, optimum=optimum, **about)
    cases = part_of(plan.cases(), part)
    place = None if folder is None else made(as_path(folder, "the folder of the sweep"))
    kept = Kept(place)
    keys = [plan.key(case) for case in cases]
    work(plan, cases, keys, kept, executor, workers, progress)
    task = plan.problem(0, plan.seeds[0]).task
    return collected(cases, keys, kept.rows, task == "classification")


def part_of(cases: list[Any], part: tuple[int, int] | None) -> list[Any]:
    """The k-th of n parts, of equal size but for one run."""
    if part is None:
        return cases
    if not (isinstance(part, tuple) and len(part) == 2 and all(map(is_whole, part)) and 1 <= part[0] <= part[1]):
        raise AmbleError(f"part={part!r} was given; give (k, n), the k-th of n parts, k from 1 to n.")
    k, n = part
    return cases[(k - 1) * len(cases) // n : k * len(cases) // n]


def made(folder: Path) -> Path:
    """The folder, made before the work, so that nothing is lost for lack of one."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise AmbleError(f"nothing can be written to the folder {folder}; give another.") from error
    return folder
