"""Faults: request matching, and their effects on requests and watches."""
