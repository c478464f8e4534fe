"""simulate: run a method in virtual time; resume: continue a run as if it had never stopped."""

from typing import Any

from numpy.typing import ArrayLike

from amble import methods, networks
from amble.errors import AmbleError, check_flags, expect
from amble.methods import Method
from amble.methods.absent import Absent
from amble.problem.problem import Problem
from amble.progress import Meter
from amble.randomness import check_seed
from amble.results.run import Run
from amble.simulation.goal import goal_of
from amble.simulation.planning import limits
from amble.simulation.running import check_problem, check_records, measured, run_once, stages
from amble.simulation.telling import told
from amble.tracking.record import OnRecord, check_callback


def simulate(
    method: Method,
    problem: Problem,
    network: Any = None,
    *,
    hops: int | None = None,
    rounds: int | None = None,
    time_s: float | None = None,
    comm_units: int | None = None,
    tolerance: float | None = None,
    metric: float | None = None,
    walk: Any = "auto",
    timing: Any = "paper",
    seed: int = 0,
    start: ArrayLike | None = None,
    tune: bool = False,
    every: int | None = None,
    penalised: bool = False,
    optimum: bool = True,
    engine: str = "auto",
    progress: bool = True,
    on_record: OnRecord | None = None,
) -> Run:
    """Run a method on a problem over a network, in virtual time.

    Parameters
    ----------
    method : a method with its settings, such as amble.Relay(tokens=5), or one of your own
    problem : from amble.split or one of the constructors of amble.Problem
    network : a Network, a networkx.Graph, or a name of `amble.networks.KINDS`, such as ring; random by default
    hops, rounds, time_s, comm_units : where to stop, at the first of those given: visits, rounds of a round method (N
        visits each), virtual seconds, link crossings. With none of them and no tolerance, after 10,000 hops
    tolerance : stop as well when the model moves less than this over a lap of N visits, relative to its length;
        0 is none
    metric : stop as well at the first record whose metric on the held-out rows is as good as this: at least this
        accuracy or, where lower is better, at most this NMSE. Records are as far apart as `every` says
    walk : cycle, cycles, stretches, meeting, metropolis, uniform, least-visited, or a matrix of chances; auto is the
        cycle, and meeting for tokens that share an account
    timing : paper, link, walkman, unit, a dict of settings or an amble.Timing
    seed : of the walk, the link times and the network, where it is a name
    start : the initial model of every agent and token, by default zeros. It has as many numbers as there are unknowns,
        in the units of `run.model`: of the scaled columns where the problem scales them, the intercept last, with
        several classes one class after another. So the model of another run on the same data can be given
    tune : choose the method's step or penalty first, by pilot runs (amble.simulation.tuning)
    every : record the model every so many hops, or rounds of a round method; without it, each 2 % further than the last
        record. It is recorded at the end as well
    penalised : add that column to the history: F of the paper's eq. 3 and 10, for methods that minimise it
    optimum : where the problem has an optimum that can be verified, the history has the distance to it. It is computed
        once per problem, after the first run; False leaves it out (see Problem.optimum)
    engine : compiled (JAX), plain (NumPy, and any objective), or auto: compiled unless the objectives are your own
    progress : show a bar where it takes long
    on_record : a function that is called with each `Record` as soon as it is made, or a tracker (see docs/tracking.md).
        An exception that it raises ends the run, and reaches you unchanged

    Returns
    -------
    Run : the model, the history of its costs and quality, and all that it takes to resume it. Ctrl-C ends the run early
        and returns what there is.

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=20)
    >>> run = amble.simulate(amble.Relay(), problem, "ring", hops=20)
    >>> f"{run.history['metric'][-1]:.3f}"
    '0.476'
    """
    check_problem(problem)
    check_flags(tune=tune, penalised=penalised, optimum=optimum, progress=progress)
    check_callback(on_record)
    goal_of(metric, problem)  # its errors come first
    seed = check_seed(seed)
    network = networks.as_network(network, problem.agents, seed=seed)
    same: dict[str, Any] = {"walk": walk, "timing": timing, "seed": seed, "start": start, "engine": engine}
    record: dict[str, Any] = {}
    if tune:  # all errors are raised before it
        method = methods.check(method, problem)
        check_records(method, every, penalised)
        limits(method, problem, hops, rounds, time_s, comm_units, tolerance)
        from amble.simulation.tuning import tune as search  # it brings what makes many runs at once: not for one run

        with Meter(f"tuning {method.label}", None, show=progress, unit="pilot runs") as meter:
            method, record = search(method, problem, network, watch=meter.update, **same)
    return run_once(
        method,
        problem,
        network,
        hops=hops,
        rounds=rounds,
        time_s=time_s,
        comm_units=comm_units,
        tolerance=tolerance,
        metric=metric,
        every=every,
        penalised=penalised,
        optimum=optimum,
        progress=progress,
        tuning=record,
        on_record=on_record,
        **same,
    )


def resume(
    run: Run,
    problem: Problem,
    *,
    hops: int | None = None,
    rounds: int | None = None,
    time_s: float | None = None,
    comm_units: int | None = None,
    tolerance: float | None = None,
    metric: float | None = None,
    engine: str = "auto",
    progress: bool = True,
    on_record: OnRecord | None = None,
) -> Run:
    """Continue a run up to new limits; the result is that of one unbroken run.

    Parameters
    ----------
    run : from `simulate` or `load_run`
    problem : the problem that it was made on
    hops, rounds, time_s, comm_units, tolerance, metric : as of `simulate`, counted from the run's very start
    engine, progress, on_record : as of `simulate`; the records are those that are new

    Returns
    -------
    Run

    Example
    -------
    >>> import amble
    >>> problem = amble.split(amble.load("diabetes"), agents=20)
    >>> run = amble.simulate(amble.Relay(), problem, hops=20)
    >>> amble.resume(run, problem, hops=40).schedule.hops
    40
    """
    expect(run, Run, "the run", "give an amble.Run, such as amble.load_run(path)")
    check_problem(problem)
    check_callback(on_record)
    if isinstance(run.method, Absent):
        raise run.method.refuse("resume")
    if run.problem["digest"] != problem.digest:
        raise AmbleError(
            f"this run was made on {run.problem['name']!r} with other data or settings than the problem given; "
            "build the same problem as before."
        )
    stop = limits(run.method, problem, hops, rounds, time_s, comm_units, tolerance)
    asked = run.problem.get("optimum", {}).get("asked", True)
    going = stages(run, problem, stop, tolerance, engine, progress, goal_of(metric, problem))
    done = told(going, on_record, run, problem, asked, progress)
    return measured(done, problem, asked, progress)
