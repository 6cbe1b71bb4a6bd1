"""Ranges of the addresses of services."""
