"""Backups: all that a store holds at one revision, in a file or on its way into another store."""
