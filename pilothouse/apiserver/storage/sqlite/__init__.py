"""The embedded store: the storage contract on one SQLite file, for one process."""
