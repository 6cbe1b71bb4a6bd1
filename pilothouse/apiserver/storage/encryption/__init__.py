"""Secrets at rest: values are encrypted before they reach the store, resource by resource, as a file says."""
