"""Repair: what the pools say and what the services have is brought together again."""
