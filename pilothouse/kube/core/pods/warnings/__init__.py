"""What the authors of pods are warned of, though their pods are valid."""
