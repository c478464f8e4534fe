"""The settings of a run: from its file to one folder per agent."""
