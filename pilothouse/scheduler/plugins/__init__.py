"""Scheduler plugins, one file each. `table.py` assigns plugins to extension points."""
