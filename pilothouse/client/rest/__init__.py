"""Requests to a Kubernetes API, over HTTP or in-process."""
