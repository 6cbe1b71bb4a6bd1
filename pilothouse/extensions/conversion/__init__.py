"""Webhook conversion of custom resources: each version is served from a converting store."""
