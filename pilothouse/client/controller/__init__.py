"""Runs reconcile functions on a work queue."""
