"""Conversion of custom resources by webhooks: each version is served from a store that speaks it."""
