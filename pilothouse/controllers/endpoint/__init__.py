"""Endpoints of services that select pods."""
