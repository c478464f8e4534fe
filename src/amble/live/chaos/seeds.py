"""Runs many seeds of the fault simulator, and keeps their results in a file so that no seed runs twice."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import amble
from amble.errors import AmbleError
from amble.files import write_whole
from amble.live.chaos.checkers import Broken
from amble.live.chaos.kinds import Faults
from amble.live.chaos.world import World

TESTED = ("live/core", "live/chaos", "methods", "losses")  # rooms
COUNTED = ("visit", "reissue", "recount", "absorbed", "stopped")  # of what agents report
BATCH = 8  # seeds of one job: about three seconds


def run_seed(seed: int, faults: int, story: Any = None) -> dict[str, Any]:
    """What happened, in plain values; `broken` is the sentence, and empty if all held."""
    world, broken = World(seed, Faults(faults=faults), story=story), ""
    try:
        world.run()
    except Broken as error:
        broken = str(error)
    except Exception as error:  # a protocol that raises is as wrong as one that loses data
        if story is not None:
            raise
        broken = f"{type(error).__name__}: {error}"
    counted = {kind: world.checker.counted[kind] for kind in COUNTED}
    return {"seed": seed, "time_s": world.now, "faults": dict(world.trouble.done), "counted": counted, "broken": broken}


def run_batch(seeds: Iterable[int], faults: int) -> list[dict[str, Any]]:
    return [run_seed(seed, faults) for seed in seeds]


def source() -> str:
    """A digest of the code that is tested: the results of another version say nothing about this one."""
    root, digest = Path(amble.__file__).parent, hashlib.sha256()
    for path in sorted(path for room in TESTED for path in (root / room).rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass
class State:
    """Which seeds are done, and what happened in them."""

    path: Path
    faults: int
    source: str = field(default_factory=source)
    done: set[int] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    counted: Counter[str] = field(default_factory=Counter)
    broken: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path, faults: int) -> "State":
        """As the file has it; a new one where there is none, or one of another version of the code."""
        state = cls(path, faults)
        if not path.exists():
            return state
        try:
            kept = json.loads(path.read_text())
            was, code = int(kept["faults_a_seed"]), str(kept["source"])
            state.done = {seed for first, last in kept["seeds"] for seed in range(first, last + 1)}
            state.kinds, state.counted = Counter(kept["faults"]), Counter(kept["counted"])
            state.broken = list(kept["broken"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AmbleError(f"{path} is not a file of amble chaos; give another --out.") from error
        if was != faults:
            raise AmbleError(f"{path} has seeds of {was} faults, and {faults} were asked for; give another --out.")
        return state if code == state.source else cls(path, faults)

    def add(self, results: list[dict[str, Any]]) -> None:
        """Keep these, and write the file whole."""
        for each in results:
            self.done.add(each["seed"])
            self.kinds.update(each["faults"])
            self.counted.update(each["counted"])
            if each["broken"]:
                self.broken.append({key: each[key] for key in ("seed", "time_s", "broken")})
        kept = {
            "faults_a_seed": self.faults,
            "source": self.source,
            "seeds": ranges(self.done),
            "faults": dict(sorted(self.kinds.items())),
            "counted": dict(self.counted),
            "broken": self.broken,
        }
        write_whole({self.path: json.dumps(kept, indent=1).encode()})


def ranges(seeds: Iterable[int]) -> list[list[int]]:
    """[first, last] of each row of numbers without a gap."""
    ranges: list[list[int]] = []
    for seed in sorted(seeds):
        if ranges and seed == ranges[-1][1] + 1:
            ranges[-1][1] = seed
        else:
            ranges.append([seed, seed])
    return ranges
