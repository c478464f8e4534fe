"""A simulated world in which everything fails, for the protocol to hold up in."""
