"""The simulated nodes themselves: their objects, addresses and heartbeats."""
