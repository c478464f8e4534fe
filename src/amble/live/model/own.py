"""A model of a user's own in a live run: a Python file whose function makes the loss of one agent from its rows.

    def objective(X, y):
        return TorchLoss(module, loss, [(X, y)], batch_size=16)

A JaxLoss of one agent will do too, or any object with value(w), grad(w) and start, the initial model.
The file is code that the operator chose. It lies in each agent's folder, its digest is part of the run's, and nothing
of it is ever sent to another agent. It is imported only where a loss is made.
"""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from amble.arrays import BEYOND, Array
from amble.data.targets import Targets
from amble.digests import sha256
from amble.errors import AmbleError
from amble.live import toml
from amble.live.model.model import UNKNOWNS_MAX, Model
from amble.live.model.shared import Plain, Shared
from amble.losses.model_checks import digest_of
from amble.losses.objective import ModelLoss, knows
from amble.methods.own import running
from amble.problem.assemble import prepare, targets_in_units
from amble.problem.extras import NO_EXTRAS, Extras

FUNCTION = "objective"
BYTES_MAX = 1_000_000  # of the file
RETURNS = "it must return a TorchLoss or a JaxLoss of one agent, or an object with value(w), grad(w) and start"
# what is a setting of amble's own losses; the loss of a file has all of it inside
BUILT_IN = ("loss", "ridge", "l1", "positive", "unpenalised", "intercept")


@dataclass(frozen=True)
class Code:
    """The file of a model. Two are equal if their names and digests are."""

    digest: str
    path: Path = field(compare=False)

    @property
    def name(self) -> str:
        return self.path.name

    def read(self) -> bytes:
        """The file's content, if it is still that of the run."""
        if not self.path.is_file():
            raise AmbleError(f"the run trains the model of {self.name}, which is not in {self.path.parent}; copy it "
                             "there from the folder of another agent.")  # fmt: skip
        content = _content(self.path)
        if sha256(content).hexdigest() != self.digest:
            raise AmbleError(f"{self.path} is not the file that the run began with; copy it again, or begin a new run.")
        return content


def code_at(path: Path) -> Code:
    """The file that a run is to train with."""
    if path.suffix != ".py" or not path.is_file():
        raise AmbleError(f"{path} was given as the file of a model; give the path of a Python file, such as net.py.")
    return Code(sha256(_content(path)).hexdigest(), path.resolve())


def _content(path: Path) -> bytes:
    if path.stat().st_size > BYTES_MAX:
        raise AmbleError(f"{path} has {path.stat().st_size:,} bytes; the file of a model has at most {BYTES_MAX:,}.")
    return path.read_bytes()


def module_of(code: Code) -> ModuleType:
    """The file's content, run once in a process: the bytes that were checked, and not what Python compiled before."""
    content, name = code.read(), f"{code.path.stem}_{code.digest[:16]}"
    if name not in sys.modules:
        module = ModuleType(name)
        module.__file__ = str(code.path)
        with running(module, code.path):
            exec(compile(content, str(code.path), "exec", dont_inherit=True), vars(module))
    return sys.modules[name]


def loss_of(code: Code, X: Array, y: Targets) -> Any:
    """What the file's function makes of these rows: the losses of one agent, checked."""
    module = module_of(code)
    function = getattr(module, FUNCTION, None)
    if not callable(function):
        raise AmbleError(f"{code.path} has no function {FUNCTION}(X, y), which makes the loss of an agent; write one.")
    try:
        with deterministic():
            made = function(X, y)
    except AmbleError:
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == module.__file__]
        where = f" (line {lines[-1]})" if lines else ""
        message = next(iter(str(error).splitlines()), "").rstrip(".")
        raise AmbleError(
            f"{FUNCTION}(X, y) of {code.path} fails with {type(error).__name__}: {message}{where}; fix it there."
        ) from error
    if not knows(made, "params"):
        if not all(knows(made, name) for name in ("value", "grad", "start")):
            raise AmbleError(f"{FUNCTION}(X, y) of {code.path} returns a {type(made).__name__}; {RETURNS}.")
        made = Plain(made)
    if len(made) != 1:
        raise AmbleError(f"{FUNCTION}(X, y) of {code.path} makes losses of {len(made)} agents; give one: [(X, y)].")
    if not 1 <= made.dimension <= UNKNOWNS_MAX:
        raise AmbleError(
            f"the model of {code.name} has {made.dimension:,} unknowns; a message holds 1 to {UNKNOWNS_MAX:,}."
        )
    return made


@contextmanager
def deterministic() -> Iterator[None]:
    """PyTorch with deterministic algorithms and one thread, if it is loaded: so that a replay has the same digits, and
    agents on one machine do not wait for each other's threads. What the process had set comes back at the end."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    threads = torch.get_num_threads()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.set_num_threads(threads)


class First(NamedTuple):
    """What a run knows of a model before any row is there."""

    code: Code
    loss: ModelLoss
    objective: Shared  # what methods will find
    table: dict[str, Any]  # for [model] of the agents


def first_of(table: dict[str, Any], beside: Path) -> First:
    """From the [model] table of a run file in the folder `beside`: the file is asked about one row of zeros."""
    if strange := [key for key in BUILT_IN if key in table]:
        raise AmbleError(f"[model] has file and {strange[0]}; the file has the whole loss: leave {strange[0]} out.")
    if not toml.text.fits(table["file"]):
        raise AmbleError(f"[model] file = {table['file']!r} was given; give the path of a Python file, such as net.py.")
    code = code_at(beside / table["file"])
    columns = table.get("columns")
    width = len(columns) if isinstance(columns, list) else columns
    if not isinstance(width, int) or not 1 <= width <= UNKNOWNS_MAX:
        raise AmbleError("[model] has no columns; add how many, or their names.")
    whole = table.get("task") == "classification"
    loss = loss_of(code, np.zeros((1, width)), np.zeros(1, np.int64 if whole else np.float64))
    if not np.abs(loss.start).sum() < BEYOND:
        raise AmbleError(f"the first model of {code.name} has numbers that are not finite, or too large; give others.")
    own = {"file": code.name, "code": code.digest, "unknowns": int(loss.dimension)}
    return First(code, loss, Shared(loss, 1.0, code.digest), {**table, **own})


def objective(code: Code, model: Model, X: Array, y: Targets, whose: str, extra: Extras = NO_EXTRAS) -> Shared:
    """One agent's loss: its share times what the file says of its rows."""
    loss = own_loss(code, model, X, y, whose, extra)
    share = 1.0 if model.rows_mean is None else len(y) / model.rows_mean
    return Shared(loss, share, digest_of(code.digest, [X, np.asarray(y, str)]))


def own_loss(code: Code, model: Model, X: Array, y: Targets, whose: str, extra: Extras = NO_EXTRAS) -> ModelLoss:
    """What the file says of rows as they are in an agent's file."""
    X, y = model.checked(X, y, whose)
    if extra.weight is not None or extra.offset is not None:
        raise AmbleError(f"{whose} has weights or offsets of rows, which no model of your own sees; leave them out.")
    scaled = prepare(X, model.scaling, intercept=False)
    loss: ModelLoss = loss_of(code, scaled, targets_in_units(y, model.scaling, model.labels or None))
    if loss.dimension != model.dimension:
        raise AmbleError(
            f"the model of {code.name} has {loss.dimension:,} unknowns with the rows of {whose}, and the run's has "
            f"{model.dimension:,}; let it not depend on the rows."
        )
    return loss
