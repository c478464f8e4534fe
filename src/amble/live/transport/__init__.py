"""Links between agents: what a transport must do, and the transport over Eclipse Zenoh."""
