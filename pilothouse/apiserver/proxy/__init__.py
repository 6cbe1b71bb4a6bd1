"""Forwarding of requests to other servers: headers and upgrades."""
