"""The key space under everything: the contract, the stores that keep it, and the watch cache that serves reads."""
