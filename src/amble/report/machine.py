"""On what the page was made."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def this_machine() -> dict[str, str]:
    """The machine and the versions in use, for the foot of a report."""
    facts = {
        "system": platform.platform(terse=True),
        "processor": _processor(),
        "cores": str(os.cpu_count() or "not known"),
        "Python": platform.python_version(),
    }
    for package in ("numpy", "jax", "amble"):
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = "not installed"
    return facts


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # only Linux has it
    return platform.processor() or platform.machine() or "not known"
