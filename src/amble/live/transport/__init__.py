"""Links between agents. What a transport must do, and the one over Eclipse Zenoh."""
