"""Simulated load balancers: external addresses for services and ingresses."""
