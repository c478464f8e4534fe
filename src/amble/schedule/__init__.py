"""Virtual time: how long hops and visits take, and which token is where at what time."""
