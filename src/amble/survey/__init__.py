"""Surveys: what sites say about their tables, and the encoding, scaling and labels that they agree on from it."""
