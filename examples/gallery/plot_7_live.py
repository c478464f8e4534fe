"""
A live run, replayed
====================

``amble up`` starts four agents as processes of their own, which pass two tokens over encrypted links. Every visit is
recorded, and computed again afterwards.

**Conclusion.** The replay gives the same digits, so the record is proof of what happened. The recorded times tell the
simulator how fast the agents are: it predicts the same method with more tokens.
"""

import subprocess
import sys

import amble

command = [sys.executable, "-m", "amble", "up", "--data", "diabetes", "--agents", "4", "--network", "complete"]
settings = [
    "-m",
    "WPG:alpha=0.3,tokens=2",
    "--hops",
    "300",
    "--tolerance",
    "0",
    "--pause",
    "0.005",
    "-o",
    "live",
    "--again",
]
done = subprocess.run([*command, *settings], capture_output=True, text=True, check=True)
print(next(line for line in done.stdout.splitlines() if line.startswith("replayed")).partition(" (")[0])

# %%
# The record as a run, like one of the simulator's: which agent had which token when.

run = amble.load_run("live/run")
print(f"{run.method.label} with {run.method.tokens} tokens, stopped by {run.stopped}")
run.plot_timeline("timeline.png")

# %%
# The simulator, with the times of this run, for one to four tokens:

problem = amble.split(amble.load("diabetes"), agents=4)
methods = [amble.WPG(alpha=0.3, tokens=count) for count in (1, 2, 4)]
predicted = amble.compare(methods, problem, run.network, timing=run.timing, hops=300, progress=False)
predicted.plot("predicted.png")
