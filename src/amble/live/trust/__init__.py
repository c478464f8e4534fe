"""Who may take part: the authority and its certificates."""
