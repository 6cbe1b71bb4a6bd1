"""The scheduling queue: pending pods."""
