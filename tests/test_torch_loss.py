"""TorchLoss against JaxLoss and the built-in loss; its modules, buffers and state_dicts. Skipped without PyTorch."""

import doctest

import jax.numpy as jnp
import numpy as np
import pytest

import amble
from amble import AmbleError
from amble.losses import JaxLoss, torch_loss
from amble.testing import check_objective

torch = pytest.importorskip("torch")
from amble.losses import TorchLoss  # noqa: E402 - PyTorch first

SIZES = (5, 9, 12, 7)


def go(method, problem, hops=40, every=10, **options):
    return amble.simulate(method, problem, "ring", hops=hops, every=every, optimum=False, progress=False, **options)


def rows(seed=0):
    rng = np.random.default_rng(seed)
    return [(X := rng.normal(size=(d, 3)), X @ [1.0, -2.0, 0.5] + rng.normal(size=d)) for d in SIZES]


def network(*extra, dtype=torch.float64):
    torch.manual_seed(0)
    layers = [torch.nn.Linear(3, 4), torch.nn.Tanh(), *extra, torch.nn.Linear(4, 1)]
    return torch.nn.Sequential(*layers).to(dtype)


def squares(module, batch):
    X, y = batch
    return ((module(X)[:, 0] - y) ** 2).mean()


def jax_squares(params, batch):
    X, y = batch
    hidden = jnp.tanh(X @ params["0.weight"].T + params["0.bias"])
    return jnp.mean(((hidden @ params["2.weight"].T + params["2.bias"])[:, 0] - y) ** 2)


def pair(**options):
    """One network in PyTorch and in JAX, where a dict's arrays come in the order of their names."""
    module = network()
    params = {name: p.detach().numpy() for name, p in module.named_parameters()}
    losses = TorchLoss(module, squares, rows(), **options), JaxLoss(jax_squares, params, rows(), **options)
    return [amble.Problem.from_objectives(loss) for loss in losses]


@pytest.mark.parametrize("options", [{}, {"batch_size": 4, "seed": 3}], ids=str)
@pytest.mark.parametrize(
    "method", [amble.WPG(alpha=0.05, tokens=2), amble.FedAvg(local_steps=2), amble.EXTRA()], ids=str
)
def test_a_network_runs_as_in_jax(method, options):
    """Also which rows each visit draws."""
    ours, theirs = pair(**options)
    one, other = (go(method, problem) for problem in (ours, theirs))
    mine, known = ours.as_params(one.model), theirs.as_params(other.model)
    for name, array in known.items():
        np.testing.assert_allclose(mine[name].numpy(), array, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(one.history["objective"], other.history["objective"], rtol=1e-10)


def test_a_linear_module_runs_as_the_built_in_loss():
    linear = torch.nn.Linear(3, 1, bias=False).double()
    torch.nn.init.zeros_(linear.weight)
    loss = TorchLoss(linear, lambda module, batch: squares(module, batch) / 2, rows())
    check_objective(loss[1], dimension=3)
    known = amble.Problem.from_agents(rows(), task="regression", scale=False, intercept=False, ridge=0.0)
    mine, other = (go(amble.DGD(), problem) for problem in (amble.Problem.from_objectives(loss), known))
    np.testing.assert_allclose(mine.consensus, other.consensus, rtol=1e-10, atol=1e-12)
    assert linear.weight.abs().sum() == 0  # the module that was given is left alone


def test_runs_with_dropout_repeat_and_resume_bit_for_bit(tmp_path):
    def problem():
        module = network(torch.nn.Dropout(0.5), dtype=torch.float32)
        return amble.Problem.from_objectives(TorchLoss(module, squares, rows(), batch_size=4))

    whole, again = go(amble.WPG(alpha=0.05), problem()), go(amble.WPG(alpha=0.05), problem())
    np.testing.assert_array_equal(whole.consensus, again.consensus)
    half = amble.load_run(go(amble.WPG(alpha=0.05), problem(), hops=17).save(tmp_path / "half"))
    np.testing.assert_array_equal(amble.resume(half, problem(), hops=40, progress=False).consensus, whole.consensus)
    f = problem().objective(1)
    before = torch.random.get_rng_state()
    slopes = [f.drawn(hop).grad(whole.model) for hop in (3, 3, 4)]
    assert torch.equal(before, torch.random.get_rng_state())  # the user's own random numbers stay as they are
    np.testing.assert_array_equal(slopes[0], slopes[1])
    assert np.abs(slopes[0] - slopes[2]).max() > 1e-3


def test_the_result_is_a_state_dict_with_buffers_and_frozen_parameters():
    class Scaled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.full((3,), 0.5))
            self.frozen = torch.nn.Parameter(torch.ones(3), requires_grad=False)
            self.linear = torch.nn.Linear(3, 1)

        def forward(self, x):
            return self.linear((x - self.mean) * self.frozen)

    module = Scaled()
    problem = amble.Problem.from_objectives(TorchLoss(module, squares, rows()))
    assert problem.dimension == 4
    run = go(amble.WPG(alpha=0.1), problem)
    state = problem.as_params(run.model)
    assert {*state} == {*module.state_dict()}
    torch.testing.assert_close(state["mean"], module.mean)
    module.load_state_dict(state)
    assert all(value.dtype == torch.float32 for value in state.values())
    further = go(amble.WPG(alpha=0.1), problem, start=state)
    np.testing.assert_allclose(further.consensus[0], run.model, rtol=1e-6)
    np.testing.assert_array_equal(go(amble.WPG(), problem, hops=1, start=module).consensus[0], further.consensus[0])


def test_a_dataset_a_metric_and_what_is_not_there():
    sets = [torch.utils.data.TensorDataset(torch.as_tensor(X), torch.as_tensor(y)) for X, y in rows()]
    problem, same = (
        amble.Problem.from_objectives(TorchLoss(network(), squares, data, metric=squares, test=rows()[0]))
        for data in (sets, rows())
    )
    assert problem.digest == same.digest
    assert problem.digest != pair()[0].digest  # without test rows
    run = go(amble.WPG(alpha=0.05), problem)
    assert run.history["metric"][-1] < run.history["metric"][0]
    with pytest.raises(AmbleError, match="JaxLoss only; use engine='plain'"):
        go(amble.WPG(), problem, engine="compiled")
    with pytest.raises(AmbleError, match=r"smoothness of your objectives.*give TorchLoss smoothness= a number"):
        go(amble.Relay(), problem)
    with pytest.raises(AmbleError, match=r"I-BCD calls prox.*WPG"):
        go(amble.IBCD(), problem)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"module": 3}, "3 was given as the module; give a torch.nn.Module"),
        ({"module": torch.nn.Tanh()}, "no floating-point parameter that requires a gradient"),
        ({"module": network(torch.nn.BatchNorm1d(4))}, "changes its buffer 2.running_mean in training"),
        ({"loss": lambda module, batch: module(batch[0])}, r"returns a tensor of shape \(5, 1\)"),
        ({"loss": lambda _module, batch: batch[1].mean()}, "made from the module's parameters"),
        ({"loss": lambda module, batch: module(batch)}, "fails with TypeError"),
        ({"data": []}, "data=list was given; give a list with the rows of each agent"),
        ({"data": [(np.zeros((4, 3)), np.zeros(5))]}, r"agent 0 have tensors of \[4, 5\] rows"),
        ({"data": [(np.full((4, 3), np.nan), np.zeros(4))]}, "not finite"),
        ({"data": [("text", np.zeros(4))]}, "have a str that is no tensor of numbers"),
        ({"smoothness": [1.0, 2.0]}, "one number or one per agent"),
    ],
)
def test_bad_input_is_one_sentence(changes, sentence):
    given = {"module": network(), "loss": squares, "data": rows(), **changes}
    with pytest.raises(AmbleError, match=sentence):
        TorchLoss(**given)
    problem = amble.Problem.from_objectives(TorchLoss(network(), squares, rows()))
    with pytest.raises(AmbleError, match=r"give a state_dict with 0\.weight"):
        go(amble.WPG(), problem, start={"weight": torch.zeros(3)})


def test_the_example_of_the_docstring():
    assert doctest.testmod(torch_loss).failed == 0
