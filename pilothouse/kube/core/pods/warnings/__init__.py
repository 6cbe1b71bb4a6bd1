"""Warnings to the authors of pods that are valid."""
