"""
The token rules of API-BCD
==========================

API-BCD as published adds an agent's change to the visiting token only. ``scaled`` adds it M times, ``tracked`` adds
what this token has not had yet.

**Conclusion.** The published rule ends at a model that is shrunk towards zero: its tokens are right only in their sum.
Both other rules end where I-BCD with the penalty tau M does; the penalty's own bias remains in all of them.
"""

import amble

problem = amble.split(amble.load("diabetes"), agents=20)
rules = [amble.APIBCD(tau=0.1, tokens=5, token_rule=rule) for rule in ("published", "scaled", "tracked")]
runs = amble.compare([*rules, amble.IBCD(tau=0.5)], problem, hops=60_000, progress=False)
for run in runs:
    print(f"{run.label}: length of the model {(run.model**2).sum() ** 0.5:.2f}")
print(f"centralised optimum: {(problem.optimum().w ** 2).sum() ** 0.5:.2f}")

# %%
# The metric of the tokens' mean, and thinner, where it differs, that of the agents' mean:

runs.plot("token-rules.png")
