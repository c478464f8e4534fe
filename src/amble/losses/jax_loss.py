"""JaxLoss: any loss(params, batch) written in JAX, for params in any pytree."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, final, overload

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array
from amble.errors import AmbleError, need
from amble.losses.batches import check_batch_size
from amble.losses.jax_checks import LOSS_ADVICE, as_device, check_answer, stack
from amble.losses.jax_objective import About, JaxObjective, Stacked, estimate_of, register
from amble.losses.model_checks import check_functions, check_task, digest_of, second, shares_of, smoothness_given
from amble.losses.pytree import Layout
from amble.randomness import check_seed


@final
class JaxLoss(Sequence[JaxObjective]):
    r"""The losses of all agents by one function in JAX, such as that of a neural network.

        f_i(w) = share_i mean_l loss(params(w), row l of agent i)

    The model w is one vector of float64: all floating-point arrays of the params, one after another. The loss is
    computed in the dtype of the params. Other leaves of the pytree stay as they are.

    A batch of b rows has one row from each of b equal parts of the agent's d rows: row_j = floor((j + u_j) d / b). Each
    u_j is uniform, and a function of (seed, agent, hop, local step, j). So no row is more likely than another, and runs
    repeat and resume exactly.

    Parameters
    ----------
    loss : loss(params, batch), the mean over the rows of a batch, as one number. `batch` has the structure of one
        agent's data, with some of its rows. If agents have unequal numbers of rows, the loss of all rows of an agent is
        computed row by row, from batches of one row each
    params : the initial model, which every token and agent starts with: any pytree, such as a dict of arrays, the
        params of a flax module, or an equinox module
    data : one pytree of arrays per agent, rows first, such as [(X_0, y_0), (X_1, y_1)]. Floating-point arrays are
        converted to the dtype of the params
    batch_size : how many rows are drawn at each visit (at each local step of FedAvg); None: all rows of the agent
    seed : of the batches
    weights : rows (share_i = N d_i / D: all rows count alike, as if pooled) or agents (share_i = 1)
    smoothness : L of the mean loss, for methods that step by 1/L: a number, one per agent, or "estimate": the
        largest curvature of each agent's loss at the initial model, by power iteration. Elsewhere a loss that is not
        convex may bend more
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

    advice: ClassVar[dict[str, str]] = {"smoothness": 'give JaxLoss smoothness= a number, or "estimate"'}

    def __init__(
        self,
        loss: Callable[[Any, Any], Any],
        params: Any,
        data: Sequence[Any],
        *,
        batch_size: int | None = None,
        seed: int = 0,
        weights: str = "rows",
        smoothness: ArrayLike | str | None = None,
        metric: Callable[[Any, Any], Any] | None = None,
        test: Any = None,
        task: str = "custom",
    ) -> None:
        jax = need("jax", "sim")
        register()
        check_functions(loss, LOSS_ADVICE, metric, test)
        self.task, self.metric = check_task(task), metric
        self.layout = Layout(params)
        self.dimension, self.start = self.layout.dimension, self.layout.vector(params)
        leaves, batches, rows = stack(data, self.layout.dtype)
        size = check_batch_size(batch_size, max(rows))
        with jax.enable_x64(True):
            self.test = None if test is None else jax.tree.map(lambda a: as_device(a, self.layout.dtype), test)
            self.stacked = Stacked(
                About(loss, self.layout, batches, len(set(rows)) == 1, size, check_seed(seed)),
                tuple(jax.device_put(leaf) for leaf in leaves),
                np.array(rows, np.int64),
                shares_of(rows, weights),
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

    def flops(self, kind: str) -> Array:  # noqa: ARG002 - there are only gradients
        """Operations of a gradient at each agent: two per unknown and row forwards, and twice as many backwards."""
        size = self.stacked.about.size
        return 6.0 * self.dimension * (self.stacked.rows if size is None else np.full(len(self), size))

    @cached_property
    def digest(self) -> str:
        """Names the losses by their data, their first model and what they say about it and about a second one."""
        import jax

        every = self.stacked
        L = [] if every.smoothness is None else [f"{number:.2e}" for number in every.smoothness]
        said = [f"{float(self[0].value(w)):.2e}" for w in (self.start, second(self.start))]
        measured = [f"{number:.2e}" for number in self.metrics(self.start[None])]
        about = f"{every.about.size} {every.about.seed} {said} {measured} {L}"
        return digest_of(about, [*every.data, every.rows, every.share, self.start, *jax.tree.leaves(self.test)])

    def _check_loss(self) -> None:
        """One number of the loss and of the metric, by their shapes alone."""
        import jax

        every = self.stacked
        rows = every.about.size or int(every.rows[0])
        batch = jax.tree.unflatten(every.about.batches, [np.zeros((rows, *a.shape[2:]), a.dtype) for a in every.data])
        check_answer("loss(params, batch)", every.about.loss, self.layout, batch, LOSS_ADVICE)
        if self.metric is not None:
            check_answer("metric(params, test)", self.metric, self.layout, self.test, "it must return one number")

    def _smoothness(self, given: ArrayLike | str) -> Array:
        if not (isinstance(given, str) and given == "estimate"):
            return smoothness_given(given, self.stacked.share, ', or "estimate"')
        first = np.random.default_rng(0).normal(size=self.dimension)
        L = np.array([float(estimate_of()(self.stacked, np.int64(i), self.start, first)) for i in range(len(self))])
        if not (np.isfinite(L).all() and (L > 0).all()):
            raise AmbleError(
                'smoothness="estimate" was given, and the loss has no curvature at the initial model; give a number.'
            )
        return L
