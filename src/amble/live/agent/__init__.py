"""One agent as a process: it drives the protocol and writes its status."""
