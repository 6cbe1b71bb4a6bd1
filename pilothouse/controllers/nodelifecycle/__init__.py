"""Nodes that are no longer heard."""
