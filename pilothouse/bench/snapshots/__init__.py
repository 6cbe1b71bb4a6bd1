"""Snapshots: all objects as they were at one moment, and the way back."""
