"""Run the benchmarks, and keep their ratios in docs/benchmarks.json and docs/benchmarks.md.

python benchmarks/all.py                # make bench: all that fit ten minutes on two quiet cores
python benchmarks/all.py speed journal  # these; the others keep their last figures
python benchmarks/all.py peers          # make bench-peers: other packages, installed by benchmarks/peers.py
python benchmarks/all.py --release      # run nothing, keep the last figures as those of this version, for the next one

Each benchmark is a process of its own, and its figures are kept when it has ended. Another machine, or one on which
others work, gives other seconds; the page says how busy it was, and the quartiles of the ratios show what that did.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import amble
from amble.files import write_whole
from amble.report.machine import this_machine

HERE = Path(__file__).parent
ROOT = HERE.parent
KEPT, HISTORY = ROOT / "docs" / "benchmarks.json", HERE / "history"
FORMAT = 1
PACKAGES = ("scipy", "scikit-learn", "eclipse-zenoh")  # beside those that this_machine names


class Benchmark(NamedTuple):
    title: str
    command: tuple[str, ...]  # the script and its options


BENCHMARKS = {
    "speed": Benchmark("Simulating", ("speed.py",)),
    "rounds": Benchmark("Gossip rounds", ("rounds.py",)),
    "gpu": Benchmark("Many runs at once", ("gpu.py",)),
    "relay": Benchmark("Cost to an accuracy", ("relay.py", "--ratio")),
    "estimators": Benchmark("Estimators", ("estimators.py",)),
    "journal": Benchmark("The journal", ("journal.py", "--ratio")),
    "hops": Benchmark("Live hops", ("hops.py", "--ratio")),
    "start": Benchmark("Agents", ("start.py", "--ratio")),
}
PEERS = {"peers": Benchmark("Other packages", ("peers.py",))}


def cpu_s() -> tuple[float, float]:
    """CPU seconds so far: of all processes of the machine, and of this one with its children that have ended."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    busy = sum(int(field) for k, field in enumerate(fields[:8]) if k not in (3, 4))  # but idle and waiting for a disk
    own = sum(
        spent.ru_utime + spent.ru_stime
        for spent in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
    return busy / os.sysconf("SC_CLK_TCK"), own


def run(benchmark: Benchmark) -> list[dict[str, Any]] | None:
    """Its rows; None if it failed, and then it has said why."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        script, *options = benchmark.command
        done = subprocess.run([sys.executable, str(HERE / script), *options, "--json", str(rows)])
        return json.loads(rows.read_text()) if done.returncode == 0 else None


def measured(benchmark: Benchmark) -> dict[str, Any] | None:
    """The rows, with when, where and beside how much other work they were measured."""
    begin_s, (all_s, own_s) = time.monotonic(), cpu_s()
    rows = run(benchmark)
    took_s, (all_after_s, own_after_s) = time.monotonic() - begin_s, cpu_s()
    if rows is None:
        return None
    others_s = max(0.0, (all_after_s - all_s) - (own_after_s - own_s))
    return {
        "title": benchmark.title,
        "command": " ".join(("python", f"benchmarks/{benchmark.command[0]}", *benchmark.command[1:])),
        "date": date.today().isoformat(),
        "commit": last_commit(),
        "took_s": round(took_s, 1),
        "others": round(others_s / took_s / (os.cpu_count() or 1), 2),  # the share of the cores that others used
        "machine": this_machine() | {name: installed(name) for name in PACKAGES},
        "rows": rows,
    }


def last_commit() -> str:
    """The last one that changed amble itself; with a plus if there is more in the files than in git."""
    asked = (["log", "-1", "--format=%h", "--", "src"], ["status", "--porcelain", "--", "src"])
    done = [subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip() for words in asked]
    return f"{done[0] or 'not known'}{'+' if done[1] else ''}"


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def kept() -> dict[str, Any]:
    return dict(json.loads(KEPT.read_text())) if KEPT.exists() else {"format": FORMAT, "groups": {}}


def write(path: Path, figures: dict[str, Any]) -> None:
    """The figures, and the page that shows them."""
    write_whole({path: (json.dumps(figures, indent=1) + "\n").encode()})
    subprocess.run([sys.executable, str(ROOT / "docs" / "measured.py")], check=True)


def main() -> None:
    names = (*BENCHMARKS, *PEERS)
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)}; by default all but peers")
    options.add_argument("--release", action="store_true", help="keep the last figures as those of this version")
    arguments = options.parse_args()
    if wrong := [name for name in arguments.names if name not in names]:
        options.error(f"no benchmark named {wrong[0]}; choose among {', '.join(names)}")
    failed = []
    wanted = () if arguments.release else arguments.names or tuple(BENCHMARKS)
    begin_s = time.monotonic()
    for k, name in enumerate(wanted, 1):
        print(f"\n{name}: {k} of {len(wanted)}, {time.monotonic() - begin_s:.0f} s so far", flush=True)
        group = measured((BENCHMARKS | PEERS)[name])
        if group is None:
            failed.append(name)
            continue
        figures = kept()
        groups = figures["groups"] | {name: group}
        write(KEPT, figures | {"groups": {each: groups[each] for each in names if each in groups}})
    if arguments.release:
        HISTORY.mkdir(exist_ok=True)
        write(HISTORY / f"{amble.__version__}.json", kept())
    if failed:
        sys.exit(f"failed, and kept their last figures: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
