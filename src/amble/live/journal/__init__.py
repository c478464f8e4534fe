"""An agent's journal: the SQLite file from which it continues after a crash."""
