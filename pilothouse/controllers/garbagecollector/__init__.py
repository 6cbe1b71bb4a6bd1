"""Deletes what has lost its owners."""
