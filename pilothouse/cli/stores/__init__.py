"""Stores as the commands that keep, move and check them see them."""
