"""amble.testing finds what is wrong with a method or an objective, and names it."""

from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

import amble
from amble.arrays import namespace
from amble.testing import check_method, check_objective
from own_samples import Agent, Gossip, Steps
from samples import KINDS, some_objective


@pytest.mark.parametrize("method", [Steps(steps=3), Steps(tokens=3, halve=True), Gossip()], ids=repr)
def test_methods_of_one_s_own_pass(method):
    check_method(method)


def broken(name, **parts):
    """Steps with other parts."""
    return amble.method(type(name, (Steps,), {"label": name, **parts}))()


def random_gift(self, f, agent, z):
    agent, v, w = Steps.gift(self, f, agent, z)
    return agent, v + 1e-3 * np.random.default_rng().normal(size=4), w


def counting_gift(self, f, agent, z):
    calls.append(1)
    agent, v, w = Steps.gift(self, f, agent, z)
    return agent, v * (1 + 1e-6 * len(calls)), w


calls: list[int] = []


def mutating_gift(self, f, agent, z):
    if namespace(z) is np and agent.x.flags.writeable:
        agent.x[0] = 1.0
    return Steps.gift(self, f, agent, z)


def short_gift(self, f, agent, z):
    agent, v, w = Steps.gift(self, f, agent, z)
    return Agent(agent.x[:2]), v, w


def single_gift(self, f, agent, z):
    agent, v, w = Steps.gift(self, f, agent, z)
    return Agent(agent.x.astype("float32")), v, w


def other_gift(self, f, agent, z):
    agent, v, w = Steps.gift(self, f, agent, z)
    return namedtuple("Other", "x")(agent.x), v, w


def idle_gift(self, f, agent, z):  # noqa: ARG001
    return agent, z, namespace(z).asarray(0.0)


def engine_gift(self, f, agent, z):
    agent, v, w = Steps.gift(self, f, agent, z)
    return agent, v * (1 if namespace(z) is np else 1 + 1e-6), w


def numpy_gift(self, f, agent, z):
    agent, v, w = Steps.gift(self, f, agent, z)
    return agent, np.sort(v), w


def pair_gift(self, f, agent, z):
    return Steps.gift(self, f, agent, z)[:2]


def bare_gift(self, f, agent, z):
    return Steps.gift(self, f, agent, z)[1]


class Named(NamedTuple):
    x: Any
    number: Any


@pytest.mark.parametrize(
    ("gift", "sentence"),
    [
        (random_gift, "the same step twice gives two different results; it must depend only on its arguments"),
        (counting_gift, "the same step twice gives two different results"),
        (mutating_gift, "a step changes the arrays that it is given; it must make new ones"),
        (short_gift, r"the model and the agent's x have shapes \(4,\) and \(2,\); both must have that of the start"),
        (single_gift, "on NumPy, Agent.x is float32 after a step; it must be a float64 array of NumPy"),
        (other_gift, "a step takes a Agent and returns a Other; both must be the same"),
        (pair_gift, r"gift must return three things, \(agent, v, w\), and returns 2 of them"),
        (bare_gift, r"gift must return three things, \(agent, v, w\), and returns a ndarray"),
        (idle_gift, "the model is still zero after 3 steps"),
        (engine_gift, r"the model is not the same in the compiled and in the plain engine \(\de-06"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_a_broken_method_is_caught_by_name(gift, sentence):
    name = gift.__name__.partition("_")[0].capitalize()
    with pytest.raises(AssertionError, match=f"^{name}: .*{sentence}"):
        check_method(broken(name, gift=gift))


@pytest.mark.parametrize("agent", [lambda _, f, start: (start,), lambda _, f, start: start], ids=["tuple", "array"])  # noqa: ARG005
def test_an_agent_that_is_no_named_tuple_is_caught(agent):
    with pytest.raises(AssertionError, match=r"^Plain: agent returns a .*; it must return a NamedTuple with a field x"):
        check_method(broken("Plain", agent=agent))


def test_a_method_of_numpy_functions_is_caught():
    with pytest.raises((AssertionError, amble.AmbleError), match=r"Sorting.*(JAX|compiled)"):
        check_method(broken("Sorting", gift=numpy_gift))


def test_agents_that_start_otherwise_in_the_other_engine_are_caught():
    def agent(self, f, start):  # noqa: ARG001
        xp = namespace(start)
        return Named(start, xp.asarray(0.1 if xp is np else 0.2))

    def gift(self, f, agent, z):  # noqa: ARG001
        x = z - agent.number * f.grad(z)
        return Named(x, agent.number), x, namespace(z).asarray(0.0)

    with pytest.raises(AssertionError, match="Partial: the model is not the same in the compiled and in the plain"):
        check_method(broken("Partial", agent=agent, gift=gift))


def test_a_method_without_a_part_is_refused_in_a_sentence():
    with pytest.raises(amble.AmbleError, match="5 was given as a method"):
        check_method(5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_amble_s_objectives_pass(kind, seed):
    f, w = some_objective(kind, seed)
    check_objective(f, len(w), seed)


class Bowl:
    """1/2 |w - c|^2, right in all its functions."""

    smoothness = curvature = 1.0
    c = np.array([1.0, -2.0, 0.5])

    def value(self, w):
        return np.sum((w - self.c) ** 2) / 2

    def grad(self, w):
        return w - self.c

    def hessian(self, w):
        return np.eye(len(w))

    def prox(self, center, weight, start):  # noqa: ARG002
        return (self.c + weight * center) / (1 + weight)


def test_a_right_objective_passes_with_and_without_its_parts():
    check_objective(Bowl(), 3)
    by_prox = type("ByProx", (), {"value": Bowl.value, "prox": Bowl.prox, "c": Bowl.c})
    check_objective(by_prox(), 3)
    check_objective(type("ByGrad", (), {"grad": Bowl.grad, "c": Bowl.c})(), 3)


def with_memory(self, w):
    self.calls = getattr(self, "calls", 0) + 1
    return Bowl.grad(self, w) + 1e-9 * self.calls


def in_place(self, w):
    w -= self.c
    return w


def from_start(self, center, weight, start):
    return Bowl.prox(self, center, weight, start) + 1e-5 * start


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"grad": lambda self, w: 2 * (w - self.c)}, "grad is not the slope of value: off by"),
        ({"grad": lambda self, w: Bowl.grad(self, w)[:2]}, r"grad has shape \(2,\); it must have \(3,\)"),
        ({"grad": lambda self, w: list(w - self.c)}, r"grad is a list; it must be an array of shape \(3,\)"),
        ({"value": lambda self, w: None}, "value is a NoneType; it must be one number"),  # noqa: ARG005
        ({"grad": lambda self, w: 1j * w}, "grad has the type complex128; it must be .* of real numbers"),  # noqa: ARG005
        ({"prox": lambda self, center: center}, r"prox\(center, weight, start\) raises TypeError: "),  # noqa: ARG005
        ({"grad": lambda self, w: w[7]}, r"grad\(w\) raises IndexError: index 7 is out of bounds"),  # noqa: ARG005
        ({"grad": with_memory}, "grad returns two different results at one point; it must have no memory"),
        ({"grad": in_place}, "grad changes the array that it is given; it must make a new one"),
        ({"value": lambda self, w: (w - self.c) ** 2 / 2}, r"value has shape \(3,\); it must have \(\)"),
        ({"value": lambda self, w: np.log(self.c[1] - np.sum(w**2))}, "value is not finite at a point of length"),
        ({"hessian": lambda self, w: 2 * np.eye(len(w)) * self.curvature}, "hessian is not the slope of grad"),
        (
            {"prox": lambda self, center, weight, start: (self.c + center) / 2},  # noqa: ARG005
            r"prox at weight 0.1 is not the argmin of f\(x\) \+ weight/2 \|x - center\|\^2: a slope of",
        ),
        ({"smoothness": 0.5}, "smoothness is 0.5, and grad changes 1 times as fast as w"),
        ({"curvature": 0.5}, "curvature is 0.5, less than the Hessian's trace over p, 1"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_broken_objective_is_caught_by_name(parts, sentence):
    made = type("Broken", (Bowl,), parts)
    with pytest.raises(AssertionError, match=f"^Broken: ({sentence})"):
        check_objective(made(), 3)


def without_grad(prox):
    return type("Blind", (), {"c": Bowl.c, "value": Bowl.value, "prox": prox})()


def test_a_wrong_prox_without_a_gradient_is_caught_by_a_better_point():
    with pytest.raises(AssertionError, match=r"Blind: prox at weight 0.1 is not the argmin .*: a point near it is low"):
        check_objective(without_grad(lambda self, center, weight, start: center), 3)  # noqa: ARG005


def test_a_prox_that_depends_on_its_start_is_caught():
    with pytest.raises(AssertionError, match="Blind: prox depends on its start: off by"):
        check_objective(without_grad(from_start), 3)


def test_what_cannot_be_tested_is_refused():
    with pytest.raises(amble.AmbleError, match="object has neither grad nor prox"):
        check_objective(object(), 3)
    with pytest.raises(amble.AmbleError, match=r"Bowl is a class; give an object of it, as Bowl\(...\) makes one"):
        check_objective(Bowl, 3)
    with pytest.raises(amble.AmbleError, match="dimension='3' was given; give the number of unknowns"):
        check_objective(Bowl(), "3")
