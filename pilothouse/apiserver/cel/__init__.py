"""Expressions at work in the server: they run without holding up the event loop, and may ask the authorizer."""
