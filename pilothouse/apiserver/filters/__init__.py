"""Filters: one per file, each a function from handler to handler. `chain.py` lists them in order."""
