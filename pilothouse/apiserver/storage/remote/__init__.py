"""The storage contract over a socket, for workers that share the store process."""
