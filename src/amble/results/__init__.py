"""Run: the result of a simulation, with its curves, saved files and pictures."""
