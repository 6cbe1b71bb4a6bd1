"""Allocation for a write of a service: it takes from the pools, gives back, and is undone when the write fails."""
