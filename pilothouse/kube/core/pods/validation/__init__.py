"""Validation of pods. One file a topic; errors come in upstream's order and words."""
