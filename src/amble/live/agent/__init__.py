"""One agent as a process: the driver of its protocol, and what it says of itself."""
