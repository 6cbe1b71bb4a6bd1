"""Aggregated discovery: the groups of the three servers and of all aggregated servers in one document."""
