"""Endpoint slices that mirror Endpoints which users made."""
