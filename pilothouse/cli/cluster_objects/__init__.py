"""Export of a cluster's objects to files, and import from files."""
