"""The parts of every store's watches: queues, the newest events, and who is told of which."""
