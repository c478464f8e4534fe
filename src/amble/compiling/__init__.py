"""Compiling with JAX: loops as one kernel, and compiled programs in the user's cache."""
