"""What `import amble` loads: next to nothing."""

import subprocess
import sys


def test_importing_amble_imports_nothing_heavy():
    heavy = ["jax", "matplotlib", "sklearn", "pandas", "torch", "scipy", "networkx"]
    question = f"import sys, amble; print([name for name in {heavy} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=True, timeout=600)
    assert answer.stdout.strip() == "[]"
