"""Backups: the contents of a store at one revision, for a file or another store."""
