"""Pods that nobody will ever end or delete."""
