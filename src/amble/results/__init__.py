"""What a run leaves: the record and its curves, files it is saved in, pictures of it."""
