"""Messages and rows as bytes: what agents send and keep."""
