"""JaxLoss against the built-in losses, the engines against each other, and a small neural network on digits."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amble
from amble import AmbleError
from amble.losses import JaxLoss
from amble.losses.batches import drawn_rows
from amble.losses.objective import again, drawn
from amble.methods import METHODS
from amble.methods.optional import choices
from amble.testing import check_objective

SIZES = (5, 9, 12, 7, 6)  # rows of the agents
RIDGE = 0.1


def rows(seed=0, labels=False):
    rng = np.random.default_rng(seed)
    data = [(X := rng.normal(size=(d, 3)), X @ [1.0, -2.0, 0.5] + rng.normal(size=d)) for d in SIZES]
    return [(X, (y > 0) * 1.0) for X, y in data] if labels else data


def squares(w, batch):
    X, y = batch
    return jnp.mean((X @ w - y) ** 2) / 2 + RIDGE / 2 * w @ w


def logistic(w, batch):
    X, y = batch
    return jnp.mean(jnp.logaddexp(0, -(2 * y - 1) * (X @ w))) + RIDGE / 2 * w @ w


def gradient_methods():
    """All methods that call the gradient alone, in each of their forms."""
    for kind in METHODS.values():
        for form in choices(kind).get("form", (None,)):
            method = kind() if form is None else kind(form=form)
            # the inexact form takes a Hessian times a vector
            if form not in ("auto", "inexact") and set(method.work) == {"grad"}:
                yield pytest.param(method, id=method.label)


def pair(function, labels=False, **options):
    """The same problem as a JaxLoss and with the built-in loss."""
    data, task = rows(labels=labels), "classification" if labels else "regression"
    known = amble.Problem.from_agents(data, task=task, scale=False, intercept=False, ridge=RIDGE)
    L = np.asarray(known.stacked.smoothness / known.stacked.share)
    return amble.Problem.from_objectives(JaxLoss(function, np.zeros(3), data, smoothness=L, **options)), known


SQUARES, LOGISTIC = pair(squares), pair(logistic, labels=True)


def go(method, problem, hops=40, every=10, **options):
    return amble.simulate(method, problem, "ring", hops=hops, every=every, progress=False, **options)


@pytest.mark.parametrize("method", [*gradient_methods()])
def test_every_gradient_method_runs_as_with_the_built_in_loss(method):
    """Agents have 5 to 12 rows, and rows count alike."""
    mine, known = (go(method, problem) for problem in SQUARES)
    np.testing.assert_allclose(mine.consensus, known.consensus, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mine.models, known.models, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mine.history["objective"], known.history["objective"], rtol=1e-10)
    np.testing.assert_allclose(mine.history["distance"], known.history["distance"], rtol=1e-5, atol=1e-8)


def test_logistic_too_and_agents_that_count_alike():
    mine, known = (go(amble.WPG(alpha=0.3), problem) for problem in LOGISTIC)
    np.testing.assert_allclose(mine.consensus, known.consensus, rtol=1e-10, atol=1e-12)
    alike = JaxLoss(squares, np.zeros(3), rows(), weights="agents")
    known = amble.Problem.from_agents(rows(), scale=False, intercept=False, ridge=RIDGE, weights="agents")
    assert amble.Problem.from_objectives(alike).value(np.ones(3)) == pytest.approx(known.value(np.ones(3)), rel=1e-12)


def test_value_and_grad_agree_and_the_estimated_smoothness_is_the_largest_eigenvalue():
    loss = JaxLoss(squares, np.zeros(3), rows(), smoothness="estimate")
    check_objective(loss[1], dimension=3)
    np.testing.assert_allclose(loss.stacked.smoothness, SQUARES[1].stacked.smoothness, rtol=1e-3)
    check_objective(JaxLoss(squares, np.zeros(3), rows(), batch_size=4)[1].drawn(7), dimension=3)


@pytest.mark.parametrize("method", [amble.WPG(alpha=0.1, tokens=2), amble.FedAvg(local_steps=2), amble.DGD()], ids=str)
def test_both_engines_draw_the_same_rows(method):
    problem = amble.Problem.from_objectives(JaxLoss(squares, np.zeros(3), rows(), batch_size=4, seed=3))
    one, other = (go(method, problem, engine=engine) for engine in ("compiled", "plain"))
    np.testing.assert_allclose(one.consensus, other.consensus, rtol=1e-11, atol=1e-13)
    full = go(method, SQUARES[0])
    assert np.abs(one.model - full.model).max() > 1e-3


def test_runs_repeat_and_resume_bit_for_bit(tmp_path):
    def problem(seed=0):
        return amble.Problem.from_objectives(JaxLoss(squares, np.ones(3), rows(), batch_size=4, seed=seed))

    whole, again_, other = (go(amble.WPG(alpha=0.1), problem(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(whole.consensus, again_.consensus)
    assert np.abs(whole.model - other.model).max() > 1e-3
    half = amble.load_run(go(amble.WPG(alpha=0.1), problem(), hops=17).save(tmp_path / "half"))
    resumed = amble.resume(half, problem(), hops=40, progress=False)
    np.testing.assert_array_equal(resumed.consensus, whole.consensus)
    with pytest.raises(AmbleError, match="other data or settings"):
        amble.resume(half, problem(1), hops=40)


def test_rows_are_drawn_alike_by_numpy_and_jax_and_each_is_as_likely_as_any_other():
    with jax.enable_x64(True):
        numpys, jaxs = ([drawn_rows(xp, 5, 4, 2, visit, 1, 10, 4) for visit in range(6)] for xp in (np, jnp))
        np.testing.assert_array_equal(numpys, jaxs)
    many = np.concatenate([drawn_rows(np, 5, 4, 2, visit, 0, 10, 4) for visit in range(10_000)])
    shares = np.bincount(many, minlength=10) / len(many)
    np.testing.assert_allclose(shares, 0.1, atol=4 * np.sqrt(0.1 * 0.9 / len(many)))  # four standard errors
    np.testing.assert_array_equal(drawn_rows(np, 5, 4, 2, 3, 0, 10, 10), np.arange(10))  # as many as there are: all
    assert drawn_rows(np, 5, 4, 2, 3, 0, 3, 10).max() == 2


def test_local_steps_of_one_visit_draw_other_rows():
    f = drawn(JaxLoss(squares, np.zeros(3), rows(), batch_size=2)[2], 0)
    slopes = [again(f, step).grad(np.ones(3)) for step in (0, 0, 1)]
    np.testing.assert_array_equal(slopes[0], slopes[1])
    assert np.abs(slopes[0] - slopes[2]).max() > 1e-3
    assert drawn(SQUARES[1].objective(0), 0) is not None  # a loss without batches stays as it is


class Layer(NamedTuple):
    W: object
    activation: object


def test_a_pytree_comes_back_as_it_was_with_what_is_not_trained():
    """As of an equinox module: functions and whole numbers among the leaves; and float32, as of flax."""
    layer = Layer(jnp.ones((3, 2), jnp.float32), jnp.tanh)
    params = {"layers": [layer], "scale": np.full(2, 2.0), "count": np.array(7), "rate": 0.5}

    def loss(params, batch):
        X, y = batch
        hidden = params["layers"][0].activation(X @ params["layers"][0].W)
        return jnp.mean((hidden @ params["scale"] - y) ** 2) * params["rate"] / params["count"]

    problem = amble.Problem.from_objectives(JaxLoss(loss, params, rows()))
    assert problem.dimension == 8
    run = go(amble.WPG(alpha=0.5), problem)
    back = problem.as_params(run.model)
    assert jax.tree.structure(back) == jax.tree.structure(params)
    assert (back["layers"][0].activation, back["count"], back["rate"]) == (jnp.tanh, 7, 0.5)
    assert (back["layers"][0].W.dtype, back["scale"].dtype) == (jnp.float32, np.float64)
    np.testing.assert_array_equal(problem.as_params(run.consensus[0])["scale"], [2.0, 2.0])  # it began with the params
    further = go(amble.WPG(alpha=0.5), problem, start=back)
    np.testing.assert_allclose(further.consensus[0], run.model, rtol=1e-6)  # W has the digits of float32
    assert run.history["objective"][-1] < run.history["objective"][0]


def network(params, x):
    return jnp.tanh(x @ params["A"] + params["a"]) @ params["B"] + params["b"]


def cross_entropy(params, batch):
    x, y = batch
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(network(params, x)), y[:, None], axis=1))


def accuracy(params, batch):
    return jnp.mean(network(params, batch[0]).argmax(axis=1) == batch[1])


def digits(**options):
    data, rng = amble.load("digits"), np.random.default_rng(0)
    X, y = (data.X / 16).astype(np.float32), data.y.astype(int)
    parts = amble.Problem.from_arrays(X[:1400], y[:1400], agents=10, how="dirichlet").parts
    shapes = {"A": (64, 32), "a": (32,), "B": (32, 10), "b": (10,)}
    params = {name: np.float32(rng.normal(size=shape) * len(shape) / 16) for name, shape in shapes.items()}
    test = {"metric": accuracy, "test": (X[1400:], y[1400:]), "task": "classification"}
    return amble.Problem.from_objectives(
        JaxLoss(cross_entropy, params, [(X[part], y[part]) for part in parts], **test, **options), name="digits"
    )


def test_a_neural_network_learns_digits_and_the_run_is_read_without_its_code(tmp_path):
    """Dirichlet(0.5) labels, batches of 16, 4,000 visits; scikit-learn's logistic regression of all rows has 0.91."""
    problem = digits(batch_size=16)
    run = go(amble.WPG(alpha=0.5), problem, hops=4000, every=500)
    assert run.history["metric"][0] < 0.3
    assert run.history["metric"][-1] > 0.9
    assert not {"distance", "suboptimality"} & {*run.history}
    assert "only on request" in run.problem["optimum"]["why"]
    with pytest.raises(AmbleError, match="not convex"):
        problem.optimum()
    read = amble.load_run(run.save(tmp_path / "run"))
    np.testing.assert_array_equal(read.model, run.model)
    np.testing.assert_array_equal(read.history["metric"], run.history["metric"])
    assert run.time_to(metric=0.9, cost="hop") <= 4000
    with pytest.raises(AmbleError, match="as_params"):
        read.trained()


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (
            amble.IBCD(),
            "I-BCD calls prox of your objectives, and they have none; take a method that needs only gradients",
        ),
        (amble.Relay(form="full"), "Relay calls hessian of your objectives.*WPG.*FedAvg"),
        (amble.Relay(), 'Relay calls smoothness of your objectives.*give JaxLoss smoothness= a number, or "estimate"'),
    ],
    ids=str,
)
def test_methods_say_what_they_miss(method, sentence):
    problem = amble.Problem.from_objectives(JaxLoss(squares, np.zeros(3), rows()))
    with pytest.raises(AmbleError, match=sentence):
        go(method, problem)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"loss": 3}, "loss=3 was given; loss.params, batch. is called"),
        ({"loss": lambda w, batch: batch[0] @ w}, r"returns an array of shape \(5,\)"),
        ({"loss": lambda w, _: w["a"]}, "fails with .*Error"),
        ({"params": {"rate": 0.5, "count": 3}}, "no array of floating-point numbers to train"),
        ({"data": {}}, "data=a dict was given; give one pytree of arrays per agent"),
        ({"data": (np.zeros((4, 3)), np.zeros(4))}, "the data of agent 1 have another structure or width"),
        ({"data": [(np.zeros((4, 3)), np.zeros(5))]}, r"the data of agent 0 have arrays of \[4, 5\] rows"),
        ({"data": [(np.zeros((0, 3)), np.zeros(0))]}, r"arrays of \[0\] rows"),
        ({"data": [(np.full((4, 3), np.nan), np.zeros(4))]}, "agent 0 have values that are not finite"),
        ({"data": [(np.zeros((4, 3)), np.array(list("abcd")))]}, "have an array of type <U1"),
        ({"batch_size": 0}, "batch_size=0 was given"),
        ({"batch_size": 2.0}, "batch_size=2.0 was given"),
        ({"seed": -1}, "seed=-1 was given"),
        ({"weights": "row"}, "did you mean 'rows'"),
        ({"task": "classify"}, "classification"),
        ({"smoothness": -1.0}, "smoothness=-1.0 was given; it must be above zero"),
        ({"smoothness": "guess"}, "smoothness='guess' was given"),
        ({"metric": squares}, "metric and test belong together"),
        ({"metric": lambda w, _: w, "test": np.zeros(3)}, r"metric.params, test. returns an array of shape \(3,\)"),
    ],
)
def test_bad_input_is_one_sentence(changes, sentence):
    loss, params, data, *_ = {"loss": squares, "params": np.zeros(3), "data": rows(), **changes}.values()
    options = {name: value for name, value in changes.items() if name not in ("loss", "params", "data")}
    with pytest.raises(AmbleError, match=sentence):
        JaxLoss(loss, params, data, **options)


def test_a_start_and_a_model_of_the_wrong_shape_are_refused():
    problem = amble.Problem.from_objectives(JaxLoss(squares, np.zeros(3), rows()))
    with pytest.raises(AmbleError, match=r"shape \(4,\) were given, where the first had \(3,\)"):
        go(amble.WPG(), problem, start=np.zeros(4))
    with pytest.raises(AmbleError, match="give the structure of the first"):
        go(amble.WPG(), problem, start={"w": np.zeros(3)})
    with pytest.raises(AmbleError, match=r"a model of shape \(4,\) was given"):
        problem.as_params(np.zeros(4))
    with pytest.raises(AmbleError, match="not made from a model of your own"):
        SQUARES[1].as_params(np.zeros(3))


def test_losses_that_agree_on_the_first_model_have_unlike_digests():
    data, test = rows(), (np.ones((2, 3)), np.ones(2))
    params = {"A": np.ones((3, 2)), "b": np.zeros(2)}  # the last layer is zero

    def loss_with(bend):
        return lambda w, batch: jnp.mean((bend(batch[0] @ w["A"]) @ w["b"] - batch[1]) ** 2)

    tanh, relu = loss_with(jnp.tanh), loss_with(jax.nn.relu)
    made = [
        JaxLoss(tanh, params, data),
        JaxLoss(relu, params, data),
        JaxLoss(tanh, params, data, metric=tanh, test=test),
    ]
    assert len({each.digest for each in made}) == 3
    assert made[0].digest == JaxLoss(loss_with(jnp.tanh), params, data).digest
