"""The storage contract over a socket: the store is in another process of the same server, and several share it."""
