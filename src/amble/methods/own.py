"""Methods of your own: loading a class from a file, and a placeholder for a class that is missing.

Code is imported only where the user names it: on the command line, in the experiment file of `amble compare`, or in
`load_run(path, methods=...)`. What a saved run says about its method is never imported.
"""

import importlib.util
import re
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from amble.digests import sha256
from amble.errors import AmbleError, unknown
from amble.methods.absent import Absent
from amble.methods.parts import PARTS
from amble.methods.protocol import is_pair, step_of

PATH = re.compile(r"(?P<file>.+\.py):(?P<name>\w+)(?::(?P<rest>.*))?", re.S)  # mine.py:Heavy, mine.py:Heavy:beta=0.9


def names_file(name: str) -> bool:
    """Whether a method's name is that of a class in a file."""
    return name.endswith(".py") or PATH.fullmatch(name) is not None


def from_file(name: str) -> type[Any]:
    """The class that mine.py:Heavy names; the file is imported, once."""
    match = PATH.fullmatch(name)
    if match is None or match["rest"] is not None:
        raise AmbleError(f"{name!r} was given for a method of your own; name its class too, as in mine.py:Heavy.")
    path = Path(match["file"]).resolve()
    if not path.is_file():
        raise AmbleError(f"{name!r} was given as a method, and there is no file {path}; give the path of your file.")
    module = imported(path)
    kind = getattr(module, match["name"], None)
    if isinstance(kind, type) and step_of(kind) is None:
        raise AmbleError(f"{match['name']} in {path.name} has no step: write one of {', '.join(PARTS)}.")
    steps = [kind for kind in vars(module).values() if isinstance(kind, type) and step_of(kind) is not None]
    classes = {kind.__name__: kind for kind in steps}
    if match["name"] not in classes:
        raise unknown(f"method in {path.name}", match["name"], classes)
    return classes[match["name"]]


def imported(path: Path) -> Any:
    """The module of a file, under its own name; it can import files beside it."""
    name = f"{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    try:
        with running(module, path):
            spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


@contextmanager
def running(module: ModuleType, path: Path) -> Iterator[None]:
    """While the code of a file runs for the first time; if it fails, there is no such module."""
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        yield
    except (Exception, SystemExit) as error:
        del sys.modules[module.__name__]
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else "?"
        raise AmbleError(f"{path} cannot be imported: line {line}: {type(error).__name__}: {error}.") from error


@contextmanager
def explained(method: Any) -> Iterator[None]:
    """Turns a mistake in your own class into one sentence; the exception itself is its cause."""
    try:
        yield
    except AmbleError:
        raise
    except Exception as error:
        kind = method if isinstance(method, type) else type(method)
        if kind.__module__.partition(".")[0] == "amble":
            raise
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        line = f" ({file}:{lines[-1]})" if lines else f" ({file})" if file else ""
        message = next(iter(str(error).splitlines()), "").rstrip(".")
        raise AmbleError(
            f"the method {kind.__name__} failed with {type(error).__name__}: {message}{line}; fix it, and test it "
            "with amble.testing.check_method."
        ) from error


def origin(method: Any) -> dict[str, Any]:
    """Where a class of your own came from, to be saved with a run."""
    if isinstance(method, Absent):
        return method.origin
    kind = type(method)
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    parts = {
        part: getattr(method, part) for part in ("tokens", "hears") if hasattr(method, part)
    }  # as they were written
    if is_pair(method):
        parts["pairs"] = True
    return {"class": kind.__qualname__, "module": kind.__module__, "file": file, **parts}


def classes(named: Any) -> list[type[Any]]:
    """What `methods=` names: classes, or texts such as mine.py:Heavy, which are imported."""
    each = named if isinstance(named, Sequence) and not isinstance(named, str) else [named]
    kinds = [from_file(kind) if isinstance(kind, str) else kind for kind in each]
    for kind in kinds:
        if not isinstance(kind, type):
            raise AmbleError(f"methods={named!r} was given; give classes, such as methods=[Heavy].")
    return kinds


def choose(kinds: list[type[Any]], label: str, origin: dict[str, Any]) -> type[Any] | None:
    """The class that made a run, by its name, or else by its label."""
    by_name = [kind for kind in kinds if kind.__qualname__ == origin.get("class")]
    return next(iter([*by_name, *(kind for kind in kinds if getattr(kind, "label", "") == label)]), None)
