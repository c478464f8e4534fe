"""Sweeps: thousands of runs over settings, seeds, networks and splits, on every core, a GPU or a cluster"""
