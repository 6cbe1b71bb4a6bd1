"""The objects of a cluster in files, and back."""
