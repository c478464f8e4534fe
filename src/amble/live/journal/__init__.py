"""What outlives a crash: an agent's journal, one SQLite file."""
