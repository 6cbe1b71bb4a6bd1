"""Admission plugins for built-in kinds, one module or folder per plugin. `plugins.py` has the table."""
