"""Volumes that decide where a pod can be, or that wait for it to be somewhere."""
