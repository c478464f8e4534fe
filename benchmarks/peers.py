"""Rounds of amble beside decent-bench, DISROPT and GossiPy on the same job: same rows, agents, method and models.

python benchmarks/peers.py                 # a few minutes, and as many to install the others at the first time
python benchmarks/peers.py --peer disropt  # this one alone

Each package is installed from PyPI into an environment of its own, .venv-peers/NAME, and run there as a program of its
own (benchmarks/peers). Nothing of theirs is part of amble: decent-bench is under the AGPL, DISROPT under the GPL. What
cannot be installed has a line with the reason.

Least squares, p = 12, 300 rows per agent, float64. First both compute 20 rounds, and all agents' models must be equal
to 1e-9. Then rounds alone are timed, in turn, after set-up and compilation: no metrics, no records.
"""

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

CORES = os.sched_getaffinity(0)  # before rounds.py takes one of them

import numpy as np
from measure import Row, Timed, check_equal, clocked, compare, missing, parser, table
from rounds import ALPHA, CHECKED, RHO, P, make_job, problem_of, rounds_of, weights

import amble
from amble import engines
from amble.networks.network import Network
from amble.problem.problem import Problem
from amble.schedule.schedule import Schedule

HERE = Path(__file__).parent
PIECE_S, REPEATS = 0.3, 7
SETTINGS = {"alpha": ALPHA, "rho": RHO}


class Peer(NamedTuple):
    """A package that others publish."""

    name: str
    release: str
    python: str  # the version that it needs
    packages: tuple[str, ...]  # that pip installs
    script: str
    processes: bool = False  # one per agent, under MPI: on all cores, and timed by the clock

    @property
    def title(self) -> str:
        return f"{self.name} {self.release}"

    @property
    def folder(self) -> Path:
        return HERE.parent / ".venv-peers" / self.name.lower()


DECENT_BENCH = Peer("decent-bench", "0.3.0", "3.13", ("decent-bench==0.3.0",), "drive_decent_bench.py")
DISROPT = Peer("DISROPT", "0.1.9", "3.11", ("disropt==0.1.9", "mpich"), "drive_disropt.py", processes=True)
GOSSIPY = Peer("GossiPy", "0.0.1", "3.11", ("gossipy-dfl==0.0.1", "torchvision"), "drive_gossipy.py")


class MissingPeer(Exception):
    """Why a package cannot be run."""


def install(peer: Peer) -> None:
    """Its environment, unless it is there."""
    if (peer.folder / "installed").exists():
        return
    found = sorted(Path.home().glob(f".pyenv/versions/{peer.python}.*/bin/python"))
    python = shutil.which(f"python{peer.python}") if not found else str(found[-1])
    if not python or subprocess.run([python, "-c", ""], capture_output=True).returncode:
        raise MissingPeer(f"there is no Python {peer.python}")
    print(f"installing {peer.title} into {peer.folder}", file=sys.stderr, flush=True)
    shutil.rmtree(peer.folder, ignore_errors=True)
    for command in (
        [python, "-m", "venv", str(peer.folder)],
        [str(peer.folder / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *peer.packages],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise MissingPeer(f"it does not install: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
    (peer.folder / "installed").touch()


class Driven:
    """A package at work in a process of its own; a call makes so many rounds and says how many seconds they took."""

    def __init__(self, peer: Peer, job: dict[str, Any], method: str, folder: Path) -> None:
        self.peer, self.log, self.models = peer, folder / "log.txt", folder / "models.npy"
        np.savez(folder / "job.npz", **job)
        command = [str(peer.folder / "bin" / "python"), str(HERE / "peers" / peer.script)]
        command += [str(folder / "job.npz"), method, str(self.models)]
        if peer.processes:
            command = [str(peer.folder / "bin" / "mpiexec"), "-n", str(len(job["X"])), *command]
        here = os.sched_getaffinity(0)
        os.sched_setaffinity(0, CORES if peer.processes else here)  # a new process takes what this one has
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""},
            )  # fmt: skip
        os.sched_setaffinity(0, here)
        self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            lines = self.log.read_text().strip().splitlines()
            raise MissingPeer(f"it does not run: {lines[-1] if lines else 'it says nothing'}")
        return line

    def __call__(self, times: int) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{times}\n")
        self.process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        self.process.communicate()


class Agent(NamedTuple):
    x: Any


@amble.method
class MixThenStep:
    """DISROPT's gradient method: x_i' = y_i - alpha grad f_i(y_i), y_i = sum_j W_ij x_j."""

    alpha: float = ALPHA

    work: ClassVar[dict[str, int]] = {"grad": 1}
    hears: ClassVar[str] = "mixed"

    def agent(self, f: Any, start: Any) -> Agent:  # noqa: ARG002
        return Agent(start)

    def say(self, agent: Agent) -> Any:
        return agent.x

    def round(self, f: Any, agent: Agent, heard: Any, degree: Any) -> Agent:  # noqa: ARG002
        return Agent(heard - self.alpha * f.grad(heard))


@amble.method
class MeetAndStep:
    """GossiPy's merge and step as tokens: x_i' = y - alpha grad f_i(y), y = (x_i + z) / 2, and z' = x_i'."""

    alpha: float = ALPHA
    tokens: int = 1

    work: ClassVar[dict[str, int]] = {"grad": 1}

    def agent(self, f: Any, start: Any) -> Agent:  # noqa: ARG002
        return Agent(start)

    def slot(self, start: Any) -> tuple[()]:  # noqa: ARG002
        return ()

    def token(self, start: Any, agents: int, m: int) -> Any:  # noqa: ARG002
        return start

    def visit(self, f: Any, agent: Agent, slot: Any, token: Any) -> Any:
        y = (agent.x + token) / 2
        x = y - self.alpha * f.grad(y)
        return Agent(x), slot, x

    def estimate(self, token: Any) -> Any:
        return token

    def message_numbers(self, p: int) -> int:
        return p


def rounds_of_tokens(problem: Problem, network: Network) -> tuple[Timed, Any]:
    """Rounds in which each agent's model goes one step round the ring: as many tokens as agents, all in step."""
    N = problem.agents
    round_of, token = np.divmod(np.arange(1000 * N), N)
    planned = Schedule(round_of.astype(float), token, (token + round_of) % N, round_of > 0)
    engine = engines.engine_for("compiled", MeetAndStep(tokens=N), problem, network)
    state = engine.advance(engine.start(), planned, 0, CHECKED * N)
    models = np.array(state.agents.x)

    def work(times: int) -> None:
        nonlocal state
        while times > 0:
            state = engine.advance(state, planned, 0, min(times, 1000) * N)
            times -= 1000

    return clocked(work), models


def beside(peer: Peer, what: str, timed: Timed, models: Any, job: dict[str, Any], method: str) -> Row:
    """A row, once both have the same models."""
    try:
        install(peer)
        with (
            tempfile.TemporaryDirectory() as folder,
            contextlib.closing(Driven(peer, job, method, Path(folder))) as driven,
        ):
            driven(CHECKED)
            check_equal(f"{what} and {peer.title}", models, np.load(driven.models))
            return compare(what, timed, peer.title, driven, repeats=REPEATS, piece_s=PIECE_S)
    except MissingPeer as error:
        return missing(what, peer.title, str(error))


def with_decent_bench() -> Iterator[Row]:
    for agents in (20, 100):
        job = make_job(agents) | SETTINGS
        problem, network = problem_of(job)
        for method in (amble.DGD(alpha=ALPHA), amble.EXTRA(alpha=ALPHA), amble.DADMM(rho=RHO)):
            what = f"a round of {method.label} (N={agents}, p={P})"
            yield beside(DECENT_BENCH, what, *rounds_of(method, problem, network), job, method.label)


def with_gossipy() -> Iterator[Row]:
    for agents in (20, 100):
        ring = amble.networks.ring(agents)
        job = make_job(agents) | SETTINGS
        problem, _ = problem_of(job)
        what = f"a round of gossip learning on a directed ring (N={agents}, p={P})"
        yield beside(GOSSIPY, what, *rounds_of_tokens(problem, ring), job, "gossip")


def with_disropt() -> Iterator[Row]:
    for agents in (2, 20):  # a process per core of a small machine, and many more
        job = make_job(agents) | SETTINGS
        problem, network = problem_of(job)
        timed, models = rounds_of(MixThenStep(), problem, network, time.perf_counter)
        what = f"a round of the gradient method, by the clock (N={agents}, p={P})"
        yield beside(DISROPT, what, timed, models, job | {"W": weights(network)}, "gradient")


PEERS = {"decent-bench": with_decent_bench, "gossipy": with_gossipy, "disropt": with_disropt}

if __name__ == "__main__":
    options = parser(__doc__)
    options.add_argument("--peer", choices=tuple(PEERS), action="append", help="this one; may be given again")
    arguments = options.parse_args()
    table(itertools.chain.from_iterable(PEERS[name]() for name in arguments.peer or PEERS), arguments.json)
