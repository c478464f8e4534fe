"""What a run is: from its file to one folder an agent."""
