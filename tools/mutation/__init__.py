"""Puts small faults into the code, one at a time, and counts how many of them the tests notice."""
