"""Storage: the contract, its implementations, and the watch cache."""
