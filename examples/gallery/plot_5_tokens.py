"""
How many tokens?
================

With M tokens, M agents work at once. The tokens share one account, and exchange what they were given when they meet.

**Conclusion.** Time falls with the number of tokens, at first as 1/M, then less: every agent must be heard once, and
tokens must come to the meeting place. Bytes hardly rise: a message carries one account for any number of tokens.
Losses that are not quadratic need more laps with more tokens, and so more bytes.
"""

import matplotlib.pyplot as plt

import amble
from amble.look import COLOURS, QUIET, look

problem = amble.split(amble.load("diabetes"), agents=50, test=0)
network = amble.networks.random(agents=50, density=0.7)
tokens = (1, 2, 5, 10, 25)
time_s, sent = [], []
for count in tokens:
    run = amble.simulate(amble.Relay(tokens=count), problem, network, hops=1500, every=1, timing="unit", progress=False)
    time_s.append(run.time_to(within=1e-6))
    sent.append(run.time_to(within=1e-6, cost="bytes"))
    print(f"M = {count}: {time_s[-1]:.0f} hop times, {sent[-1] / 1e3:,.0f} kB")

# %%
# Until the model is within 1e-6 of the optimum of 50 agents' rows:

with look():
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 2.8), dpi=200, layout="constrained")
    left.plot(tokens, time_s, "o-", label="measured")
    left.plot(tokens, [time_s[0] / count for count in tokens], "--", color=QUIET, label="1/M")
    left.set(ylabel="time (hops one after another)")
    left.legend()
    right.plot(tokens, [each / 1e3 for each in sent], "s-", color=COLOURS[1])
    right.set(ylabel="bytes (kB)")
    right.set(ylim=(0, 1.2e-3 * max(sent)))
    left.set(yscale="log")
    left.set_yticks((2, 5, 10, 20, 50), (2, 5, 10, 20, 50))
    for axes in (left, right):
        axes.set(xlabel="tokens", xscale="log")
        axes.set_xticks(tokens, tokens)
        axes.minorticks_off()
    faster, more = time_s[0] / time_s[-1], sent[-1] / sent[0]
    figure.suptitle(f"{tokens[-1]} tokens: {faster:.1f} times as fast, {more:.1f} times the bytes", x=0.01, ha="left")
    plt.show()
