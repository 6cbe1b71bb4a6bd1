"""Calls to webhooks: where a service is, and one way to send it a review over TLS."""
