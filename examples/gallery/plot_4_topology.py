"""
The network
===========

A token can walk round a cycle through all agents, or choose each next agent at random. How many messages does WPG need
on different networks?

**Conclusion.** On a cycle the network hardly matters, because only one link per agent is used. At random, a token on a
ring stays in one region for long and needs eleven times as many messages. On a complete network it needs twice as many.
"""

import amble

problem = amble.split(amble.load("diabetes"), agents=30, test=0, ridge=0.01)
networks = {
    "ring": amble.networks.ring(30),
    "grid": amble.networks.grid(5, 6),
    "geometric": amble.networks.geometric(30, seed=1),
    "complete": amble.networks.complete(30),
}
print("messages until within 0.3 of the optimum: on a cycle, at random")
for name, network in networks.items():
    cost = {}
    for walk in ("cycle", "metropolis"):
        run = amble.simulate(amble.WPG(alpha=0.5), problem, network, hops=20_000, walk=walk, progress=False)
        cost[walk] = run.time_to(within=0.3, cost="comm_units")
        if name == "geometric" and walk == "metropolis":
            wandering = run
    print(f"{name}: {cost['cycle']:,.0f}, {cost['metropolis']:,.0f}")

# %%
# The geometric network, and the first steps of its token:

wandering.plot_network("network.png")
