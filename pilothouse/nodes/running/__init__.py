"""Pods on simulated nodes, followed and written: what connects `pods/` with the API."""
