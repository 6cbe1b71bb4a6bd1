"""Tokens of service accounts: how they are issued and believed, and how others can verify them."""
