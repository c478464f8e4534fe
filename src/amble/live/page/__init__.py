"""The live page: a run in a browser on this machine, while it goes on and afterwards."""
