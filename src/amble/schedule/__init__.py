"""Virtual time: what a hop and a visit take, which token is where and when, the clock of rounds."""
