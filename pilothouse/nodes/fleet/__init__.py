"""Simulated nodes: objects, addresses and heartbeats."""
