"""Structured merge and diff: who owns which field of an object, and what applying a configuration makes of it."""
