"""JaxLoss: any loss(params, batch) written in JAX, for params in any pytree."""

import hashlib
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple, final, overload

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array, Number, namespace
from amble.errors import AmbleError, is_number, need, shown, unknown
from amble.losses.batches import check_batch_size, drawn_rows
from amble.losses.pytree import Layout
from amble.randomness import check_seed

POWER_STEPS = 30  # of the power iteration that estimates L
WEIGHTS, TASKS = ("rows", "agents"), ("custom", "classification", "regression")
LOSS_ADVICE = "loss(params, batch) is called with params and some rows of one agent, and returns one number"


@final
class About:
    """What does not change from agent to agent. JAX takes it for a constant, and tells two apart by identity."""

    def __init__(self, loss: Callable[..., Any], layout: Layout, batches: Any, even: bool, size: int | None, seed: int):
        self.loss, self.layout, self.batches, self.even, self.size, self.seed = loss, layout, batches, even, size, seed


class Stacked(NamedTuple):
    """The losses of all agents as the compiled engine takes them: arrays whose first axis is the agent."""

    about: About
    data: tuple[Any, ...]  # (N, rows, ...) each; agents with fewer rows than others repeat their first
    rows: Any  # how many each agent has
    share: Any
    smoothness: Any  # None: not known

    def agent(self, i: Any) -> "JaxObjective":
        """The objective of one agent; nothing is copied until its numbers are asked for."""
        return JaxObjective(self, i)


@final
class JaxObjective:
    """One agent's loss: of all its rows, or of those that a visit drew."""

    def __init__(self, every: Stacked, i: Any, visit: Any = None, step: int = 0) -> None:
        self.every, self.i, self.visit, self.step = every, i, visit, step

    def drawn(self, hop: Any) -> "JaxObjective":
        """The loss of the rows of one visit."""
        return self if self.every.about.size is None else JaxObjective(self.every, self.i, hop + 1)

    def again(self, step: int) -> "JaxObjective":
        """The same at a later local step of the visit, with other rows."""
        return JaxObjective(self.every, self.i, self.visit, step)

    def value(self, w: Array) -> Number:
        number: Number = self._answer(value_at, _compiled()[0], w)
        return number

    def grad(self, w: Array) -> Array:
        import jax

        slope: Array = self._answer(jax.grad(value_at, argnums=-1), _compiled()[1], w)
        return slope

    def _answer(self, traced: Callable[..., Any], compiled: Callable[..., Any], w: Array) -> Any:
        if namespace(w) is not np:
            return traced(self.every, self.i, self.visit, self.step, w)
        import jax

        visit = None if self.visit is None else np.int64(self.visit)
        with jax.enable_x64(True):
            return np.asarray(compiled(self.every, np.int64(self.i), visit, np.int64(self.step), np.asarray(w, np.float64)))

    @property
    def share(self) -> Number:
        share: Number = self.every.share[self.i]
        return share

    @property
    def smoothness(self) -> Number:
        if self.every.smoothness is None:
            raise AttributeError("smoothness")
        smoothness: Number = self.every.smoothness[self.i]
        return smoothness


def value_at(every: Stacked, i: Any, visit: Any, step: Any, w: Any) -> Any:
    """f_i(w) of all rows (visit None), or of those drawn."""
    import jax
    import jax.numpy as jnp

    about = every.about
    params = about.layout.params(w)

    def loss(leaves: list[Any]) -> Any:
        return jnp.asarray(about.loss(params, jax.tree.unflatten(about.batches, leaves))).astype(w.dtype)

    if visit is not None:
        assert about.size is not None
        rows = drawn_rows(jnp, about.seed, len(every.rows), i, visit, step, every.rows[i], about.size)
        return every.share[i] * loss([a.at[i, rows].get(mode="promise_in_bounds") for a in every.data])
    mine = [a.at[i].get(mode="promise_in_bounds") for a in every.data]
    if about.even:
        return every.share[i] * loss(mine)
    each = jax.vmap(lambda row: loss([a[None] for a in row]))(mine)
    counted = jnp.arange(len(each)) < every.rows[i]
    return every.share[i] * jnp.sum(jnp.where(counted, each, 0.0)) / every.rows[i]


@cache
def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    import jax

    return jax.jit(value_at), jax.jit(jax.grad(value_at, argnums=-1))


@final
class JaxLoss(Sequence[JaxObjective]):
    r"""The losses of all agents by one function in JAX, such as that of a neural network.

        f_i(w) = share_i mean_l loss(params(w), row l of agent i)

    The model w is one vector of float64: all floating-point arrays of the params, one after another. The loss is computed
    in the dtype of the params. Other leaves of the pytree stay as they are.

    A batch of b rows is one row from each of b equal parts of the agent's d rows, row_j = floor((j + u_j) d / b), with u_j
    a function of (seed, agent, hop, local step, j). So runs repeat and resume exactly, and no row is more likely than
    another.

    Parameters
    ----------
    loss : loss(params, batch), the mean over the rows of a batch, as one number. `batch` has the structure of one agent's
        data, with some of its rows. If agents have unequal numbers of rows, a loss of all rows is the mean of losses of
        batches of one row each
    params : the initial model, which every token and agent starts with: any pytree, such as a dict of arrays, the params
        of a flax module, or an equinox module
    data : one pytree of arrays per agent, rows first, such as [(X_0, y_0), (X_1, y_1)]. Floating-point arrays are
        converted to the dtype of the params
    batch_size : how many rows are drawn at each visit (at each local step of FedAvg); None: all rows of the agent
    seed : of the batches
    weights : rows (share_i = N d_i / D: all rows count alike, as if pooled) or agents (share_i = 1)
    smoothness : L of the mean loss, for methods that step by 1/L: a number, or "estimate": the largest curvature of each
        agent's loss at the initial model, by power iteration. Elsewhere a loss that is not convex may bend more
    metric : metric(params, test), one number, for the column `metric` of a run's history
    test : the held-out rows, a pytree of arrays
    task : classification if a higher metric is better, as of an accuracy; else regression or custom

    Example
    -------
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import amble
    >>> from amble.losses import JaxLoss
    >>> def loss(params, batch):
    ...     x, y = batch
    ...     return jnp.mean((jnp.tanh(x @ params["a"]) @ params["b"] - y) ** 2)
    >>> rng = np.random.default_rng(0)
    >>> params = {"a": rng.normal(size=(3, 8)), "b": rng.normal(size=8)}
    >>> data = [(x := rng.normal(size=(20, 3)), np.sin(x[:, 0])) for _ in range(4)]
    >>> problem = amble.Problem.from_objectives(JaxLoss(loss, params, data, batch_size=5))
    >>> run = amble.simulate(amble.WPG(alpha=0.05), problem, "ring", hops=400)
    >>> bool(run.history["objective"][-1] < 0.1 * run.history["objective"][0])
    True
    >>> problem.as_params(run.model)["a"].shape
    (3, 8)
    """

    def __init__(
        self,
        loss: Callable[[Any, Any], Any],
        params: Any,
        data: Sequence[Any],
        *,
        batch_size: int | None = None,
        seed: int = 0,
        weights: str = "rows",
        smoothness: float | str | None = None,
        metric: Callable[[Any, Any], Any] | None = None,
        test: Any = None,
        task: str = "custom",
    ) -> None:
        jax = need("jax", "sim")
        _register()
        check_functions(loss, metric, test)
        for name, value, known in (("weights", weights, WEIGHTS), ("task", task, TASKS)):
            if value not in known:
                raise unknown(name, value, known)
        self.task, self.metric = task, metric
        self.layout = Layout(params)
        self.dimension, self.start = self.layout.dimension, self.layout.vector(params)
        leaves, batches, rows = stack(data, self.layout.dtype)
        with jax.enable_x64(True):
            self.test = None if test is None else jax.tree.map(lambda a: as_device(a, self.layout.dtype), test)
            self.stacked = Stacked(
                About(loss, self.layout, batches, len(set(rows)) == 1, check_batch_size(batch_size, max(rows)), check_seed(seed)),
                tuple(jax.device_put(leaf) for leaf in leaves),
                np.array(rows, np.int64),
                np.array(rows) * len(rows) / sum(rows) if weights == "rows" else np.ones(len(rows)),
                None,
            )
            self._check_loss()
            if smoothness is not None:
                self.stacked = self.stacked._replace(smoothness=self._smoothness(smoothness))

    def __len__(self) -> int:
        return len(self.stacked.rows)

    @overload
    def __getitem__(self, i: int) -> JaxObjective: ...
    @overload
    def __getitem__(self, i: slice) -> list[JaxObjective]: ...
    def __getitem__(self, i: int | slice) -> JaxObjective | list[JaxObjective]:
        numbers = range(len(self))[i]
        return [self.stacked.agent(k) for k in numbers] if isinstance(numbers, range) else self.stacked.agent(numbers)

    @property
    def advice(self) -> dict[str, str]:
        """What a method lacks here, and what to do."""
        step = 'give JaxLoss smoothness= a number, or "estimate"'
        return {"smoothness": step}

    def params(self, w: ArrayLike) -> Any:
        """The pytree of a model."""
        return self.layout.given(np.asarray(w, np.float64))

    def vector(self, params: Any) -> Array:
        """The model of a pytree."""
        return self.layout.vector(params)

    def metrics(self, W: Array) -> Array:
        """The metric of each row of W on the held-out rows; nan without them."""
        import jax

        if self.metric is None:
            return np.full(len(W), np.nan)
        with jax.enable_x64(True):
            return np.array([float(self._measure(w, self.test)) for w in W])

    @cached_property
    def _measure(self) -> Callable[..., Any]:
        import jax

        return jax.jit(lambda w, test: self.metric(self.layout.params(w), test))  # type: ignore[misc]

    def flops(self, kind: str) -> Array:
        """Operations of one call at each agent: JAX's own count, or six per unknown and row."""
        import jax

        every, p = self.stacked, self.dimension
        size, most = every.about.size, int(every.rows.max())
        if kind != "grad":
            raise AttributeError(kind)
        with jax.enable_x64(True):
            visit = None if size is None else np.int64(0)
            counted = _compiled()[1].lower(every, np.int64(0), visit, np.int64(0), self.start).cost_analysis() or {}
        once = float(counted.get("flops", 6.0 * p * (size or most)))
        return np.full(len(self), once) if size is not None else once * every.rows / most

    @cached_property
    def digest(self) -> str:
        """Names the losses by their data, their first model and what they say about it."""
        about = self.stacked.about
        sha = hashlib.sha256(f"{about.size} {about.seed} {self[0].value(self.start):.2e}".encode())
        for leaf in (*self.stacked.data, self.stacked.rows, self.stacked.share, self.start):
            sha.update(np.ascontiguousarray(np.asarray(leaf)).view(np.uint8).data)
        return sha.hexdigest()

    def _check_loss(self) -> None:
        """One number of the loss and of the metric, by their shapes alone."""
        import jax

        every = self.stacked
        rows = every.about.size or int(every.rows[0])
        batch = jax.tree.unflatten(every.about.batches, [np.zeros((rows, *a.shape[2:]), a.dtype) for a in every.data])
        _check_answer("loss(params, batch)", every.about.loss, self.layout, batch, LOSS_ADVICE)
        if self.metric is not None:
            _check_answer("metric(params, test)", self.metric, self.layout, self.test, "it must return one number")

    def _smoothness(self, given: float | str) -> Array:
        if is_number(given) and not isinstance(given, str) and 0 < given < np.inf:
            return np.asarray(given * self.stacked.share, np.float64)
        if given != "estimate":
            raise AmbleError(f'smoothness={given!r} was given; it must be a number above zero, or "estimate".')
        first = np.random.default_rng(0).normal(size=self.dimension)
        L = np.array([float(_estimate()(self.stacked, np.int64(i), self.start, first)) for i in range(len(self))])
        if not (np.isfinite(L).all() and (L > 0).all()):
            raise AmbleError(
                'smoothness="estimate" was given, and the loss has no curvature at the initial model; give a number.'
            )
        return L


def stack(data: Any, dtype: Any) -> tuple[list[Any], Any, list[int]]:
    """The arrays of all agents, their structure, and how many rows each agent has; checked."""
    import jax

    advice = "give one pytree of arrays per agent, rows first, such as [(X_0, y_0), (X_1, y_1)]"
    if not isinstance(data, Sequence) or isinstance(data, str) or not data:
        raise AmbleError(f"data={shown(data)} was given; {advice}.")
    agents, rows = [], []
    for i, tree in enumerate(data):
        leaves, treedef = jax.tree.flatten(tree)
        arrays = [np.asarray(leaf) for leaf in leaves]
        if i == 0:
            first, batches = arrays, treedef
        if treedef != batches or [a.shape[1:] for a in arrays] != [a.shape[1:] for a in first]:
            raise AmbleError(f"the data of agent {i} have another structure or width than those of agent 0; {advice}.")
        lengths = {len(a) if a.ndim else 0 for a in arrays}
        if len(lengths) != 1 or 0 in lengths:
            raise AmbleError(f"the data of agent {i} have arrays of {sorted(lengths)} rows; {advice}.")
        agents.append([as_host(a, dtype, f"the data of agent {i}") for a in arrays])
        rows.append(lengths.pop())
    most = max(rows)
    padded = [[np.concatenate([a, np.repeat(a[:1], most - len(a), axis=0)]) for a in arrays] for arrays in agents]
    return [np.stack(leaf) for leaf in zip(*padded, strict=True)], batches, rows


def as_host(a: Any, dtype: Any, whose: str) -> Any:
    """An array with its floating-point numbers in the dtype of the params."""
    import jax.numpy as jnp

    if not jnp.issubdtype(a.dtype, jnp.number) and a.dtype != bool:
        raise AmbleError(f"{whose} have an array of type {a.dtype}; give numbers.")
    return a.astype(dtype) if jnp.issubdtype(a.dtype, jnp.floating) else a


def as_device(a: Any, dtype: Any) -> Any:
    import jax

    return jax.device_put(as_host(np.asarray(a), dtype, "the test rows"))


def check_functions(loss: object, metric: object, test: object) -> None:
    if not callable(loss):
        raise AmbleError(f"loss={shown(loss)} was given; {LOSS_ADVICE}.")
    if metric is not None and not callable(metric):
        raise AmbleError(f"metric={shown(metric)} was given; it must be a function metric(params, test).")
    if (metric is None) != (test is None):
        raise AmbleError("metric and test belong together: a function, and the held-out rows that it is called with.")


def _check_answer(call: str, function: Callable[..., Any], layout: Layout, batch: Any, advice: str) -> None:
    import jax
    import jax.numpy as jnp

    def one(w: Any, batch: Any) -> Any:
        return function(layout.params(w), batch)

    try:
        answer = jax.eval_shape(one, jax.ShapeDtypeStruct((layout.dimension,), np.float64), batch)
    except Exception as error:
        message = next(iter(str(error).splitlines()), "").rstrip(".")
        raise AmbleError(f"{call} fails with {type(error).__name__}: {message}; {advice}.") from error
    if not hasattr(answer, "shape") or answer.shape != () or not jnp.issubdtype(answer.dtype, jnp.number):
        kind = f"an array of shape {answer.shape}" if hasattr(answer, "shape") else f"a {type(answer).__name__}"
        raise AmbleError(f"{call} returns {kind}; {advice}.")


@cache
def _estimate() -> Callable[..., Any]:
    """The largest curvature of an agent's loss at w, up to its sign, by power iteration."""
    import jax
    import jax.numpy as jnp

    def estimate(every: Stacked, i: Any, w: Any, v: Any) -> Any:
        def slope(w: Any) -> Any:
            return jax.grad(value_at, argnums=-1)(every, i, None, 0, w)

        def times(_: Any, v: Any) -> Any:
            return jax.jvp(slope, (w,), (v / jnp.linalg.norm(v),))[1]

        return jnp.linalg.norm(jax.lax.fori_loop(0, POWER_STEPS, times, v))

    return jax.jit(estimate)


@cache
def _register() -> None:
    import jax

    jax.tree_util.register_static(About)
