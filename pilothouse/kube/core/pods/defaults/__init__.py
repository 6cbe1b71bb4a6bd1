"""The defaults of pods."""
