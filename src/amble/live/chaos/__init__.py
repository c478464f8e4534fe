"""The fault simulator: a simulated world in which everything fails, to test the protocol."""
