"""Pods on simulated nodes: follows pods in the API, and writes their status."""
