"""The record of a live run: collected, replayed, and turned into a saved run."""
