"""Estimators of scikit-learn: fit deals rows out to simulated agents, and a token trains the model of all rows."""

from amble.errors import need

need("sklearn", "sim")
