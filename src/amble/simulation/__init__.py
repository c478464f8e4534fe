"""simulate, tune and compare: they plan a run, replay its schedule and record the models."""
