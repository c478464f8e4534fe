"""TorchLoss: any loss(module, batch) of a PyTorch module. The plain engine runs it."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, final, overload

import numpy as np
from numpy.typing import ArrayLike

from amble.arrays import Array, Number
from amble.errors import AmbleError, need
from amble.losses.batches import check_batch_size, drawn_rows
from amble.losses.model_checks import check_functions, check_task, digest_of, second, shares_of, smoothness_given
from amble.losses.torch_module import Weights, numbers, seeded
from amble.losses.torch_rows import rows_of, take, tensors
from amble.randomness import check_seed, whole

LOSS_ADVICE = (
    "loss(module, batch) is called with the module and some rows of one agent, and returns a tensor of one number"
)


@final
class TorchObjective:
    """One agent's loss: of all its rows, or of those that a visit drew."""

    def __init__(self, every: "TorchLoss", i: int, visit: int | None = None, step: int = 0) -> None:
        self.every, self.i, self.visit, self.step = every, i, visit, step
        if every.smoothness is not None:
            self.smoothness = float(every.smoothness[i])

    def drawn(self, hop: int) -> "TorchObjective":
        """The loss as one visit sees it. Random layers, such as dropout, draw anew at every visit."""
        return TorchObjective(self.every, self.i, int(hop) + 1)

    def again(self, step: int) -> "TorchObjective":
        """The same at a later local step of the visit, with other rows."""
        return TorchObjective(self.every, self.i, self.visit, step)

    @property
    def share(self) -> float:
        return float(self.every.share[self.i])

    @property
    def batch(self) -> Any:
        """The rows that this loss is of."""
        every = self.every
        if every.size is None or self.visit is None:
            return every.data[self.i]
        at = (every.seed, len(every), self.i, self.visit, self.step)
        return take(every.data[self.i], drawn_rows(np, *at, every.rows[self.i], every.size))

    def value(self, w: Array) -> Number:
        """Of the module as for predictions, without dropout."""
        import torch

        with torch.no_grad():
            return self.share * float(self.every.loss(self.every.net.at(w, False), self.batch))

    def grad(self, w: Array) -> Array:
        """Of the module in the mode it was given in."""
        import torch

        net = self.every.net
        with seeded(net.device, whole(self.every.seed, self.i, self.visit or 0, self.step)):
            answer = self.every.loss(net.at(w, True), self.batch)
        slopes = torch.autograd.grad(answer, net.parameters, allow_unused=True)
        pairs = zip(slopes, net.parameters, strict=True)
        return self.share * np.concatenate([np.zeros(p.numel()) if g is None else numbers(g) for g, p in pairs])


@final
class TorchLoss(Sequence[TorchObjective]):
    r"""The losses of all agents by a module of PyTorch, in the plain engine.

        f_i(w) = share_i loss(module with the weights w, rows of agent i)

    The model w is one vector of float64: the parameters that require a gradient, in the order of
    `module.named_parameters()`. The loss is computed in the dtype and on the device of the module. Frozen parameters
    and buffers stay as they are; a module that changes its buffers in training, as batch normalisation does, is
    refused.

    Batches are drawn as by `JaxLoss`. Layers such as dropout draw by (seed, agent, hop, local step) too, so runs repeat
    and resume exactly on a CPU; on a GPU if its algorithms are deterministic.

    Parameters
    ----------
    module : a torch.nn.Module with its initial weights, which every token and agent starts with. It is copied
    loss : loss(module, batch), the mean over the rows of a batch, as a tensor of one number
    data : of each agent a tuple, list or dict of tensors or arrays, rows first, or a torch Dataset, which is read once.
        Floating-point ones are converted to the dtype of the module
    batch_size : how many rows are drawn at each visit (at each local step of FedAvg); None: all rows of the agent
    seed : of the batches
    weights : rows (share_i = N d_i / D: all rows count alike, as if pooled) or agents (share_i = 1)
    smoothness : L of the mean loss, for methods that step by 1/L: a number, or one per agent
    metric : metric(module, test), one number, for the column `metric` of a run's history
    test : the held-out rows, as the data of an agent
    task : classification if a higher metric is better, as of an accuracy; else regression or custom

    Example
    -------
    >>> import torch
    >>> import amble
    >>> from amble.losses import TorchLoss
    >>> _ = torch.manual_seed(0)
    >>> module = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    >>> def loss(module, batch):
    ...     x, y = batch
    ...     return ((module(x)[:, 0] - y) ** 2).mean()
    >>> data = [(x := torch.randn(20, 3), torch.sin(x[:, 0])) for _ in range(4)]
    >>> problem = amble.Problem.from_objectives(TorchLoss(module, loss, data, batch_size=5))
    >>> run = amble.simulate(amble.WPG(alpha=0.1), problem, "ring", hops=400)
    >>> bool(run.history["objective"][-1] < 0.2 * run.history["objective"][0])
    True
    >>> _ = module.load_state_dict(problem.as_params(run.model))
    """

    advice: ClassVar[dict[str, str]] = {"smoothness": "give TorchLoss smoothness= a number"}
    stacked: ClassVar[None] = None  # the compiled engine cannot run it

    def __init__(
        self,
        module: Any,
        loss: Callable[[Any, Any], Any],
        data: Sequence[Any],
        *,
        batch_size: int | None = None,
        seed: int = 0,
        weights: str = "rows",
        smoothness: ArrayLike | None = None,
        metric: Callable[[Any, Any], Any] | None = None,
        test: Any = None,
        task: str = "custom",
    ) -> None:
        need("torch", "torch")
        check_functions(loss, LOSS_ADVICE, metric, test)
        self.loss, self.metric, self.task, self.seed = loss, metric, check_task(task), check_seed(seed)
        self.net = Weights(module)
        self.dimension, self.start = self.net.dimension, self.net.vector(self.net.module)
        advice = "give a list with the rows of each agent, such as [(X_0, y_0), (X_1, y_1)]"
        if not isinstance(data, Sequence) or isinstance(data, str) or not data:
            raise AmbleError(f"data={type(data).__name__} was given; {advice}.")
        both = [rows_of(each, self.net, f"the data of agent {i}") for i, each in enumerate(data)]
        self.data, self.rows = [batch for batch, _ in both], [rows for _, rows in both]
        self.test = None if test is None else rows_of(test, self.net, "the test rows")[0]
        self.size, self.share = check_batch_size(batch_size, max(self.rows)), shares_of(self.rows, weights)
        self.smoothness = None if smoothness is None else smoothness_given(smoothness, self.share)
        self._check_loss()

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, i: int) -> TorchObjective: ...
    @overload
    def __getitem__(self, i: slice) -> list[TorchObjective]: ...
    def __getitem__(self, i: int | slice) -> TorchObjective | list[TorchObjective]:
        agents = range(len(self))[i]
        return [TorchObjective(self, k) for k in agents] if isinstance(agents, range) else TorchObjective(self, agents)

    def params(self, w: Array) -> dict[str, Any]:
        """The state_dict of a model."""
        return self.net.state_dict(w)

    def vector(self, params: Any) -> Array:
        """The model of a state_dict, or of a module."""
        return self.net.vector(params)

    def metrics(self, W: Array) -> Array:
        """The metric of each row of W on the held-out rows; nan without them."""
        import torch

        if self.metric is None:
            return np.full(len(W), np.nan)
        with torch.no_grad():
            return np.array([float(self.metric(self.net.at(w, False), self.test)) for w in W])

    def flops(self, kind: str) -> Array:  # noqa: ARG002 - there are only gradients
        """Operations of a gradient at each agent: two per unknown and row forwards, and twice as many backwards."""
        return 6.0 * self.dimension * (np.array(self.rows) if self.size is None else np.full(len(self), self.size))

    @cached_property
    def digest(self) -> str:
        """Names the losses by their data, their first model and what they say about it and about a second one."""
        L = [] if self.smoothness is None else [f"{number:.2e}" for number in self.smoothness]
        said = [f"{float(self[0].value(w)):.2e}" for w in (self.start, second(self.start))]
        measured = [f"{number:.2e}" for number in self.metrics(self.start[None])]
        about = f"{self.size} {self.seed} {said} {measured} {L}"
        leaves = [
            leaf for batch in [*self.data, *([] if self.test is None else [self.test])] for leaf in tensors(batch)
        ]
        return digest_of(about, [*(leaf.cpu().numpy() for leaf in leaves), self.share, self.start])

    def _check_loss(self) -> None:
        """Whether the loss answers, and leaves the module's buffers as they are."""
        import torch

        first = TorchObjective(self, 0, 0)
        try:
            answer = self.loss(self.net.at(self.start, True), first.batch)
        except Exception as error:
            message = next(iter(str(error).splitlines()), "").rstrip(".")
            raise AmbleError(
                f"loss(module, batch) fails with {type(error).__name__}: {message}; {LOSS_ADVICE}."
            ) from error
        if not isinstance(answer, torch.Tensor) or answer.dim() or not answer.requires_grad:
            shape = (
                f"a tensor of shape {tuple(answer.shape)}"
                if isinstance(answer, torch.Tensor)
                else type(answer).__name__
            )
            raise AmbleError(f"loss(module, batch) returns {shape}; {LOSS_ADVICE}, made from the module's parameters.")
        if changed := self.net.changed_buffers():
            raise AmbleError(
                f"the module changes its buffer {changed[0]} in training, and a token carries parameters alone; use "
                "GroupNorm or LayerNorm in place of BatchNorm, or give the module after module.eval()."
            )
