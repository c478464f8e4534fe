"""A user's script, typed as a careful user would: mypy strict has nothing to say about it, and it runs."""

from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import networkx
import numpy as np
from numpy.typing import NDArray

import amble
from amble.arrays import Array, namespace
from amble.losses import Objective
from amble.testing import check_method, check_objective


class Agent(NamedTuple):
    x: Array
    step: Array


@amble.method
class Heavy:
    alpha: float = 0.3
    beta: float = 0.5
    tokens: int = 1

    label: ClassVar[str] = "Heavy"
    work: ClassVar[dict[str, int]] = {"grad": 1}
    weigh: ClassVar[str] = "agents"
    positive: ClassVar[tuple[str, ...]] = ("alpha",)

    def agent(self, f: Objective, start: Array) -> Agent:  # noqa: ARG002
        return Agent(x=start, step=0 * start)

    def gift(self, f: Objective, agent: Agent, z: Array) -> tuple[Agent, Array, Array]:
        step = self.beta * agent.step - self.alpha * f.grad(z)
        return Agent(z + step, step), z + step, namespace(z).asarray(0.0)


class Bowl:
    """A loss that has all that WPG asks for, and no more."""

    def __init__(self, center: float) -> None:
        self.center = center

    def value(self, w: NDArray[np.float64]) -> float:
        return float(((w - self.center) ** 2).sum() / 2)

    def grad(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        return w - self.center


def check() -> None:
    """As a test of one's own would."""
    check_method(Heavy())
    check_objective(Bowl(1.0), dimension=3)


def main(folder: Path) -> None:
    data: amble.Dataset = amble.load("diabetes")
    problem: amble.Problem = amble.split(data, agents=10, how="sorted", seed=1)
    timing = amble.Timing(low_s=1.0, high_s=1.0, slowdown=((3, 10.0),))
    graph = networkx.cycle_graph(10)
    run: amble.Run = amble.simulate(amble.Relay(tokens=2), problem, graph, hops=40, timing=timing, progress=False)
    network: amble.Network = amble.networks.ring(10)
    runs: amble.Comparison = amble.compare(
        [Heavy(beta=0.7), amble.IBCD(tau=1.0), amble.DGD()], problem, network, hops=40
    )
    labels: list[str] = [each.label for each in runs]
    targets: NDArray[Any] = run.predict(data.X[:3])
    again: amble.Run = amble.load_run(run.save(folder / "run"))
    longer: amble.Run = amble.resume(again, problem, hops=60)
    model: NDArray[np.float64] = longer.model
    reached: float = run.time_to(within=0.5, cost="hop")
    bowls = [Bowl(0.0), Bowl(1.0)]
    own = amble.Problem.from_objectives(bowls, dimension=3)
    found: NDArray[np.float64] = amble.simulate(amble.WPG(), own, hops=200, optimum=False).model
    best: float = problem.optimum().value
    assert len(labels) == 3
    assert len(targets) == 3
    assert len(model) == problem.dimension
    assert reached > 0
    assert best > 0
    assert np.allclose(found, 0.5)
