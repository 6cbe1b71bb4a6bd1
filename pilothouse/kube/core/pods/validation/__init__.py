"""Validation of pods. One topic per file; errors have upstream's order and text."""
