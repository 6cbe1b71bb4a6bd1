"""Structured merge and diff: field ownership, and the effect of applying a configuration."""
