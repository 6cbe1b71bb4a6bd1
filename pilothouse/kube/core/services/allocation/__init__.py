"""Allocation of addresses and ports for a write of a service, reverted if the write fails."""
