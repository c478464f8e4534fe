"""An agent of full Relay gives again where its parabola misses its loss (methods/gifts.py, methods/relay_full.py)."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import amble
from amble.live.core.message import Epoch
from amble.live.core.visits import visits_for
from amble.methods.gifts import given
from amble.methods.optional import Gifts
from amble.methods.relay_full import GUARD, Seen, again, full, look

ENGINES = ("plain", "compiled")


class Looked(NamedTuple):
    misses: np.ndarray
    by: np.ndarray


class Script:
    """Gifts 0, 1, 2 .. in a visit, whose misses are told beforehand."""

    weigh = "scalar"

    def __init__(self, xp, by):
        self.xp, self.by = xp, xp.asarray(by)

    def gifts_in_visit(self, f):  # noqa: ARG002
        return Gifts(most=len(self.by))

    def gift(self, f, agent, z):  # noqa: ARG002
        return agent, 0 * z, self.xp.asarray(1.0)

    def look(self, f, agent, v, w, z):  # noqa: ARG002
        by = self.by[v[0].astype(int)]
        return Looked(~(by <= 0.1), by)

    def again(self, agent, v, w, look):  # noqa: ARG002
        return agent, v + 1, w


@pytest.mark.parametrize("xp", [np, jnp])
@pytest.mark.parametrize(
    ("by", "counts"),
    [
        ((0.05, 9.0, 9.0), 0),  # the first fits
        ((5.0, 0.05, 9.0), 1),  # the second fits
        ((0.3, 0.5, 0.4), 2),  # none fits, and the last does not lead away
        ((3.0, 0.5, 4.0), 1),  # the last leads away
        ((3.0, 5.0, 4.0), 0),
        ((3.0, 2.0, 1.5), 2),
        ((3.0, 0.5, np.nan), 1),  # no number leads away
        ((3.0, np.nan, np.nan), 0),
    ],
)
def test_which_gift_counts(xp, by, counts):
    method, z = Script(xp, by), xp.zeros(1)
    _, gift = given(method, None, z, z, read=lambda gift: gift.v)
    assert gift.v.tolist() == [counts]
    once = given(method, None, z, z)[1]  # nobody can say where a gift leads to: it gives once
    assert once.v.tolist() == [0]


def poisson():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2))
    y = rng.poisson(np.exp(X @ [0.5, -1.0])) * 1.0
    options = {"task": "regression", "loss": "poisson", "ridge": 1e-3, "scale": False}
    return amble.Problem.from_arrays(X, y, groups=np.arange(40) % 2, **options)


def test_a_second_gift_has_the_slope_there_and_the_change_of_slope_on_the_way():
    problem, rng = poisson(), np.random.default_rng(4)
    f = problem.objective(0)
    first = np.zeros(problem.dimension)
    seen, v, w = full(f, Seen(first, first, np.asarray(1e-6), 0 * first, np.asarray(1.0)), first)
    z = 0.3 * rng.normal(size=len(first))
    found = look(f, seen, v, w, z)
    assert found.misses
    assert found.by > 0.1
    later, v2, w2 = again(seen, v, w, found)
    np.testing.assert_allclose(w2 @ later.x - v2, f.grad(later.x), rtol=1e-12)  # the slope at the new model
    np.testing.assert_allclose(w2 @ first - v2, w @ first - v, rtol=1e-9, atol=1e-12)  # and still that at the old one
    np.testing.assert_allclose(w2, w2.T, rtol=1e-12)
    assert np.linalg.eigvalsh(w2).min() > 0


def test_a_gift_that_fits_is_not_given_again():
    problem = poisson()
    f, z = problem.objective(0), np.zeros(problem.dimension)
    seen, v, w = full(f, Seen(z, z, np.asarray(1e-6), 0 * z, np.asarray(1.0)), z)
    assert not look(f, seen, v, w, z + 1e-6).misses


def test_a_loss_that_overflows_on_the_way_does_no_harm():
    """exp(w) - 1000 w beside 500 (w - 1)^2: the second gift is made where exp overflows, and the first counts."""

    class Steep:
        def value(self, w):
            return float(np.sum(np.exp(w) - 1000 * w))

        def grad(self, w):
            return np.exp(w) - 1000

        def hessian(self, w):
            return np.diag(np.exp(w))

        curvature = 1.0

    class Bowl:
        def value(self, w):
            return float(np.sum(500 * (w - 1) ** 2))

        def grad(self, w):
            return 1000 * (w - 1)

        def hessian(self, w):
            return 1000 * np.eye(len(w))

        curvature = 1000.0

    problem = amble.Problem.from_objectives([Steep(), Bowl()], dimension=1)
    with np.errstate(over="ignore", invalid="ignore"):
        run = amble.simulate(
            amble.Relay(form="full"), problem, "complete", hops=200, optimum=False, engine="plain", progress=False
        )
    w = run.model[0]
    assert abs(np.exp(w) - 1000 + 1000 * (w - 1)) < 1e-9


def test_both_engines_give_again_alike():
    """From far away, with visits that give more than once (the test above says so of the first)."""
    problem = poisson()
    options = {"start": np.full(problem.dimension, 4.0), "hops": 20, "progress": False}
    runs = [amble.simulate(amble.Relay(), problem, "complete", engine=each, **options) for each in ENGINES]
    np.testing.assert_allclose(runs[0].model, runs[1].model, rtol=1e-9)
    assert runs[0].history["distance"][-1] < 1e-6


class Ring:
    """Five live agents' visits, on a ring with two tokens, without links: breast_cancer, logistic."""

    def __init__(self, guard=GUARD):
        self.problem = amble.split(amble.load("breast_cancer"), agents=5, ridge=1e-4)
        self.best = self.problem.optimum().w
        self.visits = visits_for(amble.Relay(tokens=2, form="full"), self.problem.dimension, 5)
        self.losses = [self.problem.objective(i) for i in range(5)]
        self.holders = [self.guarded(self.visits.holder(f), guard) for f in self.losses]
        self.parcels, self.hop = [self.visits.parcel(m) for m in range(2)], 0

    def guarded(self, holder, guard):
        own = holder.agent.own._replace(guard=np.asarray(guard))
        return holder._replace(agent=holder.agent._replace(own=own))

    def laps_to(self, distance, agents=range(5), most=60):
        for lap in range(1, most + 1):
            for k in range(len(agents)):
                for m in range(2):
                    i, self.hop = agents[(k + 2 * m) % len(agents)], self.hop + 1
                    self.holders[i], _, self.parcels[m] = self.visits.visit(
                        self.losses[i], self.holders[i], self.visits.share(), self.parcels[m], i, self.hop, False
                    )
            if self.distance() < distance:
                return lap
        return None

    def distance(self):
        z = self.visits.estimate(self.parcels[0])
        return np.linalg.norm(z - self.best) / np.linalg.norm(self.best)


def test_a_large_guard_does_not_stay():
    """An agent gives again for its loss, and not for its guard, which would then damp nothing and never shrink."""
    assert Ring(guard=1e3).laps_to(1e-9) <= 15


def test_an_agent_that_comes_back_is_heard_in_a_few_laps():
    """While a model rests, its last digits turn back and forth, which is no reason to be careful when one returns."""
    ring = Ring()
    assert ring.laps_to(1e-9) <= 8
    assert ring.laps_to(0.0, most=30) is None  # at rest
    gone = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    ring.parcels = [ring.visits.recount(parcel, Epoch(1, 0), gone, ring.holders[0]) for parcel in ring.parcels]
    ring.laps_to(0.0, [0, 1, 3, 4], most=30)
    assert ring.distance() > 0.1  # the optimum without agent 2 is another
    assert ring.laps_to(1e-9) <= 6
