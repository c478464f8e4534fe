"""simulate, tune and compare: plan a run, replay it, record it."""
