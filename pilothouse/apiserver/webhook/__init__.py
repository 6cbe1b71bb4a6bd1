"""Webhook calls: service resolution, and posting of reviews over TLS."""
