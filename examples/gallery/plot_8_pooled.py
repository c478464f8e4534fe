"""
Pooled regression with standard errors
======================================

Three clinics have 60, 120 and 262 patients. Each could fit its own model; together they get the model of all 442 rows,
with its standard errors, and no row leaves its clinic.

**Conclusion.** The coefficients and intervals of three agents are those of one table, to rounding. Those of the
smallest clinic alone are much wider: for most columns it could not have told whether they matter.
"""

import matplotlib.pyplot as plt
import numpy as np

import amble
from amble.look import COLOURS, QUIET, look

data = amble.load("diabetes")


def fitted(agents, sizes):
    """The summary of so many agents with so many rows each."""
    problem = amble.split(data, agents=agents, how="by-sizes", sizes=sizes, test=0, ridge=0.0)
    return amble.simulate(amble.Relay(), problem, "complete", hops=12, progress=False).trained(problem).summary()


together = fitted(3, [60, 120, 262]).to_pandas()
alone = fitted(1, [60]).to_pandas()

# %%
# The same from the textbook, with all rows in one place:

X = np.column_stack([np.ones(len(data.y)), data.X])
coef = np.linalg.solve(X.T @ X, X.T @ data.y)
residual = data.y - X @ coef
variance = residual @ residual / (len(data.y) - X.shape[1])
errors = np.sqrt(variance * np.diag(np.linalg.inv(X.T @ X)))
print("largest relative difference of a coefficient below 1e-9:", np.allclose(together["coef"], coef, rtol=1e-9))
print("of a standard error:", np.allclose(together["std_err"], errors, rtol=1e-9))

# %%
# Coefficients with 95 % intervals:

shown = together.index[1:]
places = np.arange(len(shown))
lines = [(together, COLOURS[0], "three clinics", -0.12), (alone, COLOURS[1], "the smallest alone", 0.12)]
with look():
    figure, axes = plt.subplots(figsize=(7.2, 3.2), dpi=200, layout="constrained")
    for table, colour, label, shift in lines:
        rows = table.loc[shown]
        axes.errorbar(
            places + shift, rows["coef"], 1.96 * rows["std_err"], fmt="o", color=colour, label=label, capsize=3
        )
    axes.axhline(0, color=QUIET, linewidth=0.8)
    axes.set_xticks(places, shown)
    axes.set_ylabel("coefficient")
    axes.legend()
    wider = (alone.loc[shown, "std_err"] / together.loc[shown, "std_err"]).median()
    figure.suptitle(f"Alone, the smallest clinic's intervals are {wider:.1f} times as wide", x=0.01, ha="left")
    plt.show()
