"""What agents send and keep, as bytes."""
