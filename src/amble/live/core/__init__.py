"""What an agent does with what it hears. No I/O, no clock, no randomness of its own."""
