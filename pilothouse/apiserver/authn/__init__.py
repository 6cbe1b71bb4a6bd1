"""Authentication: authenticators, one per file, and their union."""
