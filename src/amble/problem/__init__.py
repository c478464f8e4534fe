"""Problem: the losses of all agents, made from rows; the centralised optimum; predictions."""
