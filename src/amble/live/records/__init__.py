"""What a run leaves behind, and what is made of it."""
