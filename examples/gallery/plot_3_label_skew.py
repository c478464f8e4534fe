"""
Agents with different labels
============================

Hospitals see different patients. Here ten agents have handwritten digits: dealt out evenly; with a share of each
digit that is drawn from a Dirichlet distribution; and one digit each.

**Conclusion.** FedAvg takes several steps on each agent's own rows before it averages. If every agent has another
digit, these steps pull the model apart, and it ends four times as far from the model of all rows. Relay's gifts add
up to the loss of all rows, whoever holds them; it is slowed down by a factor of two. The accuracy shows little of
this.
"""

import amble

data = amble.load("digits")
methods = [amble.Relay(), amble.FedAvg(alpha=0.5, local_steps=20)]
for how in ("even", "dirichlet", "by-label"):
    problem = amble.split(data, agents=10, how=how, alpha=0.1 if how == "dirichlet" else None, ridge=0.01)
    runs = amble.compare(methods, problem, "complete", hops=200, progress=False)
    for run in runs:
        distance, accuracy = run.history["distance"][-1], run.history["metric"][-1]
        print(f"{how}, {run.method.label}: distance {distance:.2f}, accuracy {accuracy:.3f}")
    if how == "dirichlet":
        problem.plot_partition("partition.png")

# %%
# Above: who holds how many of each digit in the second case. And the curves of the last case, a digit per agent:

runs.plot("label-skew.png")
