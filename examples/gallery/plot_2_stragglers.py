"""
Stragglers
==========

One of 20 agents computes ten times slower than the others. In methods with rounds all agents wait for it in every
round. A token waits only while it is there.

**Conclusion.** D-ADMM and FedAvg take about nine times as long with the straggler. Relay with four tokens takes twice
as long, half a second more: the other three tokens walk on.
"""

import amble

problem = amble.split(amble.load("diabetes"), agents=20, test=0)
methods = [amble.Relay(tokens=4), amble.DADMM(rho=0.03), amble.FedAvg(alpha=0.1)]
timings = {
    "even": amble.Timing(low_s=0.01, high_s=0.01, compute=0.1),
    "straggler": amble.Timing(low_s=0.01, high_s=0.01, compute=0.1, slowdown={3: 10.0}),
}
runs = {
    name: amble.compare(methods, problem, hops=30_000, timing=timing, progress=False)
    for name, timing in timings.items()
}
for even, slow in zip(runs["even"], runs["straggler"], strict=True):
    before, after = even.time_to(within=0.2), slow.time_to(within=0.2)
    print(f"{even.method.label}: {before:.1f} s, with a straggler {after:.1f} s, {after / before:.1f} times as long")

# %%
# (Virtual seconds until the distance to the optimum stays below 0.2.) The curves with the straggler:

runs["straggler"].plot("stragglers.png")

# %%
# Who is busy when: agent 3 holds a token for long, and the others go on.

runs["straggler"][0].plot_timeline("timeline.png")
