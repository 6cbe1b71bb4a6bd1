"""Encryption at rest: values are encrypted per resource, as configured in a file."""
