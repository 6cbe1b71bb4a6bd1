"""Endpoint slices of services that select pods."""
