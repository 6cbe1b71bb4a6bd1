"""Authorization: authorizers, one per file, and their union."""
