"""Validation of names, labels, metadata and request options, with upstream's messages and order."""
