"""The protocol of an agent: from messages to effects. It has no I/O, no clock and no random generator."""
