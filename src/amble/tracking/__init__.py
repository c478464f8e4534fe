"""Tracking: what a callback gets at each record of a run, and trackers that send it to MLflow or TensorBoard."""
