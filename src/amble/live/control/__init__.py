"""What a person asks of agents: how is it going, could you start, leave, stop."""
