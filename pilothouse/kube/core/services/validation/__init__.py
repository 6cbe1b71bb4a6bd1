"""Validation of services, by topic."""
