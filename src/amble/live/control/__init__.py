"""What a user asks of agents: their status, whether they could start, to leave, to stop."""
