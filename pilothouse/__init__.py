"""Pilothouse: the Kubernetes API server in Python."""

__version__ = "0.3.0"
