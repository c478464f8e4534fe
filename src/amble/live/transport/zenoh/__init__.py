"""Links between agents, over Eclipse Zenoh."""
