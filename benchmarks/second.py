"""How soon a second process of the same comparison computes: what the first one compiled is in the user's cache.

python benchmarks/second.py           # half a minute on a quiet machine
python benchmarks/second.py 1         # once

CPU and wall seconds from the start of the process until the first hop of the first method, and until the end of all:
without a cache, with an empty one, and with what an earlier process left there. The best
of three, or of as many as given.
"""

import os
import subprocess
import sys
import tempfile
import time

from rich.console import Console
from rich.table import Table

REPEATS = 3
COMPARISON = """
import sys, time
began = float(sys.argv[1])
import amble
times = []
def note(record):
    if record.hop > 0 and not times:
        times.extend((time.process_time(), time.time() - began))
problem = amble.split(amble.load("diabetes"), agents=20)
for method in (amble.IBCD(), amble.APIBCD(), amble.WPG(), amble.Relay(), amble.DGD()):
    amble.simulate(method, problem, hops=2000, progress=False, on_record=note)
print(*times, time.process_time(), time.time() - began)
"""


def measured(cache: str) -> list[float]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    command = [sys.executable, "-c", COMPARISON, str(time.time())]
    done = subprocess.run(
        command, env={**environment, "AMBLE_CACHE": cache}, check=True, capture_output=True, text=True
    )
    return [float(number) for number in done.stdout.split()]


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    table = Table(
        "cache", "first hop, CPU s", "wall s", "all five, CPU s", "wall s", title="five methods, 2,000 hops each"
    )
    figures: dict[str, list[list[float]]] = {"none": [], "empty": [], "of an earlier process": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            for cache in figures:
                figures[cache].append(measured("off" if cache == "none" else folder))
    for cache, rows in figures.items():
        table.add_row(cache, *(f"{min(column):.2f}" for column in zip(*rows, strict=True)))
    Console().print(table)


if __name__ == "__main__":
    main()
