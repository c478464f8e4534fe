"""Checks that a method keeps the contract on which engines, saved runs and live agents rely.

A method is `Any` here: whether it has what its Protocol asks for is what the checks find out.
"""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from amble import engines, methods, networks
from amble.arrays import named_leaves, tree_map
from amble.errors import need
from amble.losses import LeastSquares, Logistic
from amble.methods.parameters import label_of
from amble.methods.rounding import lost
from amble.problem.problem import Problem
from amble.results.loading import load_run
from amble.results.run import Run
from amble.simulation import simulate as simulation

AGENTS, UNKNOWNS, HOPS, STOPPED = 8, 4, 90, 37
ENGINES = ("compiled", "plain")
ENGINES_APART, NAMES_APART = 1e-9, 1e-10  # relative differences that rounding may make


def check_method(method: Any) -> None:
    """Test whether a method keeps the contract that the engines, saved runs and live agents rely on.

    Parameters
    ----------
    method : a method with its settings, such as Heavy(beta=0.9)

    Raises
    ------
    AssertionError : with a sentence on what is violated
    AmbleError : for a part that is missing, or a setting that makes no sense

    Example
    -------
    >>> import amble
    >>> from amble.testing import check_method
    >>> check_method(amble.WPG(alpha=0.3))
    """
    methods.check(method)
    for check in METHOD_CHECKS:
        check(method)


def some_problem() -> Problem:
    """Least squares, well conditioned; agents with optima of their own and 5 to 40 rows."""
    rng = np.random.default_rng(5)
    rows = []
    for d in (5, 7, 9, 12, 16, 21, 30, 40):
        X = rng.normal(size=(d, UNKNOWNS))
        rows.append((X, X @ (1 + rng.normal(size=UNKNOWNS)) + 0.1 * rng.normal(size=d)))
    return Problem.from_agents(rows, task="regression", ridge=0.1, intercept=False, scale=False, weights="agents")


def some_network() -> networks.Network:
    return networks.random(AGENTS, 0.6, seed=1)


def some_loss(kind: Any) -> Any:
    rng = np.random.default_rng(0)
    X, weights, ridge = rng.normal(size=(9, UNKNOWNS)), np.full(9, 1 / 9), np.full(UNKNOWNS, 0.1)
    y = rng.normal(size=9) if kind is LeastSquares else rng.integers(0, 2, 9)
    return kind.build(X, y, weights, ridge)


def require(holds: object, method: Any, sentence: str) -> None:
    if not holds:
        raise AssertionError(f"{label_of(method)}: {sentence}")


def check_answers(method: Any) -> None:
    """An agent is a NamedTuple with its model x, and a gift or a visit has three parts."""
    f, zero = some_loss(LeastSquares), np.zeros(UNKNOWNS)
    if not hasattr(method, "agent"):
        return
    agent = method.agent(f, zero)
    fields = getattr(agent, "_fields", ())
    kind = type(agent).__name__
    require("x" in fields, method, f"agent returns a {kind}; it must return a NamedTuple with a field x, its model.")
    if hasattr(method, "gift"):
        _require_parts(method, "gift", method.gift(f, agent, zero), "(agent, v, w)")
    elif hasattr(method, "visit"):
        token = method.token(zero, AGENTS, 0)
        _require_parts(method, "visit", method.visit(f, agent, method.slot(zero), token), "(agent, slot, token)")


def _require_parts(method: Any, name: str, answer: Any, parts: str) -> None:
    returned = f"{len(answer)} of them" if isinstance(answer, tuple) else f"a {type(answer).__name__}"
    good = isinstance(answer, tuple) and len(answer) == 3
    require(good, method, f"{name} must return three things, {parts}, and returns {returned}.")


def check_shapes_on_numpy(method: Any) -> None:
    """A visit, or a round, returns the same tuples of arrays that it gets, with the same shapes, in float64."""
    for kind in (LeastSquares, Logistic):
        _check_steps(method, some_loss(kind), np, (np.ndarray, np.floating))


def check_shapes_on_jax(method: Any) -> None:
    """The same code runs on JAX arrays."""
    jax = need("jax", "sim")
    with jax.enable_x64(True):
        _check_steps(method, tree_map(jax.numpy.asarray, some_loss(Logistic)), jax.numpy, jax.Array)


def _check_steps(method: Any, f: Any, xp: Any, array: Any) -> None:
    """Three steps: every array keeps its shape, its kind and float64, and the model moves."""
    where = "NumPy" if xp is np else "JAX"
    first, steps = _begin(method, f, xp), 3
    states = [first]
    for k in range(steps):
        states.append(_step(method, f, xp, states[-1], k))
    last, model = states[-1], _model(method, states[-1])
    require(
        np.shape(last[0].x) == np.shape(model) == (UNKNOWNS,),
        method,
        f"on {where}, the model and the agent's x have shapes {np.shape(model)} and {np.shape(last[0].x)}; both must "
        f"have that of the start, ({UNKNOWNS},).",
    )
    require(float(xp.sum(xp.abs(model))) > 0, method, f"on {where}, the model is still zero after {steps} steps.")
    for before, after in zip(first, last, strict=True):
        one, other = named_leaves(before, type(before).__name__), named_leaves(after, type(before).__name__)
        require(
            type(before) is type(after) and one.keys() == other.keys(),
            method,
            f"a step takes a {type(before).__name__} and returns a {type(after).__name__}; both must be the same.",
        )
        for key in one:
            apart = np.shape(one[key]) != np.shape(other[key])
            require(not apart, method, f"{key} changes its shape: {np.shape(one[key])} to {np.shape(other[key])}.")
            good = isinstance(other[key], array) and other[key].dtype == np.float64
            kind = getattr(other[key], "dtype", type(other[key]).__name__)
            require(good, method, f"on {where}, {key} is {kind} after a step; it must be a float64 array of {where}.")


def _begin(method: Any, f: Any, xp: Any) -> tuple[Any, ...]:
    rule, zero = methods.rules(method), xp.zeros(UNKNOWNS)
    agent = rule.agent(f, zero)
    if methods.is_round(method):
        return (agent,)
    return agent, rule.slot(zero), rule.token(zero, AGENTS, methods.tokens_among(method, AGENTS) - 1)


def _step(method: Any, f: Any, xp: Any, state: tuple[Any, ...], k: int) -> tuple[Any, ...]:
    rule = methods.rules(method)
    if not methods.is_round(method):
        return tuple(rule.visit(f, *state))
    said = rule.say(state[0])
    shape = (methods.message_numbers(method, UNKNOWNS),)
    require(
        np.shape(said) == shape,
        method,
        f"say returns shape {np.shape(said)}; it must be {shape}, which message_numbers(p) can change.",
    )
    after = rule.round(f, state[0], said + xp.full(shape, 0.1 * (k + 1)), xp.asarray(3.0))
    return (rule.agreed(f, after, rule.offer(after)),) if methods.agrees(method) else (after,)


def _model(method: Any, state: tuple[Any, ...]) -> Any:
    return methods.rules(method).estimate(state[2]) if methods.walks(method) else state[0].x


def check_pure(method: Any) -> None:
    """A step does not change its arguments, and returns the same bits each time: no randomness, clock or memory."""
    f = some_loss(LeastSquares)
    state = tuple(tree_map(np.array, part) for part in _step(method, f, np, _begin(method, f, np), 0))
    kept = tuple(tree_map(np.copy, part) for part in state)
    results = [_step(method, f, np, state, 1) for _ in range(2)]
    require(_same(state, kept), method, "a step changes the arrays that it is given; it must make new ones.")
    require(
        _same(*results),
        method,
        "the same step twice gives two different results; it must depend only on its arguments.",
    )


def _same(one: object, other: object) -> bool:
    pairs = zip(_flat(one), _flat(other), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def _flat(tree: Any) -> list[Any]:
    return [leaf for branch in tree for leaf in _flat(branch)] if isinstance(tree, tuple) else [tree]


def go(method: Any, hops: int = HOPS, **options: Any) -> Run:
    """A short run on some problem."""
    return simulation.simulate(
        method, some_problem(), some_network(), hops=hops, seed=3, every=7, progress=False, **options
    )


def leaves_of(state: engines.State) -> dict[str, Any]:
    """Every array of a state by its name."""
    parts = {part: getattr(state, part) for part in ("agents", "slots", "tokens")}
    named = {key: leaf for part, tree in parts.items() for key, leaf in named_leaves(tree, part).items()}
    return {**named, "x_sum": state.x_sum, "lost": state.lost}


def apart(one: object, other: object) -> float:
    """The largest difference, relative to the largest number; infinite for two shapes."""
    one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if one.shape != other.shape:
        return float("inf")
    with np.errstate(invalid="ignore"):
        difference, size = np.abs(one - other).max(initial=0), np.abs(other).max(initial=0)
    return 0.0 if difference == 0 else float(difference / size) if size else float("inf")


def check_engines(method: Any) -> None:
    """Both engines have the same numbers: every record and every array of the state."""
    one, other = (go(method, engine=engine) for engine in ENGINES)
    pairs = {"the model": (one.consensus, other.consensus), "the mean of x": (one.local, other.local)}
    mine, yours = leaves_of(one.state), leaves_of(other.state)
    for name, (a, b) in (pairs | {key: (mine[key], yours[key]) for key in mine}).items():
        far = apart(a, b)
        require(
            far <= ENGINES_APART + lost(method),
            method,
            f"{name} is not the same in the compiled and in the plain engine ({far:.0e}).",
        )
    require(
        apart(one.models.sum(axis=0), one.state.x_sum) <= 1e-12,
        method,
        "the sum of x is not the sum that the engine has kept.",
    )


def check_seeds(method: Any) -> None:
    """The same seed gives the same bits."""
    for engine in ENGINES:
        one, other = (go(method, 50, engine=engine) for _ in range(2))
        mine, yours = leaves_of(one.state), leaves_of(other.state)
        same = np.array_equal(one.consensus, other.consensus) and np.array_equal(one.local, other.local)
        same = same and all(np.array_equal(mine[key], yours[key], equal_nan=True) for key in mine)
        same = same and all(np.array_equal(one.history[key], other.history[key], equal_nan=True) for key in one.history)
        require(same, method, f"two {engine} runs with the same seed differ.")


def check_names(method: Any) -> None:
    """The numbers of the agents do not matter: other names, with network and walk, change the result by rounding."""
    problem, network = some_problem(), some_network()
    schedule = go(method, 60, engine="plain").schedule
    names = np.random.default_rng(2).permutation(AGENTS)  # agent i is now called names[i]
    renamed = Problem.from_objectives([problem.objective(int(i)) for i in np.argsort(names)], UNKNOWNS)
    other: Any = schedule
    if not methods.is_round(method):
        other = schedule._replace(agent=names[schedule.agent].astype(schedule.agent.dtype))  # type: ignore[union-attr, call-arg]
    turned = networks.from_edges(AGENTS, names[network.edges])
    for engine in ENGINES:
        states, models = [], []
        for known, over, along in ((problem, network, schedule), (renamed, turned, other)):
            meets = getattr(along, "role", None) is not None
            machine = engines.engine_for(engine, methods.check(method, known), known, over, meets=meets)
            state = machine.advance(machine.start(), along, 0, along.hops)
            models.append(machine.read(state))
            states.append(leaves_of(state.on_numpy()))
        far = max(apart(b, a) for a, b in zip(*models, strict=True))
        for key, leaf in states[0].items():
            back = states[1][key][names] if key.startswith(("agents", "slots")) else states[1][key]
            far = max(far, apart(back, leaf))
        require(far <= NAMES_APART, method, f"the {engine} result depends on which number an agent has ({far:.0e}).")


def check_resume(method: Any) -> None:
    """A run that was stopped, saved, loaded and resumed equals an unbroken one, to the bit."""
    whole, begun = (go(method, hops) for hops in (HOPS, STOPPED))
    with TemporaryDirectory() as folder:
        begun.save(Path(folder) / "run")
        loaded = load_run(Path(folder) / "run", methods=[type(method)])
    require(loaded.method == begun.method, method, f"a saved run has {loaded.method!r}, and it was {begun.method!r}.")
    before, kept = leaves_of(begun.state), leaves_of(loaded.state)
    same = before.keys() == kept.keys() and all(
        np.array_equal(before[key], kept[key], equal_nan=True) for key in before
    )
    require(same, method, "the state of a saved run is not what it was; x and the others must be arrays.")
    run = simulation.resume(loaded, some_problem(), hops=HOPS, progress=False)
    same = np.array_equal(run.consensus, whole.consensus) and np.array_equal(run.local, whole.local)
    mine, yours = leaves_of(run.state), leaves_of(whole.state)
    same = same and all(np.array_equal(mine[key], yours[key], equal_nan=True) for key in mine)
    require(same, method, "a resumed run differs from an uninterrupted one: a step depends on more than its arguments.")


METHOD_CHECKS: tuple[Callable[[Any], None], ...] = (
    check_answers,
    check_pure,
    check_shapes_on_numpy,
    check_shapes_on_jax,
    check_engines,
    check_seeds,
    check_names,
    check_resume,
)
