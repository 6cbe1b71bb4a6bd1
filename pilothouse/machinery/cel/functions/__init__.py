"""Kubernetes' own CEL functions, computed."""
