"""Many agents on one machine: one bundle, one process per agent, and no process left behind."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np

from amble import methods
from amble.arrays import Array
from amble.data.targets import Targets
from amble.errors import AmbleError
from amble.live import status
from amble.live.cluster.ports import free_ports
from amble.live.process import condition
from amble.live.settings import bundle
from amble.live.settings.config import Config
from amble.methods.protocol import TokenMethod
from amble.networks.network import Network
from amble.problem.extras import NO_EXTRAS, Extras
from amble.problem.problem import Problem

GRACE_S = 5.0  # for an agent to end by itself
DAYS = 365
ENDED = (0, 3)  # exit codes of an agent that ended with its run: with a model, and without one (agent.Ended)


def configure(
    problem: Problem,
    method: TokenMethod,
    network: Network,
    stop: dict[str, Any],
    seed: int,
    timing: dict[str, Any],
    start: str | None = None,
    file: str | None = None,
) -> Config:
    """A run of this problem on this machine; its scaling is that of the split, because all rows are here. `file` has a
    model of the user's own."""
    if problem.scaling is None:
        raise AmbleError("a live run needs rows; this problem was made from objectives.")
    names = [f"agent{k:02d}" for k in range(problem.agents)]
    scaling, settings = problem.scaling, problem.settings
    model: dict[str, Any] = {
        "task": problem.task,
        "columns": list(problem.columns) if problem.columns else len(scaling.X_mean),
        "X_mean": np.asarray(scaling.X_mean).tolist(),
        "X_std": np.asarray(scaling.X_std).tolist(),
    }
    if file is not None:
        model["file"] = file
    else:
        model |= {"ridge": float(settings.get("ridge", 1e-4)), "intercept": bool(settings.get("intercept", True))}
        model |= {key: settings[key] for key in ("l1", "positive", "unpenalised") if key in settings}
        if settings.get("loss") is not None:
            model["loss"] = problem.loss
    if settings.get("weights") == "rows" and problem.rows is not None:
        _, y, _, extra = problem.rows
        model["rows_mean"] = (len(y) if extra.weight is None else float(extra.weight.sum())) / problem.agents
    if problem.labels is None:
        model |= {"y_mean": float(scaling.y_mean), "y_std": float(scaling.y_std)}
    else:
        model["labels"] = problem.labels.tolist()
    if table := {**problem.table, **({} if problem.target is None else {"target": problem.target})}:
        model["table"] = {key: list(value) if isinstance(value, tuple) else value for key, value in table.items()}
    if start is not None:
        model["start"] = start
    ports = free_ports(problem.agents)
    agents = [
        {"name": name, "host": "127.0.0.1", "port": port, "data": "rows.npz"}
        for name, port in zip(names, ports, strict=True)
    ]
    return Config.from_settings(
        {
            "name": "up",
            "method": {"name": method.label, **{k: v for k, v in methods.settings(method).items() if v is not None}},
            "model": model,
            "stop": stop,
            "timing": timing,
            "walk": {"kind": "cycles", "seed": seed},
            "links": [[names[i], names[j]] for i, j in network.edges.tolist()],
            "agents": agents,
        }
    )


@dataclass
class Cluster:
    """Agents as processes, each in its folder of the bundle. Leaving the `with` block ends them all."""

    folder: Path
    config: Config
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    killed: set[str] = field(default_factory=set)  # by us
    locked_files: list[IO[bytes]] = field(default_factory=list)  # as long as this process or an agent runs

    @classmethod
    def create(cls, folder: Path, config: Config, rows: Sequence[Mapping[str, Any]]) -> "Cluster":
        """Certificates, settings, and each agent's own rows, in its own folder."""

        def put(k: int, home: Path) -> None:
            np.savez(home / "rows.npz", **rows[k])

        return cls._create(folder, config, put)

    @classmethod
    def of_files(cls, folder: Path, config: Config, files: Sequence[Mapping[str, Path]]) -> "Cluster":
        """The same, with copies of files per agent, by the names that they get in its folder."""

        def put(k: int, home: Path) -> None:
            for name, path in files[k].items():
                shutil.copyfile(path, home / name)

        return cls._create(folder, config, put)

    @classmethod
    def _create(cls, folder: Path, config: Config, put: Callable[[int, Path], object]) -> "Cluster":
        bundle.make_bundle(config, folder, DAYS)
        agents = cls(folder, config)
        try:
            for k, name in enumerate(config.agents):
                put(k, folder / name)
        except BaseException as error:
            agents.remove()
            if isinstance(error, OSError):
                raise AmbleError(f"{folder} cannot be written ({error.strerror}); give another folder.") from error
            raise
        return agents

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        for file in self.locked_files:
            file.close()

    def start(self, name: str) -> None:
        """Start an agent, or start it again. It ends when this process does: the pipe to it closes then."""
        self.killed.discard(name)
        if name in self.processes:
            self._reap(self.processes[name])
        with (self.folder / name / "log.txt").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "amble.live", str(self.folder / name), "--leash"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for us; we end them in order
                pass_fds=[file.fileno() for file in self.locked_files] if os.name == "posix" else (),
            )

    def start_all(self) -> None:
        for name in self.config.agents:
            self.start(name)

    def kill(self, name: str) -> None:
        """As if its machine had lost power."""
        process = self.processes[name]
        self.killed.add(name)
        process.kill()
        self._reap(process)

    def running(self) -> list[str]:
        return [name for name, process in self.processes.items() if process.poll() is None]

    def failed(self) -> dict[str, str]:
        """Agents that ended although the run had not, with their last log line."""
        lost = {}
        for name, process in self.processes.items():
            code = process.poll()
            said = self.status(name)
            if code is None or name in self.killed or (code in ENDED and (said.cause or said.state == "left")):
                continue
            again = said.process is not None and said.process.pid != process.pid  # somebody has started it
            if again and (said.cause or said.state == "left" or condition(said.process) == "runs"):
                continue
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            lines = (self.folder / name / "log.txt").read_text(errors="replace").strip().splitlines()
            lost[name] = f"{how}; its last log line: {lines[-1]}" if lines else how
        return lost

    def status(self, name: str) -> status.Status:
        """The agent's last status."""
        return status.read(self.folder / name)

    def model(self, name: str) -> Array | None:
        with contextlib.suppress(OSError, ValueError, EOFError):
            w: Array = np.load(self.folder / name / "model.npy", allow_pickle=False)
            return w
        return None

    def end(self) -> None:
        """Ends every process before it returns."""
        for process in self.processes.values():
            with contextlib.suppress(OSError):
                process.stdin.close()  # type: ignore[union-attr]
        deadline = time.monotonic() + GRACE_S
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            if process.poll() is None:
                process.kill()
            self._reap(process)

    def _reap(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        with contextlib.suppress(OSError):
            process.stdin.close()  # type: ignore[union-attr]

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def rows_of(problem: Problem, X: Array, y: Targets, extra: Extras = NO_EXTRAS) -> list[dict[str, Any]]:
    """Each agent's rows, from all training rows, as the arrays of its file; a row of weight zero is left out."""
    known = {"X": X, "y": y, "sample_weight": extra.weight, "offset": extra.offset}
    parts = problem.parts or ()
    if extra.weight is not None:
        parts = [part[extra.weight[part] > 0] for part in parts]
    return [{name: array[part] for name, array in known.items() if array is not None} for part in parts]
