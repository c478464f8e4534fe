"""
Stragglers
==========

Agents differ in speed. In methods with rounds all agents wait for the slowest one in every round. Relay's tokens wait
for each other once in a lap, when they meet. In AD-PSGD nobody waits: agents average in pairs, each at its own pace.

**Conclusion.** With equal agents, D-ADMM and FedAvg are faster than Relay with four tokens. With one of 20 agents ten
times slower, they take about nine times as long, Relay between two and three times as long, and AD-PSGD hardly longer.
Relay is then the fastest, and AD-PSGD, the slowest before, comes second. Busy agents do not make a method fast: with
Relay they are idle for most of the time.
"""

import matplotlib.pyplot as plt
import numpy as np

import amble

problem = amble.split(amble.load("diabetes"), agents=20)
methods = [amble.Relay(tokens=4), amble.ADPSGD(alpha=0.1), amble.DADMM(rho=0.03), amble.FedAvg(alpha=0.1)]
speeds = {
    "even": {},
    "one 10x": {3: 10.0},
    "two 10x": {3: 10.0, 11: 10.0},
    "lognormal": dict(enumerate(np.random.default_rng(0).lognormal(0, 1, 20))),
}
runs = {}
for name, slowdown in speeds.items():
    timing = amble.Timing(low_s=0.01, high_s=0.01, compute=0.1, slowdown=slowdown)
    runs[name] = amble.compare(methods, problem, hops=6000, timing=timing, progress=False)
for even, slow in zip(runs["even"], runs["one 10x"], strict=True):
    before, after = even.time_to(within=0.01), slow.time_to(within=0.01)
    print(f"{even.method.label}: {before:.1f} s, with a straggler {after:.1f} s, {after / before:.1f} times as long")

# %%
# (Virtual seconds until the test NMSE stays within 1 % of the optimum's.) The same for four distributions of speeds,
# and how long each agent does not compute while one is slow:

figure, (times, idle) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for k, method in enumerate(methods):
    reached = [compared[k].time_to(within=0.01) for compared in runs.values()]
    times.plot(np.arange(len(speeds)) + 0.08 * k, reached, "os^D"[k], label=method.label)
    idle.plot(np.arange(20) + 0.15 * k, 100 * runs["one 10x"][k].idle, "os^D"[k], ms=4, label=method.label)
times.set(ylabel="virtual time to 1 % (s)", ylim=(0, None))
times.set_xticks(np.arange(len(speeds)) + 0.12, list(speeds))
idle.set(xlabel="agent (3 is slow)", ylabel="idle, % of the time", ylim=(-5, 105), xticks=range(0, 20, 3))
idle.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
figure.savefig("stragglers.png")

# %%
# Who is busy when: agent 3 holds a token for long, and the others go on until they meet.

runs["one 10x"][0].plot_timeline("timeline.png")
