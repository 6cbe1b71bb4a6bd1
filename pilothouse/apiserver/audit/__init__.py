"""Audit: policy-driven logging of requests and responses to a file and a webhook."""
