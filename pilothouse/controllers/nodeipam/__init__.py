"""Ranges of the addresses of pods, one for each node."""
