"""Passing requests on to other servers: what becomes of their headers, and upgrades."""
